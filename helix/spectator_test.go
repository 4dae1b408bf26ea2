package helix

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

func newRegistry() *prometheus.Registry { return prometheus.NewRegistry() }

// TestSpectator is HS1 and more: it knows who serves what, and a view that changes is read once, however many there are.
func TestSpectator(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.cfg.Cluster
	view := func(resource, instance string, state State) []byte {
		record := NewRecord(resource)
		record.Map["0"] = map[string]string{instance: string(state)}
		return encoded(t, record)
	}
	const n = 1000
	require.NoError(t, r.session().Each(t.Context(), n, func(ctx context.Context, i int) error {
		name := fmt.Sprint("topic-", i)
		return r.session().Create(ctx, c.externalView(name), view(name, "a_1", Online))
	}))
	require.NoError(t, r.session().Create(t.Context(), c.externalView("torn"), []byte("}")))
	r.puppet("a_1")

	s := NewSpectator(r.open(r.cfg), c, testLog(t))
	var reads atomic.Int64
	s.follow.reads = func(n int) { reads.Add(int64(n)) }
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	await(t, "the first reading", s.Ready())
	require.Len(t, s.Resources(), n)
	require.Equal(t, []Instance{{Name: "a_1", Host: "a", Port: "1", Enabled: true, Disabled: map[string][]string{}}}, s.Serving("topic-7", "0"))
	require.Empty(t, s.Serving("topic-7", "1"))
	require.Empty(t, s.Serving("nothing", "0"))
	require.Len(t, s.Live(), 1)

	serving := func(resource string, want int) {
		t.Helper()
		eventually(t, func() error {
			if have := len(s.Serving(resource, "0")); have != want {
				return fmt.Errorf("%d serve %s", have, resource)
			}
			return nil
		})
	}
	before := reads.Load()
	require.NoError(t, r.session().Put(t.Context(), c.externalView("topic-7"), view("topic-7", "a_1", Offline)))
	serving("topic-7", 0)
	require.Equal(t, int64(1), reads.Load()-before, "one change, one read")

	require.NoError(t, r.session().Put(t.Context(), c.externalView("topic-7"), []byte("}"))) // what was known stays
	require.NoError(t, r.session().Delete(t.Context(), c.externalView("topic-8"), AnyVersion))
	serving("topic-8", 0)
	_, ok := s.View("topic-7")
	require.True(t, ok)
	require.NoError(t, r.session().Put(t.Context(), c.externalView("topic-8"), view("topic-8", "b_2", Online)))
	require.NoError(t, r.session().Put(t.Context(), c.externalView("topic-9"), view("topic-9", "b_2", Online)))
	serving("topic-9", 0)
	b := r.puppet("b_2")
	serving("topic-8", 1)
	require.Equal(t, "b", s.Serving("topic-8", "0")[0].Host)
	b.session.Close()
	serving("topic-8", 0)
	cancel()
	require.NoError(t, <-ended)
}

func TestSpectatorEndsWithItsSession(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	session := r.open(r.cfg)
	s := NewSpectator(session, r.cfg.Cluster, testLog(t))
	ended := make(chan error, 1)
	go func() { ended <- s.Run(t.Context()) }()
	await(t, "the first reading", s.Ready())
	session.Close()
	require.ErrorIs(t, <-ended, ErrClosed)
}
