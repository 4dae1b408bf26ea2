package storetest

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

func testBeginAll(t *testing.T, open Open) {
	t.Helper()
	s := opened(t, open)
	require.NoError(t, s.BeginAll(t.Context(), nil))
	there, late := Checkpoint("a", 0, 10), Checkpoint("a", 1, 10)
	require.NoError(t, s.Begin(t.Context(), nil, there))
	require.NoError(t, s.Begin(t.Context(), nil, late))

	rival := withEpoch(late, 9)
	all := []offsets.Beginning{{Next: Checkpoint("a", 7, 1)}, {Next: rival}, {Old: &there, Next: withEpoch(there, 4)}, {Next: Checkpoint("b", 0, 1)}}
	for i := range 300 {
		all = append(all, offsets.Beginning{Next: Checkpoint("c", int32(i), 5)})
	}
	for range 2 { // the second time they are one's own writes whose answers were lost
		var conflict *offsets.ConflictError
		require.ErrorAs(t, s.BeginAll(t.Context(), all), &conflict)
		require.Len(t, conflict.Refused, 1)
		require.Equal(t, rival, conflict.Refused[0].Checkpoint)
		requireStored(t, s, late)
		for _, b := range all {
			if b.Next != rival {
				requireStored(t, s, b.Next)
			}
		}
	}
	bad := Checkpoint("d", 1, 10)
	bad.Sequence = -1
	err := s.BeginAll(t.Context(), []offsets.Beginning{{Next: Checkpoint("d", 0, 1)}, {Next: bad}})
	require.ErrorContains(t, err, "sequence is -1")
	require.NotErrorIs(t, err, offsets.ErrConflict)
	require.Nil(t, load(t, s, route.Partition{Topic: "d"}))
}

func testSaveSome(t *testing.T, open Open) {
	t.Helper()
	s := opened(t, open)
	a, b, c := Checkpoint("a", 0, 10), Checkpoint("b", 1, 10), Checkpoint("c", 2, 10)
	for _, first := range []offsets.Checkpoint{a, b, c} {
		require.NoError(t, s.Begin(t.Context(), nil, first))
	}
	a.SourceOffset, b.SourceOffset, c.SourceOffset = 11, 9, 12
	unknown := Checkpoint("d", 3, 1)

	var conflict *offsets.ConflictError
	require.ErrorAs(t, s.Save(t.Context(), []offsets.Checkpoint{a, b, unknown, c}), &conflict)
	require.Len(t, conflict.Refused, 2)
	require.Equal(t, b.Partition, conflict.Refused[0].Checkpoint.Partition)
	require.Equal(t, unknown.Partition, conflict.Refused[1].Checkpoint.Partition)
	require.ErrorContains(t, conflict, "b-1: stored source offset 10")
	requireStored(t, s, a)
	requireStored(t, s, Checkpoint("b", 1, 10))
	requireStored(t, s, c)
}

func testInvalid(t *testing.T, open Open) {
	t.Helper()
	s := opened(t, open)
	good, bad := Checkpoint("a", 0, 10), Checkpoint("a", 1, 10)
	bad.Sequence = -1
	require.ErrorContains(t, s.Begin(t.Context(), nil, bad), "sequence is -1")
	require.NoError(t, s.Begin(t.Context(), nil, good))
	next := good
	next.SourceOffset = 11
	err := s.Save(t.Context(), []offsets.Checkpoint{next, bad})
	require.ErrorContains(t, err, "sequence is -1")
	require.NotErrorIs(t, err, offsets.ErrConflict)
	requireStored(t, s, good)
}

func testDurable(t *testing.T, open Open) {
	t.Helper()
	s := open()
	want := []offsets.Checkpoint{Checkpoint("a", 0, 10), Checkpoint("a", 12, 1<<40), Checkpoint("a.b", 0, 0), Checkpoint("b", 1, -1)}
	want[2].ProducerID, want[2].ProducerEpoch = -1, -1
	want[3].Sequence, want[3].TargetOffset = 0, -1
	for _, c := range want {
		require.NoError(t, s.Begin(t.Context(), nil, c))
	}
	require.NoError(t, s.SaveRoute(t.Context(), offsets.Route{SourceCluster: "x", ProducerID: 5, Discovered: true, FirstTopics: map[string]int32{"a": 13, "b": 2}}))
	require.NoError(t, s.Close())
	require.NoError(t, s.Close(), "closing again is allowed")

	s = opened(t, open)
	parts := make([]route.Partition, 0, len(want))
	for _, c := range want {
		requireStored(t, s, c)
		parts = append(parts, c.Partition)
	}
	found, err := s.Load(t.Context(), parts)
	require.NoError(t, err)
	require.Len(t, found, len(want))
	if l, ok := s.(offsets.Lister); ok {
		listed, err := l.Partitions(t.Context())
		require.NoError(t, err)
		require.Equal(t, parts, listed)
	}
	r, err := s.Route(t.Context())
	require.NoError(t, err)
	require.Equal(t, offsets.Route{SourceCluster: "x", ProducerID: 5, Discovered: true, FirstTopics: map[string]int32{"a": 13, "b": 2}, Version: 1}, r)
}

