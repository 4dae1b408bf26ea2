package wire

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/causeway-mirror/causeway/internal/slab"
)

const (
	minFetch, maxFetch = 4, 17
	maxFetchByName     = 12 // from 13 on topics are named by id (KIP-516)
)

// Fetch sends a fetch and waits for its answer, which is read into a slab from pool: record batches are slices of it, and the caller
// releases it. reserved bytes of the pool's budget are taken over whatever happens: the slab holds them or they are returned.
//
// The version is the newest that both ends speak between 4 and 17, at most 12 when a topic in the request has no TopicID, and that of the
// session when the request continues one. The answer's Version says which. From 13 on topics come back by id alone: their names are
// filled in where the request has them, and are empty for other topics of the session.
//
// When ctx ends first the answer is still waited for by the connection: it comes before the next one's.
func (c *Conn) Fetch(ctx context.Context, req *kmsg.FetchRequest, pool *slab.Pool, reserved int64) (*kmsg.FetchResponse, *slab.Slab, error) {
	v := c.fetchVersion(req)
	if v < minFetch {
		pool.Budget().Return(reserved)
		return nil, nil, fmt.Errorf("send Fetch: %w", ErrUnsupported)
	}
	req.Version = v
	w := c.newWaiter(req)
	w.pool, w.reserved = pool, reserved
	if err := c.submit(ctx, w, req); err != nil {
		pool.Budget().Return(reserved)
		return nil, nil, err
	}
	r, err := c.wait(ctx, w)
	if err != nil {
		return nil, nil, err
	}
	resp, ok := r.(*kmsg.FetchResponse)
	if !ok {
		panic("BUG: a Fetch is answered by something else")
	}
	c.keepSession(req, resp)
	nameTopics(req, resp)
	return resp, w.body, nil
}

func (c *Conn) fetchVersion(req *kmsg.FetchRequest) int16 {
	v := c.MaxVersion(keyFetch)
	if req.SessionID != 0 && req.SessionEpoch > 0 {
		c.mu.Lock()
		if opened, ok := c.sessions[req.SessionID]; ok {
			v = min(v, opened)
		}
		c.mu.Unlock()
	}
	if v > maxFetchByName && !allHaveIDs(req) {
		v = maxFetchByName
	}
	return v
}

func allHaveIDs(req *kmsg.FetchRequest) bool {
	for i := range req.Topics {
		if req.Topics[i].TopicID == [16]byte{} {
			return false
		}
	}
	for i := range req.ForgottenTopics {
		if req.ForgottenTopics[i].TopicID == [16]byte{} {
			return false
		}
	}
	return true
}

// keepSession remembers in which version a session was opened. A broker refuses to go on with one that was opened by names in a version
// with ids, and a request that changes nothing in the session names no topics to tell by.
func (c *Conn) keepSession(req *kmsg.FetchRequest, resp *kmsg.FetchResponse) {
	if req.SessionEpoch > 0 && resp.ErrorCode == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.sessions, req.SessionID)
	if resp.SessionID == 0 || resp.ErrorCode != 0 {
		return
	}
	if c.sessions == nil {
		c.sessions = make(map[int32]int16)
	}
	c.sessions[resp.SessionID] = resp.Version
}

func nameTopics(req *kmsg.FetchRequest, resp *kmsg.FetchResponse) {
	if resp.Version <= maxFetchByName || len(resp.Topics) == 0 {
		return
	}
	names := make(map[[16]byte]string, len(req.Topics))
	for i := range req.Topics {
		names[req.Topics[i].TopicID] = req.Topics[i].Topic
	}
	for i := range resp.Topics {
		if t := &resp.Topics[i]; t.Topic == "" {
			t.Topic = names[t.TopicID]
		}
	}
}
