package zk

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	zookeeper "github.com/go-zookeeper/zk"
	"github.com/hashicorp/go-hclog"

	"github.com/causeway-mirror/causeway/internal/backoff"
	"github.com/causeway-mirror/causeway/internal/zkhosts"
	"github.com/causeway-mirror/causeway/offsets"
)

// errClosed says that the store was closed.
var errClosed = errors.New("the store is closed")

// errNoRoot says that the path is not there below which the address says that everything lies.
var errNoRoot = errors.New("zookeeper has no such path, and what is mirrored already would begin anew if it were made here: correct it, or make it once by hand")

// errContended says that others changed the same nodes again and again.
var errContended = errors.New("others write the same nodes all the time")

// Waits between two tries of an operation. The library adds a second after each round through all servers.
const (
	retryLeast = 10 * time.Millisecond
	retryMost  = time.Second
)

// session is the connection for the life of a store. The library brings it back when it is lost, and takes a new session when the old one
// has expired: the store holds neither ephemeral nodes nor watches, so that makes no difference to it.
type session struct {
	cfg    Config
	log    hclog.Logger
	conn   *zookeeper.Conn
	events <-chan zookeeper.Event // closed when the library's goroutines have ended
	stop   context.CancelFunc     // ends a dial

	calls sync.WaitGroup // requests whose caller may have gone
	mu    sync.Mutex
	link  net.Conn // guarded by mu; the last that was dialed
	ended bool     // guarded by mu
	// trouble is why the last operation found ZooKeeper or the store's place out of reach; nil if it did not.
	trouble   error     // guarded by mu
	troubleAt time.Time // guarded by mu
}

// connect begins to connect and does not wait for it.
func connect(ctx context.Context, cfg Config, servers []string, log hclog.Logger) (*session, error) {
	s := &session{cfg: cfg, log: log}
	dialing, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = stop
	var err error
	s.conn, s.events, err = zookeeper.Connect(servers, cfg.SessionTimeout,
		zookeeper.WithHostProvider(&zkhosts.Hosts{}),
		zookeeper.WithDialer(func(network, address string, timeout time.Duration) (net.Conn, error) {
			return s.dial(dialing, network, address, timeout)
		}),
		zookeeper.WithEventCallback(s.changed),
		zookeeper.WithLogInfo(false), zookeeper.WithLogger(libraryLog{log}))
	if err != nil {
		stop()
		return nil, fmt.Errorf("connect to zookeeper: %w", err)
	}
	return s, nil
}

func (s *session) dial(ctx context.Context, network, address string, timeout time.Duration) (net.Conn, error) {
	d := net.Dialer{Timeout: timeout}
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		_ = conn.Close() // unused
		return nil, errClosed
	}
	s.link = &bounded{Conn: conn, most: s.cfg.SessionTimeout, first: max(s.cfg.SessionTimeout/6, leastFirst)}
	return s.link, nil
}

// changed logs what becomes of the connection. The library waits for it.
func (s *session) changed(e zookeeper.Event) {
	switch e.State {
	case zookeeper.StateHasSession:
		s.log.Info("connected to zookeeper", "server", e.Server)
	case zookeeper.StateDisconnected:
		s.log.Info("no connection to zookeeper", "server", e.Server)
	case zookeeper.StateExpired:
		s.log.Warn("zookeeper session expired", "server", e.Server)
	default: // on the way from one of these to another
	}
}

// close ends the session, all its requests and goroutines. Closing again does nothing.
func (s *session) close() {
	s.mu.Lock()
	again := s.ended
	s.ended = true
	s.mu.Unlock()
	if again {
		return
	}
	s.stop()
	s.conn.Close() // says good-bye to the server and waits a second at most
	s.mu.Lock()
	if s.link != nil {
		_ = s.link.Close() // the library waits for a silent server much longer
	}
	s.mu.Unlock()
	for open := true; open; { // until the library's goroutines have ended
		_, open = <-s.events
	}
	s.calls.Wait()
}

