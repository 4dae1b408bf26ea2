package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// Handle serves one connection until it ends. When stop ends it takes no more requests, and returns when what is in flight is answered; when ctx
// ends it returns at once. It need not close the connection.
type Handle func(ctx, stop context.Context, conn net.Conn)

// Serve accepts what the listener lets in and hands each connection to a goroutine of its own, until ctx ends. Then nobody comes in any more,
// what is in flight has the drain time to be answered, and Serve returns when all connections are closed. A listener that fails is an error;
// an accept that fails for lack of something that comes back is tried again.
func Serve(ctx context.Context, l *Listener, drain time.Duration, handle Handle) error {
	work, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	stop, stopAll := context.WithCancel(ctx)
	defer stopAll()
	closing := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer closing()
	var conns sync.WaitGroup
	err := accept(ctx, l, func(c net.Conn) {
		conns.Go(func() {
			defer c.Close() // what was to be told is told
			handle(work, stop, c)
		})
	})
	stopAll()
	force := time.AfterFunc(drain, cut)
	defer force.Stop()
	conns.Wait()
	return err
}

// accept gives connections on until ctx ends or the listener fails.
func accept(ctx context.Context, l *Listener, give func(net.Conn)) error {
	const pause = 50 * time.Millisecond
	for {
		c, err := l.Accept()
		switch {
		case err == nil:
			give(c)
		case ctx.Err() != nil:
			return nil //nolint:nilerr // it is closed because it is to end
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("accept on %s: %w", l.Addr(), err)
		default: // such as too many open files: some will be closed
			timer := time.NewTimer(pause)
			select {
			case <-timer.C:
			case <-ctx.Done():
			}
			timer.Stop()
		}
	}
}
