package fetcher

import (
	"math"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/causeway-mirror/causeway/route"
)

// minSessionVersion is the first Fetch version with sessions (KIP-227).
const minSessionVersion = 7

// minEpochVersion is the first Fetch version in which the leader compares the epoch of what was read last (KIP-595).
const minEpochVersion = 12

// session is our side of an incremental fetch session: the broker keeps the partitions, and a request lists only what changed.
type session struct {
	id    int32
	epoch int32 // of the next request; 0 lists everything and opens a new session, closing the one of id
	able  bool  // the broker knows sessions
	tells bool  // the broker tells by itself when its log is not the one that was read

	req    *kmsg.FetchRequest // reused
	topics map[topicKey]int   // of the request that is being built
	names  map[route.TopicID]string
}

// topicKey keeps apart what a topic was and what it was recreated as.
type topicKey struct {
	name string
	id   route.TopicID
}

func newSession() session {
	return session{topics: make(map[topicKey]int), names: make(map[route.TopicID]string)}
}

func (s *session) versioned(v int16) { s.able, s.tells = v >= minSessionVersion, v >= minEpochVersion }

// renew has the next request open a new session.
func (s *session) renew() { s.epoch = 0 }

// answered notes a good answer. A broker whose cache of sessions is full answers a request for one with id 0.
func (s *session) answered(id int32) {
	s.id = id
	switch {
	case id == 0:
		s.epoch = 0
	case s.epoch == math.MaxInt32:
		s.epoch = 1 // 0 would open a new session
	default:
		s.epoch++
	}
}

// topic gives the part of the request for a topic. It is valid until the next call.
func (s *session) topic(p route.Partition, id route.TopicID) *kmsg.FetchRequestTopic {
	key := topicKey{p.Topic, id}
	if i, ok := s.topics[key]; ok {
		return &s.req.Topics[i]
	}
	n := len(s.req.Topics)
	s.topics[key] = n
	if n < cap(s.req.Topics) {
		s.req.Topics = s.req.Topics[:n+1] // with the memory of an earlier request
	} else {
		s.req.Topics = append(s.req.Topics, kmsg.NewFetchRequestTopic())
	}
	t := &s.req.Topics[n]
	t.Topic, t.TopicID, t.Partitions = p.Topic, id, t.Partitions[:0]
	if !id.IsZero() {
		s.names[id] = p.Topic
	}
	return t
}

// request builds the next request from the slots that changed, or from all of them if it opens a session.
func (l *loop) request(maxBytes int32, wait time.Duration) *kmsg.FetchRequest {
	s := &l.session
	if s.req == nil {
		s.req = kmsg.NewPtrFetchRequest()
	}
	req := s.req
	req.ReplicaID = -1
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes = int32(wait.Milliseconds()), 1, maxBytes
	req.Rack = l.f.cfg.Rack
	req.IsolationLevel = 0
	if l.f.cfg.ReadCommitted {
		req.IsolationLevel = 1
	}
	req.SessionID, req.SessionEpoch = s.id, s.epoch
	if !s.able {
		req.SessionID, req.SessionEpoch = 0, -1
	}
	clear(s.topics)
	req.Topics, req.ForgottenTopics = req.Topics[:0], req.ForgottenTopics[:0]
	if req.SessionEpoch <= 0 {
		l.listAll()
	} else {
		l.listChanged()
	}
	clear(l.changed)
	clear(l.gone)
	l.changed, l.gone = l.changed[:0], l.gone[:0]
	return req
}

// listAll begins with any slot: a broker without a session for us fills its answers in the order of the request, and map order is fair.
func (l *loop) listAll() {
	clear(l.session.names)
	for _, s := range l.slots {
		s.listed = false
		switch {
		case !s.withheld:
			l.list(s)
		case s.m == nil:
			delete(l.slots, s.p)
		}
	}
}

func (l *loop) listChanged() {
	for _, s := range l.gone {
		if !s.withheld || !s.listed {
			continue // it is back, or listed twice
		}
		l.forget(s)
		if s.m == nil {
			delete(l.slots, s.p)
		}
	}
	for _, s := range l.changed {
		if s.withheld || s.listed && s.sent == s.want {
			continue
		}
		if s.listed && s.sent.id != s.want.id {
			l.forget(s)
		}
		l.list(s)
	}
}

func (l *loop) list(s *slot) {
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition = s.p.Partition
	p.CurrentLeaderEpoch = s.want.epoch
	p.LastFetchedEpoch = s.want.at.LeaderEpoch
	p.FetchOffset = int64(s.want.at.Offset)
	p.PartitionMaxBytes = s.want.maxBytes
	t := l.session.topic(s.p, s.want.id)
	t.Partitions = append(t.Partitions, p)
	s.listed, s.sent = true, s.want
}

func (l *loop) forget(s *slot) {
	t := kmsg.NewFetchRequestForgottenTopic()
	t.Topic, t.TopicID, t.Partitions = s.p.Topic, s.sent.id, []int32{s.p.Partition}
	req := l.session.req
	if n := len(req.ForgottenTopics); n > 0 && req.ForgottenTopics[n-1].TopicID == t.TopicID && req.ForgottenTopics[n-1].Topic == t.Topic {
		last := &req.ForgottenTopics[n-1]
		last.Partitions = append(last.Partitions, s.p.Partition)
	} else {
		req.ForgottenTopics = append(req.ForgottenTopics, t)
	}
	s.listed = false
}
