package wire

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// errCancelled stands for the end of a caller's context, which lock does not know.
var errCancelled = errors.New("cancelled")

// Call sends a request in the newest version that both ends speak and waits for its answer. When ctx ends first the answer is dropped as
// it comes; the connection lives on. Protocol error codes are the caller's to look at.
func (c *Conn) Call(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	v := c.MaxVersion(req.Key())
	if v < 0 {
		return nil, fmt.Errorf("send %s: %w", kmsg.NameForKey(req.Key()), ErrUnsupported)
	}
	req.SetVersion(v)
	return c.call(ctx, req)
}

// call is Call in the version that the request has.
func (c *Conn) call(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	w := c.newWaiter(req)
	if err := c.submit(ctx, w, req); err != nil {
		return nil, err
	}
	return c.wait(ctx, w)
}

// callLocked is call for who holds sem already.
func (c *Conn) callLocked(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	w := c.newWaiter(req)
	if err := c.sendLocked(w, req); err != nil {
		return nil, err
	}
	return c.wait(ctx, w)
}

func (c *Conn) newWaiter(req kmsg.Request) *waiter {
	w := &waiter{key: req.Key(), timeout: c.cfg.RequestTimeout, resp: req.ResponseKind(), ready: make(chan struct{})}
	switch r := req.(type) {
	case *kmsg.FetchRequest:
		w.timeout += time.Duration(max(r.MaxWaitMillis, 0)) * time.Millisecond
	case kmsg.TimeoutRequest:
		w.timeout += time.Duration(max(r.Timeout(), 0)) * time.Millisecond
	}
	return w
}

func (c *Conn) submit(ctx context.Context, w *waiter, req kmsg.Request) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := c.lock(ctx.Done()); err != nil {
		if errors.Is(err, errCancelled) {
			return ctx.Err()
		}
		return err
	}
	defer c.unlock()
	return c.sendLocked(w, req)
}

func (c *Conn) sendLocked(w *waiter, req kmsg.Request) error {
	c.corr++
	w.corr = c.corr
	w.size = c.out.request(c.format, req, w.corr)
	return c.writeLocked(w)
}

// writeLocked queues w and writes what c.out holds. Once queued, a failure reaches w through the reader, in its turn, so it is no error here.
func (c *Conn) writeLocked(w *waiter) error {
	if err := c.push(w); err != nil {
		c.out.reset()
		return err
	}
	err := c.out.flush()
	if err != nil {
		c.fail("write "+kmsg.NameForKey(w.key), err)
	}
	c.mu.Lock()
	w.written = true
	c.cond.Broadcast()
	c.mu.Unlock()
	return nil
}

func (c *Conn) wait(ctx context.Context, w *waiter) (kmsg.Response, error) {
	select {
	case <-w.ready:
	case <-ctx.Done():
		if c.abandon(w) {
			return nil, ctx.Err()
		}
		<-w.ready
	}
	if w.err != nil {
		return nil, w.err
	}
	return w.resp, nil
}

// abandon says that nobody waits for w any more. It is false when the answer came in the same moment.
func (c *Conn) abandon(w *waiter) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.finished {
		return false
	}
	w.abandoned = true
	if w.pool != nil && !w.taken {
		w.pool.Budget().Return(w.reserved)
	}
	return true
}

// lock takes the right to write: its turn, the end of a throttle, and a session that is not about to end. Without an error the caller
// must unlock.
func (c *Conn) lock(cancel <-chan struct{}) error {
	select {
	case c.sem <- struct{}{}:
	case <-c.failed:
		return c.Err()
	case <-cancel:
		return errCancelled
	}
	if err := c.readyLocked(cancel); err != nil {
		c.unlock()
		return err
	}
	return nil
}

func (c *Conn) unlock() { <-c.sem }

func (c *Conn) readyLocked(cancel <-chan struct{}) error {
	for d := c.Throttled(); d > 0; d = c.Throttled() {
		if err := c.pause(d, cancel); err != nil {
			return err
		}
	}
	if err := c.Err(); err != nil {
		return err
	}
	if c.login.renew == nil || time.Now().Before(c.login.due) {
		return nil
	}
	if err := c.login.renew(); err != nil {
		c.fail("re-authenticate", err)
		return c.Err()
	}
	return nil
}

func (c *Conn) pause(d time.Duration, cancel <-chan struct{}) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-c.failed:
		return c.Err()
	case <-cancel:
		return errCancelled
	}
}

// drainLocked waits until everything is answered. The answers' deadlines bound it.
func (c *Conn) drainLocked() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.waiting.head != nil && c.err == nil {
		c.cond.Wait()
	}
	return c.err
}
