package mirror

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

// However many turns a long log takes, what it does not show at its end is waited for as if it had been short: it may be replicated any moment.
func TestLongLogCostsNoPatience(t *testing.T) {
	t.Parallel()
	at := firstAt(2)
	at.Sequence = 2
	r := newRig(t, at, 1, Plan{IDExpiration: 24 * time.Hour})
	r.feed(7, made{base: 2, numbers: []int{2, 3, 4}}, made{base: 5, numbers: []int{5, 6}})
	r.hint(stands(4))
	for range 2 * mostReads {
		r.after(time.Second)
		require.Equal(t, offsets.AskLog, askOf(r))
		r.lane.Hint(offsets.Hint{}, fault(route.Busy, codeLogLong))
	}
	require.Contains(t, r.lane.Status().LastError, codeLogLong)
	unseen := stands(4)
	unseen.Read, unseen.First = true, -1
	r.after(time.Second)
	require.Equal(t, offsets.AskLog, askOf(r))
	r.lane.Hint(unseen, nil)
	require.NotEqual(t, walking, r.lane.out.phase, "what is not replicated was believed")
	require.Zero(t, max(r.lane.Next(), 0))
	r.after(time.Second)
	require.Equal(t, offsets.AskLog, askOf(r))
}

// What the target's retention has taken never shows again: waiting for it would be for ever, and without a pause between two looks.
func TestLogThatHasLostOurLastBatchIsNotReadForEver(t *testing.T) {
	t.Parallel()
	at := firstAt(2)
	at.Sequence = 2
	r := newRig(t, at, 1, Plan{IDExpiration: 24 * time.Hour})
	r.feed(7, made{base: 2, numbers: []int{2, 3, 4}}, made{base: 5, numbers: []int{5, 6}})
	gone := stands(4)
	gone.Read, gone.First = true, -1
	r.hint(stands(4))
	looks := 0
	for ; r.lane.Next() <= 0 && looks < 3*mostReads; looks++ {
		r.after(time.Minute)
		require.Equal(t, offsets.AskLog, askOf(r))
		r.lane.Hint(gone, nil)
	}
	require.InDelta(t, mostReads, looks, 2)
	r.take(true, 2, 2, 3, 4)
	r.ok(true, 2)
}