func testRoute(t *testing.T, open Open) {
	t.Helper()
	s := opened(t, open)
	mine := offsets.NoRoute()
	mine.ProducerID = 77
	theirs := offsets.NoRoute()
	theirs.ProducerID = 78
	require.NoError(t, s.SaveRoute(t.Context(), mine))
	require.ErrorIs(t, s.SaveRoute(t.Context(), theirs), offsets.ErrConflict)
	require.NoError(t, s.SaveRoute(t.Context(), mine), "one's own write whose answer was lost")

	now, err := s.Route(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(77), now.ProducerID)
	require.Equal(t, int64(1), now.Version)
	now.Discovered, now.FirstTopics = true, map[string]int32{"a": 1}
	require.NoError(t, s.SaveRoute(t.Context(), now))
	now.TargetCluster = "y"
	require.ErrorIs(t, s.SaveRoute(t.Context(), now), offsets.ErrConflict, "the version has moved on")
}

func testEvents(t *testing.T, open Open) {
	t.Helper()
	s := opened(t, open)
	reader, ok := s.(offsets.EventReader)
	if !ok {
		t.Skip("the store gives no events back")
	}
	require.Error(t, s.SaveEvent(t.Context(), []byte("{")))
	const more = 5
	for i := range offsets.MaxEvents + more {
		require.NoError(t, s.SaveEvent(t.Context(), fmt.Appendf(nil, `{"id":%d}`, i)))
	}
	events, err := reader.Events(t.Context())
	require.NoError(t, err)
	require.Len(t, events, offsets.MaxEvents)
	for i, e := range events {
		require.JSONEq(t, fmt.Sprintf(`{"id":%d}`, i+more), string(e))
	}
}

func testContext(t *testing.T, open Open) {
	t.Helper()
	s := opened(t, open)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := Checkpoint("a", 0, 10)
	require.ErrorIs(t, s.Begin(ctx, nil, c), context.Canceled)
	require.ErrorIs(t, s.SaveRoute(ctx, offsets.NoRoute()), context.Canceled)
	_, err := s.Load(ctx, []route.Partition{c.Partition})
	require.ErrorIs(t, err, context.Canceled)
	require.Nil(t, load(t, s, c.Partition))
}

func testRacingBegin(t *testing.T, open Open) {
	t.Helper()
	s := opened(t, open)
	var won atomic.Int32
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			c := Checkpoint("a", 0, 10)
			c.Writer = strconv.Itoa(i)
			if s.Begin(t.Context(), nil, c) == nil {
				won.Add(1)
			}
		})
	}
	wg.Wait()
	require.Equal(t, int32(1), won.Load())
}

func testRacingSave(t *testing.T, open Open) {
	t.Helper()
	s := opened(t, open)
	require.NoError(t, s.Begin(t.Context(), nil, Checkpoint("a", 0, 0)))
	const savers, saves = 4, 25
	var wg sync.WaitGroup
	for i := range savers {
		wg.Go(func() {
			for n := range saves {
				_ = s.Save(t.Context(), []offsets.Checkpoint{Checkpoint("a", 0, route.Offset(n*savers+i))})
			}
		})
	}
	wg.Wait()
	requireStored(t, s, Checkpoint("a", 0, savers*saves-1))
}

// testModel runs random histories on one partition each against the plainest possible second implementation.
func testModel(t *testing.T, open Open) {
	t.Helper()
	s := opened(t, open)
	var topics atomic.Int32
	rapid.Check(t, func(t *rapid.T) {
		topic := "t" + strconv.Itoa(int(topics.Add(1)))
		var model *offsets.Checkpoint
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			c := Checkpoint(topic, 0, route.Offset(rapid.IntRange(0, 5).Draw(t, "offset")))
			c.ProducerEpoch = int16(rapid.IntRange(0, 1).Draw(t, "epoch"))
			c.Opened = true
			if rapid.Bool().Draw(t, "begin") {
				old := model
				if rapid.Bool().Draw(t, "stale") {
					other := Checkpoint(topic, 0, 99)
					old = &other
				}
				err := s.Begin(t.Context(), old, c)
				if old == model || (model != nil && model.Equal(c)) {
					require.NoError(t, err)
					model = &c
				} else {
					require.ErrorIs(t, err, offsets.ErrConflict)
				}
				continue
			}
			err := s.Save(t.Context(), []offsets.Checkpoint{c})
			if model != nil && model.ProducerEpoch == c.ProducerEpoch && model.SourceOffset <= c.SourceOffset {
				require.NoError(t, err)
				model = &c
			} else {
				require.ErrorIs(t, err, offsets.ErrConflict)
			}
		}
		if model == nil {
			require.Nil(t, load(t, s, route.Partition{Topic: topic}))
			return
		}
		requireStored(t, s, *model)
	})
}
