package events

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/route"
)

// fakeStore keeps events and fails when it is told to.
type fakeStore struct {
	mu   sync.Mutex
	ids  []int64
	fail error
}

func (s *fakeStore) SaveEvent(_ context.Context, text []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return s.fail
	}
	var e Event
	if err := json.Unmarshal(text, &e); err != nil {
		return err
	}
	s.ids = append(s.ids, e.ID)
	return nil
}

func newLog() *Log {
	return NewLog(route.Route{Source: "a", Target: "b", ID: "1"}, "w", 100, hclog.NewNullLogger(), prometheus.NewRegistry())
}

func TestFlushStoresErrorsOnceAndInOrder(t *testing.T) {
	t.Parallel()
	l, s := newLog(), &fakeStore{}
	require.NoError(t, l.Flush(t.Context()), "without a store there is nothing to do")
	l.Keep(s, 1000)
	first := l.Emit(Event{Type: RangeSkipped, Severity: Error})
	l.Emit(Event{Type: TopicDiscovered, Severity: Info})
	l.Emit(Event{Type: DuplicatesPossible, Severity: Warning})
	second := l.Emit(Event{Type: PartitionHalted, Severity: Error})
	require.NoError(t, l.Flush(t.Context()))
	require.NoError(t, l.Flush(t.Context()))
	require.Equal(t, []int64{first.ID, second.ID}, s.ids)
}

func TestFlushTriesAgainWhatFailed(t *testing.T) {
	t.Parallel()
	full := errors.New("full")
	l, s := newLog(), &fakeStore{fail: full}
	l.Keep(s, 1000)
	e := l.Emit(Event{Type: RangeSkipped, Severity: Error})
	require.ErrorIs(t, l.Flush(t.Context()), full)
	s.fail = nil
	require.NoError(t, l.Flush(t.Context()))
	require.Equal(t, []int64{e.ID}, s.ids)
}

func TestOnlyTheNewestWaitForTheStore(t *testing.T) {
	t.Parallel()
	l, s := newLog(), &fakeStore{}
	l.Keep(s, 3)
	var ids []int64
	for range 10 {
		ids = append(ids, l.Emit(Event{Type: RangeSkipped, Severity: Error}).ID)
	}
	require.NoError(t, l.Flush(t.Context()))
	require.Equal(t, ids[7:], s.ids)
}

// TestFlushCoversWhatWasEmittedBefore: whoever returns from Flush may commit, also while others emit and flush.
func TestFlushCoversWhatWasEmittedBefore(t *testing.T) {
	t.Parallel()
	l, s := newLog(), &fakeStore{}
	l.Keep(s, 10_000)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				id := l.Emit(Event{Type: RangeSkipped, Severity: Error}).ID
				if err := l.Flush(t.Context()); err != nil {
					t.Error(err)
				}
				s.mu.Lock()
				stored := false
				for _, got := range s.ids {
					stored = stored || got == id
				}
				s.mu.Unlock()
				if !stored {
					t.Errorf("event %d is not stored after Flush", id)
				}
			}
		})
	}
	wg.Wait()
	require.Len(t, s.ids, 800)
	require.IsIncreasing(t, s.ids)
}
