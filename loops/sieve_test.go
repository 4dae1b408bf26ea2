package loops

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
)

// dropper is a route that drops, and copies one topic under its name.
func (w world) dropper(from, to string, topics ...string) *mirror {
	m := w.mirror(from, to, topics...)
	m.cfg.Drop = true
	m.Watch = NewWatch(m.cfg, w[from], w[to], hclog.NewNullLogger(), m.events)
	return m
}

// verdict waits until it is known whether an id is a mirror's.
func (m *mirror) verdict(t *testing.T, topic string, id int64) bool {
	t.Helper()
	s := m.Sieve(topic)
	copies, known := s.Copies(id)
	if !known {
		told := make(chan struct{})
		s.Ask([]int64{id}, func() { close(told) })
		<-told
		copies, known = s.Copies(id)
	}
	require.True(t, known, id)
	return copies
}

// An id that the other route begins to write with is known when it is first seen, without anybody's telling, and stays known when the marker is gone.
func TestSieveKnowsTheIDsOfTheRouteBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := world{}
		there, back := w.dropper("A", "B", "t"), w.dropper("B", "A", "t")
		for _, m := range []*mirror{there, back} {
			require.Empty(t, m.begin(t.Context()))
			go m.Sift(t.Context()) // owned by the bubble, which waits for it
			time.Sleep(time.Second)
		}
		require.NoError(t, there.Announce(t.Context(), "t", 4711))
		require.True(t, back.verdict(t, "t", 4711))
		require.False(t, back.verdict(t, "t", 4712), "of a program that writes there")
		require.False(t, back.verdict(t, "t", -1), "a batch of no producer")
		require.NoError(t, there.Announce(t.Context(), "t", 4713))
		require.True(t, back.verdict(t, "t", 4713))
		require.False(t, there.verdict(t, "t", 4711), "it is of the other cluster")
		require.Empty(t, there.review(t.Context()))
		require.Empty(t, back.review(t.Context()))

		m, err := Parse(w["B"].notes[Group("@A@B@1")]["t"])
		require.NoError(t, err)
		require.Equal(t, []int64{there.ends.Producer, 4711, 4713}, []int64{m.Hops[0].Producers[2], m.Hops[0].Producers[0], m.Hops[0].Producers[1]})

		w["B"].notes[Group("@A@B@1")] = nil // as a broker does after a week
		back = w.dropper("B", "A", "t")
		require.Empty(t, back.begin(t.Context()))
		go back.Sift(t.Context()) // owned by the bubble
		require.True(t, back.verdict(t, "t", 4711))
	})
}

func TestWhoeverSeesTheMarkersLateWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := world{}
		there, back := w.dropper("A", "B", "t"), w.dropper("B", "A", "t")
		require.Empty(t, there.begin(t.Context()))
		require.Empty(t, back.begin(t.Context()))
		go back.Sift(t.Context()) // owned by the bubble
		w["B"].fail(kerr.CoordinatorNotAvailable)
		told := make(chan struct{})
		s := back.Sieve("t")
		s.Ask([]int64{4711}, func() { close(told) })
		time.Sleep(time.Minute)
		synctest.Wait()
		_, known := s.Copies(4711)
		require.False(t, known)
		w["B"].fail(nil)
		require.NoError(t, there.Announce(t.Context(), "t", 4711))
		<-told
		copies, known := s.Copies(4711)
		require.True(t, known && copies)
	})
}

// Nothing may be sent with an id that no marker names.
func TestIDThatCannotBeNamedIsAnError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := world{}
		m := w.dropper("A", "B", "t")
		require.Empty(t, m.begin(t.Context()))
		for _, side := range []string{"A", "B"} {
			w[side].fail(kerr.GroupAuthorizationFailed)
			m.review(t.Context())
			require.ErrorIs(t, m.Announce(t.Context(), "t", 1), kerr.GroupAuthorizationFailed, side)
			w[side].fail(nil)
			require.NoError(t, m.Announce(t.Context(), "t", 1))
		}
		w["B"].notes[Group("@A@B@1")] = nil // its topic was made anew
		require.NoError(t, m.Announce(t.Context(), "t", 1))
		require.Contains(t, w["B"].notes[Group("@A@B@1")]["t"], `"producers":[1,`)
		require.ErrorIs(t, m.Announce(t.Context(), "u", 1), ErrUnannounced)
		many := make([]int64, 1000)
		for i := range many {
			many[i] = int64(1_000_000 + i)
		}
		require.ErrorIs(t, m.Announce(t.Context(), "t", many...), ErrUnannounced)
		m.review(t.Context())
		require.Contains(t, w["B"].notes[Group("@A@B@1")]["t"], `"producers":[1,`, "what it is written with is not named any more")
		require.NoError(t, m.Announce(t.Context(), "t", 2), "ids for which there is no room were kept")
	})
}

// A pair in which one route no longer drops is refused, and that one gives way.
func TestRouteThatNoLongerDropsGivesWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := world{}
		there := w.dropper("A", "B", "t")
		require.Empty(t, there.begin(t.Context()))
		time.Sleep(time.Second)
		back := w.dropper("B", "A", "t")
		require.Empty(t, back.begin(t.Context()))
		time.Sleep(time.Second)
		there = w.mirror("A", "B", "t")
		refused := there.begin(t.Context())
		require.Len(t, refused, 1)
		require.ErrorContains(t, refused["t"], "both must say loops: drop")
		require.Empty(t, back.review(t.Context()))
	})
}
