package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

// Open opens a store on a place that it remembers. The first call finds it empty, later ones find what the earlier stored. The store is
// closed by the suite.
type Open func() offsets.Store

// Run runs the suite. Fresh gives an Open on a fresh, empty place.
func Run(t *testing.T, fresh func(t *testing.T) Open) {
	t.Helper()
	tests := map[string]func(*testing.T, Open){
		"what is absent":                       testAbsent,
		"begin is compare and set":             testBegin,
		"many begin at once":                   testBeginAll,
		"save moves forward only":              testSave,
		"only the writer ends clean":           testClean,
		"save stores what is not refused":      testSaveSome,
		"save refuses what is invalid":         testInvalid,
		"all fields survive closing":           testDurable,
		"route is compare and set":             testRoute,
		"events are kept in order and bounded": testEvents,
		"an ended context writes nothing":      testContext,
		"racing beginners":                     testRacingBegin,
		"racing savers":                        testRacingSave,
		"any history is as the model has it":   testModel,
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, fresh(t))
		})
	}
}

// Checkpoint gives a valid checkpoint with every field set.
func Checkpoint(topic string, partition int32, offset route.Offset) offsets.Checkpoint {
	return offsets.Checkpoint{
		Partition:    route.Partition{Topic: topic, Partition: partition},
		SourceOffset: offset, TargetOffset: offset + 7, Sequence: int32(offset) & 0x7fffffff, ProducerID: 4001, ProducerEpoch: 3,
		SourceTopicID: route.TopicID{1, 2, 3}, TargetTopicID: route.TopicID{9, 8, 7}, LeaderEpoch: 5, Fingerprint: "f", Writer: "w1",
		Opened: true, AckedAt: time.Date(2026, 5, 4, 3, 2, 1, 123456789, time.UTC),
	}
}

func withEpoch(c offsets.Checkpoint, epoch int16) offsets.Checkpoint {
	c.ProducerEpoch = epoch
	return c
}

// contextual is what *testing.T and *rapid.T have in common here.
type contextual interface {
	require.TestingT
	Context() context.Context
}

// load reads one checkpoint, nil if there is none.
func load(t contextual, s offsets.Store, p route.Partition) *offsets.Checkpoint {
	found, err := s.Load(t.Context(), []route.Partition{p})
	require.NoError(t, err)
	c, ok := found[p]
	if !ok {
		require.Empty(t, found)
		return nil
	}
	return &c
}

func requireStored(t contextual, s offsets.Store, want offsets.Checkpoint) {
	got := load(t, s, want.Partition)
	require.NotNil(t, got, "nothing is stored of %s", want.Partition)
	require.True(t, got.Equal(want), "got %+v\nwant %+v", *got, want)
}

func opened(t *testing.T, open Open) offsets.Store {
	t.Helper()
	s := open()
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func testAbsent(t *testing.T, open Open) {
	t.Helper()
	s := opened(t, open)
	found, err := s.Load(t.Context(), []route.Partition{{Topic: "a"}, {Topic: "b", Partition: 3}})
	require.NoError(t, err)
	require.Empty(t, found)
	r, err := s.Route(t.Context())
	require.NoError(t, err)
	require.Equal(t, offsets.NoRoute(), r)
	require.NoError(t, s.Save(t.Context(), nil))

	c := Checkpoint("a", 0, 10)
	err = s.Save(t.Context(), []offsets.Checkpoint{c})
	require.ErrorIs(t, err, offsets.ErrConflict, "a partition that was never begun")
	require.Nil(t, load(t, s, c.Partition))
}

func testBegin(t *testing.T, open Open) {
	t.Helper()
	s := opened(t, open)
	first := Checkpoint("a", 0, 10)
	require.NoError(t, s.Begin(t.Context(), nil, first))
	requireStored(t, s, first)

	rival := first
	rival.Writer = "w2"
	require.ErrorIs(t, s.Begin(t.Context(), nil, rival), offsets.ErrConflict)
	require.NoError(t, s.Begin(t.Context(), nil, first), "one's own write whose answer was lost")
	requireStored(t, s, first)

	reset := first
	reset.ProducerEpoch, reset.SourceOffset, reset.Sequence, reset.Opened = 4, 2, 0, false
	require.ErrorIs(t, s.Begin(t.Context(), &rival, reset), offsets.ErrConflict)
	require.NoError(t, s.Begin(t.Context(), load(t, s, first.Partition), reset), "a new epoch may go backwards")
	requireStored(t, s, reset)

	other := Checkpoint("a", 1, 5)
	require.ErrorIs(t, s.Begin(t.Context(), &other, withEpoch(other, 9)), offsets.ErrConflict, "old was expected, nothing is there")
}

func testSave(t *testing.T, open Open) {
	t.Helper()
	s := opened(t, open)
	c := Checkpoint("a", 0, 10)
	require.NoError(t, s.Begin(t.Context(), nil, c))

	forward := c
	forward.SourceOffset, forward.Sequence, forward.Writer = 20, 20, "w2"
	forward.AckedAt = c.AckedAt.Add(time.Second)
	require.NoError(t, s.Save(t.Context(), []offsets.Checkpoint{forward}))
	requireStored(t, s, forward)

	late := c
	late.SourceOffset = 19
	var conflict *offsets.ConflictError
	require.ErrorAs(t, s.Save(t.Context(), []offsets.Checkpoint{late}), &conflict)
	require.Len(t, conflict.Refused, 1)
	require.Equal(t, late.Partition, conflict.Refused[0].Checkpoint.Partition)
	requireStored(t, s, forward)

	stale := forward
	stale.Opened, stale.AckedAt, stale.Clean = false, c.AckedAt, true
	require.NoError(t, s.Save(t.Context(), []offsets.Checkpoint{stale}), "the same offset")
	stale.Opened, stale.AckedAt = true, forward.AckedAt
	requireStored(t, s, stale)

	for _, other := range []offsets.Checkpoint{withEpoch(forward, 2), withEpoch(forward, 4)} {
		other.SourceOffset = 1000
		require.ErrorIs(t, s.Save(t.Context(), []offsets.Checkpoint{other}), offsets.ErrConflict, "another epoch is begun, not saved")
	}
	requireStored(t, s, stale)
}

// testClean: who does not know what the last writer has sent since can't say that nothing is in flight.
func testClean(t *testing.T, open Open) {
	t.Helper()
	s := opened(t, open)
	used := Checkpoint("a", 0, 10)
	require.NoError(t, s.Begin(t.Context(), nil, used))
	saved := func(writer string, clean bool) *offsets.Checkpoint {
		c := used
		c.Writer, c.Clean = writer, clean
		require.NoError(t, s.Save(t.Context(), []offsets.Checkpoint{c}))
		return load(t, s, c.Partition)
	}
	c := saved("w2", true)
	require.False(t, c.Clean, "w1 uses it")
	require.Equal(t, "w2", c.Writer)
	require.True(t, saved("w2", true).Clean)
	require.True(t, saved("w3", true).Clean, "it is clean already")
	require.False(t, saved("w4", false).Clean)
	require.False(t, saved("w3", true).Clean, "w4 uses it")
}
