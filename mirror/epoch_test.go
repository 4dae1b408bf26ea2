package mirror

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/route"
)

// at is the position that the lane wants, in short.
func (r *rig) at() route.Position {
	at, _, _ := r.lane.Want()
	return at
}

// An epoch that does not belong to the position would be taken for another log by the source's leader; none at all would let it pass.
func TestPositionCarriesItsLeaderEpoch(t *testing.T) {
	t.Parallel()
	from := firstAt(10)
	from.LeaderEpoch = 3
	r := newRig(t, from, 1, Plan{Merge: 1 << 10})
	require.Equal(t, route.Position{Offset: 10, LeaderEpoch: 3}, r.at(), "the checkpoint's, at the checkpoint")
	r.hint(fresh)
	r.epoch = 5
	r.feed(14, made{base: 10, numbers: []int{10}, epoch: 4}, made{base: 11, numbers: []int{11, 12, 13}, epoch: 5})
	require.Equal(t, route.Position{Offset: 14, LeaderEpoch: 5}, r.at(), "the last batch's, behind it")
	r.epoch = 6
	r.feed(16)
	require.Equal(t, route.Position{Offset: 16, LeaderEpoch: 6}, r.at(), "that of what is left out, behind that")
	r.take(true, 0, 10)
	r.ok(true, 0)
	c := r.commit()
	require.Equal(t, route.Position{Offset: 11, LeaderEpoch: 4}, route.Position{Offset: c.SourceOffset, LeaderEpoch: c.LeaderEpoch})
	r.take(true, 1, 11, 12, 13)
	r.fail(route.Refused)
	require.Equal(t, Halted, r.lane.Status().State)
	r.lane.Retry()
	require.Equal(t, route.Position{Offset: 11, LeaderEpoch: 4}, r.at(), "the checkpoint's again, after a reset")
}

func TestNothingIsKnownOfTheEpochBehindAGap(t *testing.T) {
	t.Parallel()
	from := firstAt(10)
	from.LeaderEpoch = 3
	r := newRig(t, from, 1, Plan{})
	r.hint(fresh)
	gone := fault(route.SourceChanged, CodeOutOfRange)
	gone.Extent = route.Extent{Start: 50, LastStable: 60, End: 60}
	r.lane.Fail(0, gone)
	r.renew(10, 50)
	require.Equal(t, route.Position{Offset: 50, LeaderEpoch: -1}, r.at())
}

// A lane that begins at its checkpoint tells of a source whose log was replaced, as one does that was reading it.
func TestSourceReplacedBeforeTheStartIsTold(t *testing.T) {
	t.Parallel()
	from := firstAt(10)
	from.LeaderEpoch = 3
	r := newRig(t, from, 1, Plan{})
	r.lane.Fail(0, fault(route.SourceChanged, codeDiverged))
	require.Equal(t, 1, r.told(events.SourceDiverged))
	require.Equal(t, Halted, r.lane.Status().State)
	r.lane.Retry()
	require.Equal(t, route.Position{Offset: 10, LeaderEpoch: 3}, r.at(), "without the epoch it would go on in the other log")
	r.lane.Fail(0, fault(route.SourceChanged, codeDiverged))
	require.Equal(t, Halted, r.lane.Status().State)
}
