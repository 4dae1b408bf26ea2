package wire

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/causeway-mirror/causeway/internal/backoff"
)

// control is the client's shared connection to one address. One caller at a time dials it; the others wait and use what it got. After a
// failure it is not dialled again for a while, and callers get that failure at once.
type control struct {
	turn chan struct{} // held while dialling; guards wait, until and last

	wait  *backoff.Backoff
	until time.Time
	last  error

	mu     sync.Mutex
	conn   *Conn
	cancel context.CancelFunc // of a dial that is going on
	closed bool
}

func newControl(cfg Config) *control {
	return &control{
		turn: make(chan struct{}, 1),
		wait: backoff.New(cfg.RedialBackoff, cfg.RedialLimit, newRand()),
	}
}

func newRand() *rand.Rand { return rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())) }

// control gives the connection to a broker, dialled if there is none.
func (c *Client) control(ctx context.Context, b Broker, timeout time.Duration) (*Conn, error) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, &LinkError{Op: "use client", Broker: b.ID, Addr: b.Addr, Err: ErrClosed}
	}
	ctl := c.controls[b.Addr]
	if ctl == nil {
		ctl = newControl(c.cfg)
		c.controls[b.Addr] = ctl
	}
	c.mu.Unlock()
	if conn := ctl.live(); conn != nil {
		return conn, nil
	}
	select {
	case ctl.turn <- struct{}{}:
		defer func() { <-ctl.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if conn := ctl.live(); conn != nil {
		return conn, nil
	}
	if time.Now().Before(ctl.until) {
		return nil, ctl.last
	}
	conn, err := ctl.open(ctx, func(ctx context.Context) (*Conn, error) { return c.dial(ctx, b.ID, b.Addr, timeout) })
	switch {
	case err == nil:
		ctl.wait.Reset()
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, ErrClosed):
		return nil, &LinkError{Op: "open connection", Broker: b.ID, Addr: b.Addr, Err: ErrClosed}
	default:
		ctl.last, ctl.until = err, time.Now().Add(ctl.wait.Next())
		c.log.Debug("broker not reached", "broker", b.ID, "addr", b.Addr, "err", err, "failures", ctl.wait.Failures())
	}
	return conn, err
}

// open dials so that close can end it.
func (k *control) open(ctx context.Context, dial func(context.Context) (*Conn, error)) (*Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	k.mu.Lock()
	if k.closed {
		k.mu.Unlock()
		return nil, ErrClosed
	}
	k.cancel = cancel
	k.mu.Unlock()
	conn, err := dial(ctx)
	k.mu.Lock()
	k.cancel = nil
	closed := k.closed
	if err == nil && !closed {
		k.conn = conn
	}
	k.mu.Unlock()
	if !closed {
		return conn, err
	}
	if err == nil {
		conn.Close()
	}
	return nil, ErrClosed
}

// live gives the connection if there is one that works.
func (k *control) live() *Conn {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.conn == nil || k.conn.Err() != nil {
		return nil
	}
	return k.conn
}

// close ends the connection, or the dial that would make one, and waits for it.
func (k *control) close() {
	k.mu.Lock()
	k.closed = true
	if k.cancel != nil {
		k.cancel()
	}
	conn := k.conn
	k.mu.Unlock()
	k.turn <- struct{}{} // whoever dials has let go
	<-k.turn
	if conn != nil {
		conn.Close()
	}
}
