package helix

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/hashicorp/go-hclog"

	"github.com/causeway-mirror/causeway/internal/zkhosts"
)

// Session is one ZooKeeper session: it connects again as often as it must, but when ZooKeeper has forgotten it, it is over and everything in it
// fails. Its methods are safe for concurrent use; requests are pipelined in the order of their calls' start.
//
// Reads are repeated over lost connections for as long as their context allows. Writes are not: they fail with ErrLost, and the caller knows
// whether to look or to repeat.
type Session struct {
	log     hclog.Logger
	chroot  string
	conn    *zk.Conn
	link    *link
	id      string        // set before first is closed
	timeout time.Duration // set before first is closed
	began   time.Time
	// answered is the start of the last request that was answered, in nanoseconds since began.
	answered  atomic.Int64
	connected atomic.Bool
	links     atomic.Int64  // connections that have had the session
	first     chan struct{} // closed when the session is there
	done      chan struct{} // closed when it is over
	calls     sync.WaitGroup

	mu      sync.Mutex
	err     error                 // guarded by mu; why it is over
	watches map[watchKey][]*watch // guarded by mu
}

// Open starts a session and waits until ZooKeeper has granted it, for as long as the context allows. Close ends it.
func Open(ctx context.Context, cfg Config, log hclog.Logger) (*Session, error) {
	servers, chroot, err := parseAddress(cfg.ZooKeeper)
	if err != nil {
		return nil, err
	}
	s := &Session{
		log: log, chroot: chroot, began: time.Now(), first: make(chan struct{}), done: make(chan struct{}), watches: map[watchKey][]*watch{},
	}
	s.link = &link{timeout: cfg.SessionTimeout, watched: s.watchKeys}
	conn, events, err := zk.Connect(servers, cfg.SessionTimeout, zk.WithDialer(s.link.dial), zk.WithHostProvider(&zkhosts.Hosts{}),
		zk.WithEventCallback(s.event), zk.WithLogger(quiet{log}), zk.WithLogInfo(false))
	if err != nil {
		return nil, fmt.Errorf("connect to zookeeper %s: %w", cfg.ZooKeeper, err)
	}
	s.conn = conn
	s.calls.Go(func() { // ends when the library has ended
		for range events { //nolint:revive // the callback has seen them all; the channel only tells the end
		}
	})
	if err := s.awaitGrant(ctx, cfg); err != nil {
		s.Close()
		return nil, fmt.Errorf("connect to zookeeper %s: %w", cfg.ZooKeeper, err)
	}
	s.calls.Go(s.beat)
	s.log.Info("zookeeper session begins", "session", s.id, "timeout", s.timeout.String())
	return s, nil
}

// When it is said that ZooKeeper is waited for: soon, and then every now and then.
const (
	firstNotice = time.Second
	noticeAfter = 10 * time.Second
)

// awaitGrant waits until ZooKeeper has granted the session.
func (s *Session) awaitGrant(ctx context.Context, cfg Config) error {
	timer := time.NewTimer(firstNotice)
	defer timer.Stop()
	for {
		select {
		case <-s.first:
			return nil
		case <-timer.C:
			timer.Reset(noticeAfter)
			s.log.Warn("waiting for zookeeper", "servers", cfg.ZooKeeper, "err", s.link.trouble())
			if cfg.Waiting != nil {
				cfg.Waiting(s.link.trouble())
			}
		case <-ctx.Done():
			if trouble := s.link.trouble(); trouble != nil {
				return fmt.Errorf("%w: %w", ctx.Err(), trouble)
			}
			return ctx.Err()
		}
	}
}

// sessionID is how Java writes a session id: lower-case hex of the unsigned number.
func sessionID(id int64) string { return strconv.FormatUint(uint64(id), 16) }

// ID is the session's id as Helix writes it.
func (s *Session) ID() string { return s.id }

// Timeout is what ZooKeeper granted: it forgets the session when it has not heard of it for so long.
func (s *Session) Timeout() time.Duration { return s.timeout }

// Done is closed when the session is over.
func (s *Session) Done() <-chan struct{} { return s.done }

// Err says why the session is over: ErrExpired or ErrClosed; nil while it lives.
func (s *Session) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Connected says whether there is a connection at the moment, as far as known.
func (s *Session) Connected() bool { return s.connected.Load() }

// Trouble is why no server could be reached at the last attempt; nil if one was.
func (s *Session) Trouble() error { return s.link.trouble() }

// Links counts the connections that have had the session. Between two readings that agree no connection was lost and made again.
func (s *Session) Links() int64 { return s.links.Load() }

// Silence is the time since the start of the last request that was answered. While it is shorter than Timeout, the session exists for sure:
// ZooKeeper has counted its time-out from the arrival of that request at the earliest.
func (s *Session) Silence() time.Duration {
	return time.Since(s.began) - time.Duration(s.answered.Load())
}

