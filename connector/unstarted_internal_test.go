package connector

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/handler"
	"github.com/causeway-mirror/causeway/mirror"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/operator"
	"github.com/causeway-mirror/causeway/route"
)

// A partition that can't be started was counted nowhere, and its target was shown as "-0".
func TestPartitionThatHaltsAtItsStartIsCountedAndNamed(t *testing.T) {
	t.Parallel()
	c := idle(t, io.Discard)
	pair, part := one(t, c, nil)
	require.Equal(t, map[mirror.State]int{mirror.Starting: 1}, c.waiting())
	c.aim(pair, func(p route.Partition) int32 { return p.Partition })
	c.leaveOut(pair, &haltError{errors.New("no such target")}) //nolint:err113 // any reason
	require.Equal(t, map[mirror.State]int{mirror.Halted: 1}, c.waiting())
	s := c.Status().Partitions[0]
	require.Equal(t, "halted", s.State)
	require.Equal(t, route.Partition{Topic: "t"}, s.Target)
	require.EqualValues(t, -1, s.LagRecords)

	c.blocked(pair.parts, errors.New("source: out of reach")) //nolint:err113 // any reason
	c.blocked(pair.parts, &haltError{errors.New("again")})    //nolint:err113 // any reason
	require.NoError(t, c.startTopic(t.Context(), pair))
	require.Empty(t, c.waiting())
	require.NotNil(t, part.lane)
	told := c.deps.Events.Since(0)
	require.Len(t, told, 2, "a halt is told once, and its end")
	require.Equal(t, events.PartitionHalted, told[0].Type)
	require.Equal(t, events.PartitionRecovered, told[1].Type)
}

// A changed mapping was told as a recreated target.
func TestOtherTargetIsNotCalledRecreatedForSure(t *testing.T) {
	t.Parallel()
	c := idle(t, io.Discard)
	pair, part := one(t, c, nil)
	pair.target.ID = route.TopicID{2}
	known, err := c.deps.Store.Load(t.Context(), []route.Partition{part.source})
	require.NoError(t, err)
	at := known[part.source]
	at.TargetTopicID = route.TopicID{1}
	_, err = c.continueFrom(t.Context(), pair, at, mirror.Anew{})
	require.ErrorContains(t, err, "target topic t has the id "+pair.target.ID.String())
	require.ErrorContains(t, err, "it was recreated, or the mapping was changed")
}

// What a beginning that failed had to tell was told again by the next one.
func TestBeginningThatFailsTellsNothing(t *testing.T) {
	t.Parallel()
	c := idle(t, io.Discard)
	pair, part := one(t, c, nil)
	known, err := c.deps.Store.Load(t.Context(), []route.Partition{part.source})
	require.NoError(t, err)
	at := known[part.source]
	recount := mirror.Anew{Cause: mirror.Uncounted, ProducerID: at.ProducerID, ProducerEpoch: at.ProducerEpoch}
	moved := at
	moved.SourceOffset++
	_, err = c.continueFrom(t.Context(), pair, moved, recount)
	require.ErrorContains(t, err, "begin a new epoch")
	told := c.deps.Events.Since(0)
	require.Empty(t, told)
	_, err = c.continueFrom(t.Context(), pair, at, recount)
	require.NoError(t, err)
	told = c.deps.Events.Since(0)
	require.Len(t, told, 1)
}

// A checkpoint of a version that did not tell the target partition is gone on from, wherever it goes; one that tells another is not.
func TestCheckpointTellsItsTargetPartition(t *testing.T) {
	t.Parallel()
	c := idle(t, io.Discard)
	pair, _ := one(t, c, nil)
	hc := handler.DefaultConfig()
	hc.PartitionMismatch = handler.Modulo
	h, err := handler.New(hc, "src", "dst")
	require.NoError(t, err)
	for _, row := range []struct {
		source, target int32 // partitions
		stored, next   string
	}{
		{8, 4, "1:ab", "1:ab>1"}, // older than the name of the target partition
		{8, 4, "1:ab>1", "1:ab>1"},
		{8, 8, "1:ab", "1:ab"},
	} {
		pair.topic.Fingerprint = "1:ab"
		pair.align, err = h.Align("t", row.source, row.target)
		require.NoError(t, err)
		at := offsets.Checkpoint{Partition: route.Partition{Topic: "t", Partition: 5}, Fingerprint: row.stored, ProducerID: 7, Sequence: 9}
		next, err := c.continueFrom(t.Context(), pair, at, mirror.Anew{})
		require.NoError(t, err)
		require.Equal(t, row.next, next.Fingerprint)
		next.Fingerprint = at.Fingerprint
		require.Equal(t, at, next, "no new epoch")
	}
	require.Equal(t, fingerprintParts{"1:ab+read_uncommitted", 12, true}, partsOf("1:ab+read_uncommitted>12"))
	require.Equal(t, fingerprintParts{work: "1:ab>x"}, partsOf("1:ab>x"))
}

