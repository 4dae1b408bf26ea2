package kafkatest

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	apiVersionsKey = 18
	maxAPIFrame    = 1 << 20 // an ApiVersions answer is far smaller
)

// LimitVersions makes the broker behind the proxy look older to clients that connect from now on: the newest version of each request
// named is at most what the map says, and a request with a negative version does not exist. nil ends it.
func (p *Proxy) LimitVersions(newest map[int16]int16) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.newest = newest
}

// limited wraps the two ends of a connection so that ApiVersions answers pass changed.
func (p *Proxy) limited(client, server net.Conn) (c, s net.Conn) {
	p.mu.Lock()
	newest := p.newest
	p.mu.Unlock()
	if newest == nil {
		return client, server
	}
	asked := &asked{versions: map[int32]int16{}}
	return &requestTap{Conn: client, in: bufio.NewReader(client), asked: asked},
		&answerTap{Conn: server, in: bufio.NewReader(server), asked: asked, newest: newest}
}

// asked remembers which answers are to be changed.
type asked struct {
	mu       sync.Mutex
	versions map[int32]int16 // by correlation id
}

func (a *asked) put(correlation int32, version int16) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.versions[correlation] = version
}

func (a *asked) take(correlation int32) (version int16, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	version, ok = a.versions[correlation]
	delete(a.versions, correlation)
	return version, ok
}

// requestTap notes the ApiVersions requests among what a client sends.
type requestTap struct {
	net.Conn

	in    *bufio.Reader
	asked *asked
	left  int // bytes of the present frame that were not read yet
}

// Read passes frames on unchanged.
func (r *requestTap) Read(b []byte) (int, error) {
	if r.left == 0 {
		head, err := r.in.Peek(12)
		if err != nil {
			return 0, err
		}
		r.left = 4 + int(binary.BigEndian.Uint32(head))
		if binary.BigEndian.Uint16(head[4:]) == apiVersionsKey {
			r.asked.put(int32(binary.BigEndian.Uint32(head[8:])), int16(binary.BigEndian.Uint16(head[6:])))
		}
	}
	n, err := r.in.Read(b[:min(len(b), r.left)])
	r.left -= n
	return n, err
}

// answerTap changes ApiVersions answers among what a broker sends.
type answerTap struct {
	net.Conn

	in      *bufio.Reader
	asked   *asked
	newest  map[int16]int16
	left    int
	changed []byte // what is left of a changed frame
}

// Read passes all other frames on unchanged.
func (a *answerTap) Read(b []byte) (int, error) {
	if len(a.changed) == 0 && a.left == 0 {
		if err := a.next(); err != nil {
			return 0, err
		}
	}
	if len(a.changed) > 0 {
		n := copy(b, a.changed)
		a.changed = a.changed[n:]
		return n, nil
	}
	n, err := a.in.Read(b[:min(len(b), a.left)])
	a.left -= n
	return n, err
}

func (a *answerTap) next() error {
	head, err := a.in.Peek(8)
	if err != nil {
		return err
	}
	size := 4 + int(binary.BigEndian.Uint32(head))
	version, ok := a.asked.take(int32(binary.BigEndian.Uint32(head[4:])))
	if !ok || size > maxAPIFrame {
		a.left = size
		return nil
	}
	frame := make([]byte, size)
	if _, err := io.ReadFull(a.in, frame); err != nil {
		return err
	}
	a.changed = a.limit(frame, version)
	return nil
}

// limit rewrites one answer; what it can't read passes as it is. The answer's header is never flexible (KIP-511).
func (a *answerTap) limit(frame []byte, version int16) []byte {
	resp := kmsg.NewPtrApiVersionsResponse()
	resp.Version = version
	if err := resp.ReadFrom(frame[8:]); err != nil {
		return frame
	}
	keys := resp.ApiKeys[:0]
	for _, k := range resp.ApiKeys {
		if most, ok := a.newest[k.ApiKey]; ok {
			k.MaxVersion = min(k.MaxVersion, most)
		}
		if k.MaxVersion >= 0 {
			keys = append(keys, k)
		}
	}
	resp.ApiKeys = keys
	out := resp.AppendTo(append([]byte(nil), frame[:8]...))
	binary.BigEndian.PutUint32(out, uint32(len(out)-4))
	return out
}
