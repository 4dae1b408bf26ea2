package main

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/route"
)

// shelf is a store of events; a mark is how many were read.
type shelf struct {
	mu    sync.Mutex
	texts [][]byte
	err   error
}

func (s *shelf) put(t *testing.T, e events.Event) {
	t.Helper()
	text, err := json.Marshal(e)
	require.NoError(t, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.texts, s.err = append(s.texts, text), nil
}

func (s *shelf) EventsAfter(_ context.Context, mark string) (found [][]byte, next string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, _ := strconv.Atoi(mark)
	return s.texts[n:], strconv.Itoa(len(s.texts)), s.err
}

func TestErrorsOfTheWorkersAreShownWithTheControllersOwnEvents(t *testing.T) {
	log := events.NewLog(route.Route{Source: "a", Target: "b", ID: "1"}, "c1", 100, hclog.NewNullLogger(), prometheus.NewRegistry())
	store := &shelf{err: errors.New("zookeeper is silent")}
	h := &happened{own: log, store: store, log: hclog.NewNullLogger()}
	hourAgo := time.Now().Add(-time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { // owned by the test, which waits for ended
		defer close(ended)
		h.follow(ctx, time.Millisecond)
	}()
	defer func() { cancel(); <-ended }()
	// until waits for an event with a message and gives all of them.
	until := func(since int64, message string) []events.Event {
		for deadline := time.Now().Add(limit); ; <-time.After(time.Millisecond) {
			found := h.Since(since)
			if n := len(found); n > 0 && found[n-1].Message == message {
				return found
			}
			require.True(t, time.Now().Before(deadline), "%+v", found)
		}
	}
	store.mu.Lock()
	store.texts = append(store.texts, []byte("no JSON"))
	store.mu.Unlock()
	store.put(t, events.Event{ID: 7, Time: hourAgo, Worker: "w1", Type: events.PartitionHalted, Severity: events.Error, Message: "old"})
	until(0, "old")
	own := log.Emit(events.Event{Type: events.LeaderChanged, Severity: events.Info, Message: "own"})
	found := until(0, "own")
	require.Len(t, found, 2)
	require.Equal(t, hourAgo.UnixMicro(), found[0].ID)
	require.Less(t, found[0].ID, own.ID)

	store.put(t, events.Event{ID: 8, Time: hourAgo, Worker: "w2", Type: events.DiskFull, Severity: events.Error, Message: "new, by a clock that is late"})
	require.True(t, h.Await(t.Context(), limit, events.DiskFull, func() bool { return len(h.Since(own.ID)) > 0 }))
	found = until(own.ID, "new, by a clock that is late")
	require.Len(t, found, 1)
	require.Equal(t, "w2", found[0].Worker)
	require.Greater(t, found[0].ID, own.ID)
	require.True(t, found[0].Time.Equal(hourAgo))
}
