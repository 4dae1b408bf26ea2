package mirror

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

// The broker forgot our id right after its last batch was acknowledged, because the records in it are older than producer.id.expiration.ms. Its log ends
// where it should: nothing is lost, and the partition must go on.
func TestIDForgottenByTheAgeOfItsRecordsIsNoLoss(t *testing.T) {
	t.Parallel()
	at := firstAt(2)
	at.Sequence, at.TargetOffset, at.Opened, at.AckedAt = 2, 2, true, time.Unix(1_700_000_000, 0).Add(-time.Hour)
	r := newRig(t, at, 1, Plan{IDExpiration: 24 * time.Hour, KeepAppendTime: true})
	r.after(lingersFor)
	forgotten := offsets.Hint{First: -1, Timestamp: -1, End: 2}
	r.feed(3, made{base: 2, numbers: []int{2}}) // records with the timestamp 1000, of 1970
	r.hint(forgotten)
	forgotten.Read, forgotten.Forgotten = true, true
	r.hint(forgotten)
	r.take(true, 2, 2)
	r.ok(true, 2)
	require.Equal(t, route.Offset(3), r.commit().SourceOffset)
}

// What a killed owner had stored last, and was not told of, counted as behind until another record came: of a topic at its end never.
func TestWhatTheLogShowsOfAForgottenIDIsStored(t *testing.T) {
	t.Parallel()
	at := firstAt(0)
	at.Opened, at.AckedAt = true, time.Unix(1_700_000_000, 0)
	r := newRig(t, at, 1, Plan{IDExpiration: 24 * time.Hour, KeepAppendTime: true})
	r.after(lingersFor)
	r.feed(4, made{base: 0, numbers: []int{0, 1}}, made{base: 2, numbers: []int{2, 3}})
	r.hint(offsets.Hint{First: -1, Timestamp: -1, End: 14})
	r.hint(offsets.Hint{
		Known: true, Last: 3, First: 2, After: 14, LastRecord: markOf(3), Timestamp: 1000, Start: 0, End: 14, Read: true, Forgotten: true,
	})
	require.Zero(t, r.lane.Next(), "a broker that has forgotten the id stores a repeat again")
	c := r.commit()
	require.Equal(t, route.Offset(4), c.SourceOffset)
	require.EqualValues(t, 4, c.Sequence)
	require.Equal(t, route.Offset(14), c.TargetOffset)
	require.Equal(t, Mirroring, r.lane.Status().State)
	require.Zero(t, r.lane.Status().LagRecords)

	r.feed(5, made{base: 4, numbers: []int{4}})
	r.take(true, 4, 4)
	r.ok(true, 14)
	require.Equal(t, route.Offset(5), r.commit().SourceOffset)
}

// A batch of old records was stored twice: its connection was lost, the broker was slow and took it up after the lane had asked what was stored, forgot the id
// at once, and then took the batch that was sent again.
func TestOldRecordsAreNotSentAgainWhileTheFirstCopyMayLinger(t *testing.T) {
	t.Parallel()
	at := firstAt(0)
	at.Clean = true
	r := newRig(t, at, 1, Plan{IDExpiration: 24 * time.Hour, KeepAppendTime: true})
	r.feed(2, made{base: 0, numbers: []int{0, 1}})
	r.hint(fresh)
	r.take(true, 0, 0, 1)
	r.fail(route.Ambiguous)
	r.hint(fresh)
	require.Equal(t, -1, r.lane.Next(), "it must be asked again when nothing can be on its way any more")
	began := r.clock
	r.hint(offsets.Hint{First: -1, Timestamp: -1, End: 2})
	require.Equal(t, lingersFor, r.clock.Sub(began))
	r.hint(offsets.Hint{Known: true, Last: 1, First: 0, After: 2, LastRecord: markOf(1), Timestamp: 1000, End: 2, Read: true, Forgotten: true})
	require.Zero(t, r.lane.Next())
	require.Equal(t, route.Offset(2), r.commit().SourceOffset)
}

// What another owner left behind may linger as well, unless it left clean.
func TestOldRecordsOfAnOwnerThatWasKilledMayLinger(t *testing.T) {
	t.Parallel()
	for _, clean := range []bool{false, true} {
		at := firstAt(0)
		at.Clean = clean
		r := newRig(t, at, 1, Plan{IDExpiration: 24 * time.Hour, KeepAppendTime: true})
		r.feed(2, made{base: 0, numbers: []int{0, 1}})
		r.hint(fresh)
		if !clean {
			require.Equal(t, -1, r.lane.Next())
			r.after(lingersFor)
			r.hint(fresh)
		}
		r.take(true, 0, 0, 1)
		r.ok(true, 0)
	}
}

// The broker knows the id still, but may forget it before a repeat comes, which it would store again.
func TestOldRecordsThatTheLogShowsAreNotRepeated(t *testing.T) {
	t.Parallel()
	at := firstAt(0)
	at.Opened, at.Clean, at.AckedAt = true, true, time.Unix(1_700_000_000, 0)
	r := newRig(t, at, 1, Plan{IDExpiration: 24 * time.Hour, KeepAppendTime: true})
	r.feed(2, made{base: 0, numbers: []int{0, 1}})
	r.hint(offsets.Hint{Known: true, Last: 1, First: -1, Timestamp: 1000, End: 2})
	r.hint(offsets.Hint{Known: true, Last: 1, First: 0, After: 2, LastRecord: markOf(1), Timestamp: 1000, End: 2, Read: true})
	require.Zero(t, r.lane.Next(), "a repeat may be stored again")
	require.Equal(t, route.Offset(2), r.commit().SourceOffset)
}
