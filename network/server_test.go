package network

import (
	"context"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

// serve runs Serve on a port of its own until the returned function is called, which gives its error.
func serve(t *testing.T, q Quotas, drain time.Duration, handle Handle) (l *Listener, end func() error) {
	t.Helper()
	raw, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l = NewListener(raw, q, NewMetrics("test", "@a@b@1", prometheus.NewRegistry()))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, l, drain, handle) }()
	t.Cleanup(cancel)
	return l, func() error {
		cancel()
		return <-done
	}
}

func dialed(t *testing.T, l net.Listener) net.Conn {
	t.Helper()
	c, err := (&net.Dialer{Timeout: limit}).DialContext(t.Context(), "tcp", l.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestWhatIsInFlightHasTimeAtTheEnd(t *testing.T) {
	t.Parallel()
	began, stopped := make(chan struct{}), make(chan struct{})
	l, end := serve(t, Quotas{PerAddress: 10, Total: 10}, limit, func(ctx, stop context.Context, c net.Conn) {
		close(began)
		<-stop.Done()
		close(stopped)
		if ctx.Err() == nil {
			_, _ = c.Write([]byte{1}) // the client reads it
		}
	})
	c := dialed(t, l)
	<-began
	require.NoError(t, end())
	<-stopped
	require.NoError(t, c.SetReadDeadline(time.Now().Add(limit)))
	n, err := c.Read(make([]byte, 1))
	require.NoError(t, err)
	require.Equal(t, 1, n)
	requireClosed(t, c)
}

func TestWhoDoesNotEndInTimeIsCut(t *testing.T) {
	t.Parallel()
	began := make(chan struct{})
	l, end := serve(t, Quotas{PerAddress: 10, Total: 10}, time.Millisecond, func(ctx, _ context.Context, _ net.Conn) {
		close(began)
		<-ctx.Done()
	})
	c := dialed(t, l)
	<-began
	require.NoError(t, end())
	requireClosed(t, c)
}

// TestListenersBesideEachOtherShareTheirQuotas: what comes in through one has its place from both.
func TestListenersBesideEachOtherShareTheirQuotas(t *testing.T) {
	t.Parallel()
	l, end := serve(t, Quotas{PerAddress: 2, Total: 10}, time.Millisecond, func(ctx, _ context.Context, _ net.Conn) { <-ctx.Done() })
	raw, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	beside := l.Beside(raw)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	accepted := make(chan struct{}, 10)
	go func() {
		done <- Serve(ctx, beside, time.Millisecond, func(ctx, _ context.Context, _ net.Conn) {
			accepted <- struct{}{}
			<-ctx.Done()
		})
	}()
	for range 2 {
		dialed(t, beside)
		<-accepted
	}
	requireClosed(t, dialed(t, l))
	cancel()
	require.NoError(t, <-done)
	require.NoError(t, end())
}

// scarce is a listener that has too few files for a while, and then fails.
type scarce struct {
	net.Listener

	calls atomic.Int32
	fails error
}

func (s *scarce) Accept() (net.Conn, error) {
	if s.calls.Add(1) < 4 {
		return nil, syscall.EMFILE
	}
	return nil, s.fails
}

func TestAnAcceptThatFailsForAWhileIsTriedAgain(t *testing.T) {
	t.Parallel()
	raw, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &scarce{Listener: raw, fails: net.ErrClosed}
	l := NewListener(s, Quotas{PerAddress: 1, Total: 1}, NewMetrics("test", "@a@b@1", prometheus.NewRegistry()))
	err = Serve(t.Context(), l, time.Millisecond, func(context.Context, context.Context, net.Conn) {})
	require.ErrorIs(t, err, net.ErrClosed)
	require.Equal(t, int32(4), s.calls.Load())
	require.NoError(t, raw.Close())
}
