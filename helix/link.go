package helix

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// errOver is what the library's attempts to connect meet when the session is over.
var errOver = errors.New("the session is over")

// mostDialTime bounds one attempt to reach a server.
const mostDialTime = 5 * time.Second

// link is the way to the servers. It stands between the library and the network for four reasons: a session that is over must not connect
// again; a server that accepts and then says nothing must be left while there is time for another one; the granted time-out is told
// nowhere else; and what has changed between two connections would not always be told, see tap.Read.
type link struct {
	watched func() []watchKey // what has a watch at the moment, by whole paths

	mu      sync.Mutex
	timeout time.Duration // guarded by mu; of the session: asked for, then granted
	session int64         // guarded by mu; granted
	refused bool          // guarded by mu
	conn    net.Conn      // guarded by mu; the newest
	since   time.Time     // guarded by mu; when conn was there
	failure error         // guarded by mu; of the last attempt to connect
}

// dial is the library's dialer.
func (l *link) dial(network, address string, _ time.Duration) (net.Conn, error) {
	l.mu.Lock()
	refused, timeout := l.refused, min(l.timeout/3, mostDialTime)
	l.mu.Unlock()
	if refused {
		return nil, errOver
	}
	dialer := net.Dialer{Timeout: timeout}
	conn, err := dialer.DialContext(context.Background(), network, address) //nolint:forbidigo // the library gives none; it is bounded
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failure = err; err != nil {
		return nil, err
	}
	if l.refused {
		_ = conn.Close() // unused
		return nil, errOver
	}
	l.conn, l.since = &tap{Conn: conn, link: l}, time.Now()
	return l.conn, nil
}

// refuse lets no new connection come about; the one that is there goes on.
func (l *link) refuse() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refused = true
}

// close ends the connection that is there.
func (l *link) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil {
		_ = l.conn.Close() // it may be closed already
	}
}

// trouble is why no server could be reached at the last attempt; nil if one was.
func (l *link) trouble() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failure
}

// patience is how long a server may say nothing.
func (l *link) patience() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.timeout / 2
}

// granted is what the newest connection's server said, and a moment before it was asked.
func (l *link) granted() (session int64, timeout time.Duration, asked time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.session, l.timeout, l.since
}

func (l *link) grant(session int64, timeout time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.session, l.timeout = session, timeout
}

// tap is one connection. Only the library's goroutine reads.
type tap struct {
	net.Conn
	link *link
	head []byte // the first bytes that came
	read int    // bytes that came
	told bool   // news is complete
	news []byte // what the library is told before anything that the server says after its first answer
}

// The answer to a connect request: length int32, protocol version int32, time-out in milliseconds int32, session id int64 and more.
const (
	lengthBytes   = 4
	timeoutOffset = 8
	sessionOffset = timeoutOffset + 4
	grantEnd      = sessionOffset + 8
)

// Read looks at the first bytes on their way. Behind the server's first answer, which the library reads to its end and no further, it puts
// a notice for each watch. The library does have a new server set the watches of the former one, for whatever changed since the last answer; but
// answers to requests that waited for the connection move that point on while it does so, and what changed before them is never told. So everybody
// who watches looks again, and hears so before any answer that is newer than what he knows.
func (t *tap) Read(p []byte) (int, error) {
	if !t.told && len(t.head) == grantEnd && t.read == lengthBytes+int(binary.BigEndian.Uint32(t.head)) {
		t.told = true
		for _, key := range t.link.watched() {
			t.news = appendNotice(t.news, key)
		}
	}
	if len(t.news) > 0 {
		n := copy(p, t.news)
		t.news = t.news[n:]
		return n, nil
	}
	n, err := t.Conn.Read(p)
	t.read += n
	if len(t.head) < grantEnd {
		t.head = append(t.head, p[:min(n, grantEnd-len(t.head))]...)
		if len(t.head) == grantEnd {
			timeout := time.Duration(binary.BigEndian.Uint32(t.head[timeoutOffset:])) * time.Millisecond
			if session := int64(binary.BigEndian.Uint64(t.head[sessionOffset:])); session != 0 { // 0 says that it is expired
				t.link.grant(session, timeout)
			}
		}
	}
	return n, err
}

// appendNotice appends a watch event as a server sends it: length int32, xid int32 and zxid int64 of -1, error int32, type int32, state int32,
// path as length int32 and bytes.
func appendNotice(b []byte, key watchKey) []byte {
	const fixed = 4 + 8 + 4 + 4 + 4 + 4
	kind := zk.EventNodeDataChanged
	if key.children {
		kind = zk.EventNodeChildrenChanged
	}
	b = binary.BigEndian.AppendUint32(b, uint32(fixed+len(key.path)))
	b = binary.BigEndian.AppendUint32(b, ^uint32(0))
	b = binary.BigEndian.AppendUint64(b, ^uint64(0))
	b = binary.BigEndian.AppendUint32(b, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(kind))
	b = binary.BigEndian.AppendUint32(b, uint32(zk.StateSyncConnected))
	b = binary.BigEndian.AppendUint32(b, uint32(len(key.path)))
	return append(b, key.path...)
}

// handshakeShare is the part of the session's time-out that a server gets for its first answer: one that is just starting accepts
// connections which it then forgets, and there must be time for another try.
const handshakeShare = 3

// leastHandshake is what the slowest server gets, however short its sessions are.
const leastHandshake = 500 * time.Millisecond

// SetReadDeadline shortens what the library waits for: it would stay with a server that says nothing for ten times its usual patience during
// the hand-shake, and until two thirds of the time-out afterwards, which leaves no time to find another server before work is suspended.
func (t *tap) SetReadDeadline(deadline time.Time) error {
	patience := t.link.patience()
	if len(t.head) < grantEnd {
		patience = min(patience, max(patience/handshakeShare, leastHandshake))
	}
	if latest := time.Now().Add(patience); deadline.After(latest) {
		deadline = latest
	}
	return t.Conn.SetReadDeadline(deadline)
}
