package engine

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/offsets/bolt"
	"github.com/causeway-mirror/causeway/route"
)

func TestErrorsSurviveARestart(t *testing.T) {
	t.Parallel()
	store, err := bolt.Open(t.TempDir())
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	process := func() (*events.Log, *History, func()) {
		log := events.NewLog(route.Route{Source: "a", Target: "b", ID: "1"}, "w", 100, hclog.NewNullLogger(), prometheus.NewRegistry())
		h := NewHistory(log, store, hclog.NewNullLogger())
		require.NoError(t, h.Load(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- h.Keep(ctx) }()
		return log, h, func() { cancel(); require.NoError(t, <-done) }
	}
	log, _, stop := process()
	log.Emit(events.Event{Type: events.TopicDiscovered, Severity: events.Info, Message: "passing"})
	skipped := log.Emit(events.Of(route.Partition{Topic: "t", Partition: 3}, events.RangeSkipped, events.Error, "skipped").Range(5, 9))
	stop() // at once: what was emitted before is kept all the same

	log, h, stop := process()
	defer stop()
	found := h.Since(0)
	require.Len(t, found, 1)
	require.Equal(t, skipped.ID, found[0].ID)
	require.Equal(t, route.Offset(9), *found[0].LastOffset)
	emitted := make(chan events.Event, 1)
	asked := 0
	require.True(t, h.Await(t.Context(), 10*time.Second, events.RouteDegraded, func() bool {
		if asked++; asked == 1 {
			go func() { emitted <- log.Emit(events.Event{Type: events.RouteDegraded, Severity: events.Error}) }()
		}
		found = h.Since(skipped.ID)
		return len(found) > 0
	}), "a new event wakes who waits")
	fresh := <-emitted
	require.Len(t, found, 1)
	require.Equal(t, fresh.ID, found[0].ID)
}

// TestIDsGrowThoughTheClockWasSetBack: who asks for events after the last one it saw must not miss those of the next process.
func TestIDsGrowThoughTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	store, err := bolt.Open(t.TempDir())
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	ahead := events.Event{ID: time.Now().Add(time.Hour).UnixMicro(), Severity: events.Error}
	text, err := json.Marshal(ahead)
	require.NoError(t, err)
	require.NoError(t, store.SaveEvent(t.Context(), text))
	log := events.NewLog(route.Route{Source: "a", Target: "b", ID: "1"}, "w", 100, hclog.NewNullLogger(), prometheus.NewRegistry())
	require.NoError(t, NewHistory(log, store, hclog.NewNullLogger()).Load(t.Context()))
	require.Greater(t, log.Emit(events.Event{Severity: events.Info}).ID, ahead.ID)
}

// One stored event that was damaged hid all others, let ids begin again, and kept a mirror of one process from starting.
func TestAnUnreadableEventHidesNoOther(t *testing.T) {
	t.Parallel()
	store, err := bolt.Open(t.TempDir())
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	ahead := events.Event{ID: time.Now().Add(time.Hour).UnixMicro(), Severity: events.Error}
	text, err := json.Marshal(ahead)
	require.NoError(t, err)
	for _, one := range [][]byte{[]byte(`[1]`), text, []byte(`{"id":"seven"}`)} {
		require.NoError(t, store.SaveEvent(t.Context(), one))
	}
	log := events.NewLog(route.Route{Source: "a", Target: "b", ID: "1"}, "w", 100, hclog.NewNullLogger(), prometheus.NewRegistry())
	h := NewHistory(log, store, hclog.NewNullLogger())
	require.NoError(t, h.Load(t.Context()))
	found := h.Since(0)
	require.Len(t, found, 1)
	require.Greater(t, log.Emit(events.Event{Severity: events.Info}).ID, ahead.ID)
}
