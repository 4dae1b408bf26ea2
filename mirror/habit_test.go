package mirror

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A transform that changes every batch must not cost a second decoding, and one that stops changing must be noticed.
func TestHandlerThatChangesEveryBatchIsLookedAtRarely(t *testing.T) {
	t.Parallel()
	var h habit
	looks := func(changed bool) (n int) {
		for range 10 * habitLook {
			if !h.changes() {
				h.note(changed)
				n++
			}
		}
		return n
	}
	require.Equal(t, habitAfter+9, looks(true))
	require.Greater(t, looks(false), 9*habitLook-habitLook, "went on rewriting what is not changed")
}
