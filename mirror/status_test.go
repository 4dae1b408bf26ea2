package mirror

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/route"
)

// A mirror that copies what is not committed had no lag behind a transaction that was open, however much was left to copy.
func TestWhatIsNotCommittedLacksWhereItIsCopied(t *testing.T) {
	t.Parallel()
	for uncommitted, lag := range map[bool]int64{false: 0, true: 7} {
		r := newRig(t, firstAt(0), 1, Plan{})
		r.lane.stream.cfg.ReadUncommitted = uncommitted
		r.openAt()
		r.lane.Extent(route.Extent{Start: 0, LastStable: 2, End: 9})
		require.Equal(t, lag, r.lane.Status().LagRecords)
	}
}
