package connector_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/offsets/bolt"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// orderedStore notes in which order events and offsets become durable.
type orderedStore struct {
	offsets.Store

	mu    sync.Mutex
	order []string
}

func (s *orderedStore) SaveEvent(ctx context.Context, text []byte) error {
	err := s.Store.SaveEvent(ctx, text)
	var e events.Event
	if json.Unmarshal(text, &e) == nil && err == nil {
		s.note(string(e.Type))
	}
	return err
}

func (s *orderedStore) Save(ctx context.Context, checkpoints []offsets.Checkpoint) error {
	err := s.Store.Save(ctx, checkpoints)
	for _, c := range checkpoints {
		s.note(fmt.Sprintf("offset %d", c.SourceOffset))
	}
	return err
}

func (s *orderedStore) Begin(ctx context.Context, old *offsets.Checkpoint, next offsets.Checkpoint) error {
	err := s.Store.Begin(ctx, old, next)
	s.note(fmt.Sprintf("offset %d", next.SourceOffset))
	return err
}

func (s *orderedStore) note(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.order); n == 0 || s.order[n-1] != what { // the same offset is stored again as clean
		s.order = append(s.order, what)
	}
}

func (s *orderedStore) noted() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.order...)
}

// TestSkippedRangeIsStoredBeforeTheOffsetBehindIt: a kill between the two must leave the event without the offset, and not the reverse, or the
// range would be missing with nobody told.
func TestSkippedRangeIsStoredBeforeTheOffsetBehindIt(t *testing.T) {
	t.Parallel()
	k := kafkatest.Shared(t, kafkatest.Kafka3)
	k.CreateTopic(t, "short", 1, nil)
	cl := k.Client(t, kgo.DefaultProduceTopic("short"))
	write := func(n int) {
		for range n {
			produce(t, cl, kgo.StringRecord("x"))
		}
	}
	part := route.Partition{Topic: "short"}
	state := t.TempDir()
	write(2)
	c, stop := start(t, k.Bootstrap(), k.Bootstrap(), state, nil)
	c.Add(part)
	caughtUp(t, c, "short")
	stop()

	write(3)
	ends := kadm.Offsets{}
	ends.Add(kadm.Offset{Topic: "short", At: 5})
	deleted, err := kadm.NewClient(cl).DeleteRecords(t.Context(), ends)
	require.NoError(t, err)
	require.NoError(t, deleted.Error())
	store, err := bolt.Open(state)
	require.NoError(t, err)
	ordered := &orderedStore{Store: store}
	c, stop = startOn(t, k.Bootstrap(), k.Bootstrap(), ordered, nil)
	c.Add(part)
	require.Eventually(t, func() bool {
		noted := ordered.noted()
		return len(noted) > 0 && noted[len(noted)-1] == "offset 5"
	}, 20*time.Second, 5*time.Millisecond)
	stop()
	require.Equal(t, []string{"offset 2", "source_truncated", "range_skipped", "offset 2", "offset 5"}, ordered.noted())
}