// call makes one request. The library knows no contexts: a request whose caller has gone ends with its answer or with the connection.
func call[T any](ctx context.Context, s *session, request func(*zookeeper.Conn) (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	var none T
	answers := make(chan answer, 1)
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return none, errClosed
	}
	s.calls.Go(func() {
		value, err := request(s.conn)
		answers <- answer{value, err}
	})
	s.mu.Unlock()
	select {
	case a := <-answers:
		return a.value, a.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// troubleHolds is for how many timeouts a trouble is told that no operation has met or ended since: who waits for the store tries again long before.
const troubleHolds = 6

// note remembers whether an operation found the store.
func (s *session) note(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trouble, s.troubleAt = nil, time.Now()
	if errors.Is(err, offsets.ErrUnavailable) {
		s.trouble = err
	}
}

// troubled is what keeps the store out of reach; nil if nothing is known to.
func (s *session) troubled() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.troubleAt) > troubleHolds*s.cfg.Timeout {
		return nil
	}
	return s.trouble
}

// retry is attempt, remembered unless the caller took it back.
func (s *session) retry(ctx context.Context, op string, try func(context.Context) error) error {
	err := s.attempt(ctx, op, try)
	if ctx.Err() == nil {
		s.note(err)
	}
	return err
}

// attempt tries an operation until it succeeds or fails for another reason than ZooKeeper's absence, but no longer than Timeout. An operation
// that is given up may have been carried out, so its error is not the context's unless that had ended before.
func (s *session) attempt(ctx context.Context, op string, try func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	wait := backoff.New(retryLeast, retryMost, rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())))
	for {
		err := try(within)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, offsets.ErrConflict), errors.Is(err, offsets.ErrCorrupt), errors.Is(err, errClosed):
			return fmt.Errorf("%s: %w", op, err)
		case errors.Is(err, errNoRoot):
			return fmt.Errorf("%s in zookeeper %s: %w: %w", op, s.cfg.Address, offsets.ErrUnavailable, err)
		case refusal(err):
			return &offsets.StorageError{Op: op, Path: s.cfg.Address, Err: err}
		}
		if wait.Wait(within) != nil {
			return fmt.Errorf("%s in zookeeper %s: %w: %v", op, s.cfg.Address, offsets.ErrUnavailable, err) //nolint:errorlint // not the context's error, see above
		}
	}
}

// read is retry for operations that change nothing: they end with the caller's context.
func (s *session) read(ctx context.Context, op string, try func(context.Context) error) error {
	err := s.retry(ctx, op, try)
	if ended := ctx.Err(); ended != nil && errors.Is(err, offsets.ErrUnavailable) {
		return ended
	}
	return err
}

// refusal says whether ZooKeeper said no to the request itself. Everything else, and there are many words for a lost connection, may be
// better next time.
func refusal(err error) bool {
	return slices.ContainsFunc([]error{
		zookeeper.ErrNoAuth, zookeeper.ErrAuthFailed, zookeeper.ErrInvalidACL, zookeeper.ErrInvalidPath, zookeeper.ErrBadArguments,
		zookeeper.ErrNoChildrenForEphemerals, zookeeper.ErrAPIError,
	}, func(no error) bool { return errors.Is(err, no) })
}

// bounded is a connection on which no read waits longer than a session lives, and the first much less. The library lets a server that accepts
// and is silent hold the first answer back for ten times as long, and a server that is just starting accepts connections which it then forgets.
// Only the library's reading goroutine uses it.
type bounded struct {
	net.Conn

	most, first time.Duration
	answered    bool
}

// leastFirst is what the slowest server gets for its first answer, however short its sessions are.
const leastFirst = time.Second

// Read notes the first answer.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.Conn.Read(p)
	b.answered = b.answered || n > 0
	return n, err
}

// SetReadDeadline sets the deadline, or an earlier one.
func (b *bounded) SetReadDeadline(t time.Time) error {
	most := b.most
	if !b.answered {
		most = min(most, b.first)
	}
	if latest := time.Now().Add(most); t.After(latest) {
		t = latest
	}
	return b.Conn.SetReadDeadline(t)
}

// libraryLog takes what the library has to say, which is of lost connections and repeats itself every second.
type libraryLog struct{ log hclog.Logger }

// Printf logs one line.
func (l libraryLog) Printf(format string, args ...any) {
	if l.log.IsDebug() {
		l.log.Debug("zookeeper library", "line", fmt.Sprintf(format, args...))
	}
}
