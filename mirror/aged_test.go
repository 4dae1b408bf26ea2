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
	forgotten := offsets.Hint{First: -1, Timestamp: -1, End: 2}
	r.feed(3, made{base: 2, numbers: []int{2}}) // records with the timestamp 1000, of 1970
	r.hint(forgotten)
	forgotten.Read, forgotten.Forgotten = true, true
	r.hint(forgotten)
	r.take(true, 2, 2)
	r.ok(true, 2)
	require.Equal(t, route.Offset(3), r.commit().SourceOffset)
}