// A broker that was behind gave a topic the id that it had before it was made anew: it counted as made anew once more, and was copied twice.
func TestFormerIDOfATopicIsNoOtherTopic(t *testing.T) {
	t.Parallel()
	c := idle(t, io.Discard)
	pair, part := one(t, c, nil)
	was := offsets.Checkpoint{Partition: part.source, SourceTopicID: route.TopicID{1}}
	at := was
	at.SourceTopicID = route.TopicID{2}
	c.recreated(was, at)
	pair.source.ID = was.SourceTopicID
	next, err := c.continueFrom(t.Context(), pair, at, mirror.Anew{})
	require.ErrorContains(t, err, "still knows topic t by the id "+was.SourceTopicID.String())
	require.Equal(t, at, next)
	var halt *haltError
	require.NotErrorAs(t, err, &halt, "it is tried again")
}

// While a cluster was out of reach all partitions of a topic were shown as going to the target's partition 0.
func TestPartitionOfWhichNothingIsKnownKeepsItsNumber(t *testing.T) {
	t.Parallel()
	c := idle(t, io.Discard)
	c.Add(route.Partition{Topic: "t", Partition: 3})
	require.Equal(t, route.Partition{Partition: 3}, c.Status().Partitions[0].Target)
}

// Such a reset waited for ever: nothing began that could have carried it out.
func TestResetOfAPartitionWhoseCheckpointIsGoneIsRefused(t *testing.T) {
	t.Parallel()
	c := idle(t, io.Discard)
	part := route.Partition{Topic: "t"}
	c.Add(part)
	ended := make(chan error, 1)
	go func() { ended <- c.Reset(t.Context(), part, Reset{}) }() // owned by the test, which reads ended
	require.Eventually(t, func() bool { return c.wished(c.parts[part]) != nil }, 10*time.Second, time.Millisecond)
	c.blocked([]*partition{c.parts[part]}, storeError("load checkpoint", offsets.ErrMissing))
	require.ErrorIs(t, <-ended, offsets.ErrMissing)
	require.Nil(t, c.wished(c.parts[part]), "another one may be asked for")
}

// Six new partitions of which one had no leader yet wrote six warnings, most of them with another partition's error.
func TestNewPartitionsThatCantBeginAreToldOnce(t *testing.T) {
	t.Parallel()
	var logged bytes.Buffer
	c := idle(t, &logged)
	pair, part := one(t, c, nil)
	begun, fresh, late := part, &partition{source: route.Partition{Topic: "t", Partition: 1}}, &partition{source: route.Partition{Topic: "t", Partition: 2}}
	pair.parts = append(pair.parts, fresh, late)
	known := map[route.Partition]offsets.Checkpoint{begun.source: {}}
	logged.Reset()
	c.leaveOutNew(pair, known, errors.New("find where t-2 begins")) //nolint:err113 // any reason
	require.Equal(t, []*partition{begun}, pair.parts)
	require.Equal(t, 1, strings.Count(logged.String(), "partitions can't be started yet: partitions=2 first=t-1"), logged.String())
	require.Equal(t, "find where t-2 begins", late.reason)
	require.NotContains(t, begun.reason, "t-2", "it is started all the same")
	logged.Reset()
	c.leaveOutNew(pair, known, errors.New("none is new")) //nolint:err113 // any reason
	require.Empty(t, logged.String())

	// A halt is an event, which is logged; a warning beside it said the same again.
	c.blocked([]*partition{fresh}, &haltError{errors.New("no such target")}) //nolint:err113 // any reason
	require.NotContains(t, logged.String(), "can't be started yet")
}

// A reset whose position could not be stored before its session was over was told again by who carried it out in the end.
func TestResetThatIsTriedAgainIsToldOnce(t *testing.T) {
	t.Parallel()
	c := idleOn(t, stored(t), io.Discard)
	was := offsets.Checkpoint{Partition: route.Partition{Topic: "t"}, SourceOffset: 5, ProducerID: 7}
	next := was
	next.SourceOffset = 9
	to := operator.Place{}
	for range 2 {
		c.tellReset(was, next, to)
	}
	require.Len(t, c.deps.Events.Since(0), 2, "that it is set, and what is left out by that")
	was.ProducerEpoch++
	c.tellReset(was, next, to)
	require.Len(t, c.deps.Events.Since(0), 4, "that is another one")
}