// SilenceLimit is the silence after which whoever depends on the session should stop, so that it has stopped when the session is forgotten.
func (s *Session) SilenceLimit() time.Duration { return s.timeout * 2 / 3 }

// Close ends the session at ZooKeeper too, if it can be reached, which removes its ephemeral nodes at once; else it takes a few seconds, and
// ZooKeeper waits for the session's time-out. It may be called again.
func (s *Session) Close() {
	s.end(ErrClosed)
	s.conn.Close()
	s.link.close() // the library would wait for the server to speak
	s.calls.Wait()
}

// end makes the session over, once.
func (s *Session) end(why error) {
	s.link.refuse() // first: the library would ask for another session in this one's name
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return
	}
	s.err = why
	s.watches = map[watchKey][]*watch{}
	s.connected.Store(false)
	close(s.done)
}

// event is called by the library, one call at a time, on its own goroutine: it must not block.
func (s *Session) event(e zk.Event) {
	if e.Type != zk.EventSession {
		s.notify(e)
		return
	}
	switch e.State { //nolint:exhaustive // what is on the way between these concerns nobody
	case zk.StateHasSession:
		s.begin()
	case zk.StateDisconnected:
		if s.connected.Swap(false) {
			s.log.Info("zookeeper connection lost", "session", s.id)
		}
	case zk.StateExpired:
		s.log.Warn("zookeeper session expired", "session", s.id)
		s.end(ErrExpired)
	}
}

// begin notes that a connection has the session: the first one, or one of those after it.
func (s *Session) begin() {
	id, timeout, asked := s.link.granted()
	s.answer(asked)
	s.links.Add(1)
	s.connected.Store(true)
	select {
	case <-s.first:
		if sessionID(id) != s.id { // can't be, since the link refuses; a write in another session would be the worst of all
			s.end(ErrExpired)
		}
	default:
		s.id, s.timeout = sessionID(id), timeout
		close(s.first)
	}
}

// beatsPerTimeout is how often a session proves that it lives. The library pings thrice, but does not tell when a ping is answered.
const beatsPerTimeout = 6

// beat asks for something small, so that Silence stays short while ZooKeeper answers.
func (s *Session) beat() {
	ticker := time.NewTicker(s.timeout / beatsPerTimeout)
	defer ticker.Stop()
	for {
		select {
		case <-s.done:
			return
		case <-ticker.C:
		}
		// A beat that waited for a new connection is old when it is answered: the next one follows at once.
		for began := time.Now(); s.beatOnce() && time.Since(began) > s.timeout/beatsPerTimeout; began = time.Now() {
			continue
		}
	}
}

// beatOnce returns after an answer, or false when there was none.
func (s *Session) beatOnce() bool {
	err := s.once(context.Background(), func() error { //nolint:forbidigo // it ends with the session
		_, _, err := s.conn.Exists(s.full("/"))
		return err
	})
	return err == nil
}

// answer notes that a request begun at that time was answered.
func (s *Session) answer(start time.Time) {
	at := int64(start.Sub(s.began))
	for {
		old := s.answered.Load()
		if at <= old || s.answered.CompareAndSwap(old, at) {
			return
		}
	}
}

// full is the path as ZooKeeper knows it.
func (s *Session) full(path string) string {
	if s.chroot != "" && path == "/" {
		return s.chroot
	}
	return s.chroot + path
}

// once sends one request. The context's end leaves it alone: it may still be carried out.
func (s *Session) once(ctx context.Context, call func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	if s.err != nil {
		defer s.mu.Unlock()
		return s.err
	}
	s.calls.Add(1) // under the lock, or Close might have stopped waiting
	s.mu.Unlock()
	result, start := make(chan error, 1), time.Now()
	go func() { // owned by the session: Close waits for it
		defer s.calls.Done()
		err := classify(call())
		if err == nil || isAnswer(err) {
			s.answer(start)
		}
		result <- err
	}()
	select {
	case err := <-result:
		if over := s.Err(); over != nil && errors.Is(err, ErrLost) {
			return over
		}
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-s.done:
		return s.Err()
	}
}

// do sends a request and gives it again if it was not sent, or if it may be repeated and its answer was lost.
func (s *Session) do(ctx context.Context, op, path string, repeatable bool, call func() error) error {
	for {
		err := s.once(ctx, call)
		if errors.Is(err, errUnsent) || repeatable && errors.Is(err, ErrLost) {
			continue
		}
		if err != nil {
			return &OpError{Op: op, Path: path, Err: err}
		}
		return nil
	}
}

// quiet passes on what the library says for people who look for trouble.
type quiet struct{ log hclog.Logger }

// Printf is the library's logger.
func (q quiet) Printf(format string, args ...any) {
	if q.log.IsDebug() {
		q.log.Debug("zookeeper client", "says", fmt.Sprintf(format, args...))
	}
}
