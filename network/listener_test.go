package network

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
)

// limit is for what must happen soon.
const limit = 20 * time.Second

// door is a listener on a port of its own whose accepted connections the test holds.
type door struct {
	*Listener

	t        *testing.T
	accepted chan net.Conn
}

func open(t *testing.T, q Quotas) *door {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	d := &door{Listener: NewListener(l, q, NewMetrics("test", "@a@b@1", prometheus.NewRegistry())), t: t, accepted: make(chan net.Conn)}
	var wg sync.WaitGroup
	done := make(chan struct{})
	wg.Go(func() {
		for {
			c, err := d.Accept()
			if err != nil {
				return
			}
			select {
			case d.accepted <- c:
			case <-done:
				_ = c.Close()
				return
			}
		}
	})
	t.Cleanup(func() {
		_ = d.Close()
		close(done)
		wg.Wait()
	})
	return d
}

// dial connects from an address of this machine.
func (d *door) dial(from string) net.Conn {
	d.t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: limit}
	c, err := dialer.DialContext(d.t.Context(), "tcp", d.Addr().String())
	require.NoError(d.t, err)
	d.t.Cleanup(func() { _ = c.Close() })
	return c
}

// enter connects and is let in.
func (d *door) enter(from string) (client, server net.Conn) {
	d.t.Helper()
	client = d.dial(from)
	select {
	case server = <-d.accepted:
	case <-time.After(limit):
		require.Fail(d.t, "nobody is let in")
	}
	d.t.Cleanup(func() { _ = server.Close() })
	return client, server
}

// requireClosed waits until the other side has closed a connection.
func requireClosed(t *testing.T, c net.Conn) {
	t.Helper()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(limit)))
	_, err := c.Read(make([]byte, 1))
	require.Error(t, err)
	var late net.Error
	require.False(t, errors.As(err, &late) && late.Timeout(), "it is still open")
}

// requireOpen sends a byte from the one end to the other.
func requireOpen(t *testing.T, client, server net.Conn) {
	t.Helper()
	_, err := client.Write([]byte{1})
	require.NoError(t, err)
	require.NoError(t, server.SetReadDeadline(time.Now().Add(limit)))
	_, err = io.ReadFull(server, make([]byte, 1))
	require.NoError(t, err)
}

func TestAnAddressHasNoMoreThanItsQuota(t *testing.T) {
	t.Parallel()
	d := open(t, Quotas{PerAddress: 2, Overrides: map[string]int{"127.0.0.3": 3, "127.0.0.4": 0}, Total: 100})
	requireClosed(t, d.dial("127.0.0.4"))
	for from, quota := range map[string]int{"127.0.0.2": 2, "127.0.0.3": 3} {
		var first net.Conn
		for range quota {
			client, server := d.enter(from)
			requireOpen(t, client, server)
			first = server
		}
		requireClosed(t, d.dial(from))
		require.NoError(t, first.Close())
		_ = first.Close() // a place is given free once
		d.enter(from)
		requireClosed(t, d.dial(from))
	}
	require.InDelta(t, 5, testutil.ToFloat64(d.metrics.refused), 0)
	require.InDelta(t, 5, testutil.ToFloat64(d.metrics.connections), 0)
}

func TestTheOneThatIsIdleForLongestMakesRoom(t *testing.T) {
	t.Parallel()
	d := open(t, Quotas{PerAddress: 100, Total: 3})
	var clients, servers []net.Conn
	enter := func() {
		client, server := d.enter("127.0.0.1")
		clients, servers = append(clients, client), append(servers, server)
	}
	for range 3 {
		enter()
	}
	d.SetIdle(servers[0], false)
	d.SetIdle(servers[1], false)
	d.SetIdle(servers[1], true) // after the third
	enter()
	requireClosed(t, clients[2])
	enter()
	requireClosed(t, clients[1])
	d.SetIdle(servers[3], false)
	d.SetIdle(servers[4], false)
	d.SetIdle(servers[2], true) // it has no place any more
	requireClosed(t, d.dial("127.0.0.1"))
	for _, i := range []int{0, 3, 4} {
		requireOpen(t, clients[i], servers[i])
	}
	require.InDelta(t, 2, testutil.ToFloat64(d.metrics.evicted), 0)
	require.InDelta(t, 1, testutil.ToFloat64(d.metrics.refused), 0)
	require.InDelta(t, 3, testutil.ToFloat64(d.metrics.connections), 0)
	_ = servers[1].Close() // was closed before
	require.InDelta(t, 3, testutil.ToFloat64(d.metrics.connections), 0)
}

// TestPlacesAreCountedRight lets connections come, work, rest and go at once, against listeners without sockets.
func TestPlacesAreCountedRight(t *testing.T) {
	t.Parallel()
	const total = 20
	l := NewListener(nil, Quotas{PerAddress: 7, Total: total}, NewMetrics("test", "@a@b@1", prometheus.NewRegistry()))
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(n), 0))
			var mine []*conn
			for range 3000 {
				if i := random.IntN(len(mine) + 1); i == len(mine) {
					ours, theirs := net.Pipe()
					c := &conn{Conn: ours, places: l.places, address: string(rune('a' + random.IntN(5)))}
					_ = theirs.Close()
					if _, taken := l.take(c); taken {
						mine = append(mine, c)
					}
				} else if c := mine[i]; random.IntN(3) == 0 {
					_ = c.Close()
					mine = append(mine[:i], mine[i+1:]...)
				} else {
					l.SetIdle(c, random.IntN(2) == 0)
				}
				l.mu.Lock()
				open, idle, of := l.open, l.idle.Len(), 0
				for _, k := range l.from {
					of += k
				}
				l.mu.Unlock()
				if open > total || open < 0 || idle > open || of != open {
					t.Errorf("%d open, %d of them idle, %d by address", open, idle, of)
				}
			}
			for _, c := range mine {
				_ = c.Close()
			}
		})
	}
	wg.Wait()
	require.Zero(t, l.open)
	require.Empty(t, l.from)
	require.Zero(t, l.idle.Len())
	require.InDelta(t, 0, testutil.ToFloat64(l.metrics.connections), 0)
}

func TestPool(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewPedanticRegistry()
	p := NewPool(2, "test", "@a@b@1", reg)
	NewPool(2, "other", "@a@b@1", reg)
	NewMetrics("test", "@a@b@1", reg)
	require.True(t, p.Take())
	require.InDelta(t, 0.5, p.idle(), 0)
	require.True(t, p.Take())
	require.False(t, p.Take())
	require.InDelta(t, 1, testutil.ToFloat64(p.refused), 0)
	require.InDelta(t, 0, p.idle(), 0)
	p.Give()
	require.True(t, p.Take())
	found, err := testutil.GatherAndLint(reg)
	require.NoError(t, err)
	require.Empty(t, found)
}
