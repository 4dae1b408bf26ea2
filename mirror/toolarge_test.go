package mirror

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/route"
)

// "MESSAGE_TOO_LARGE: MESSAGE_TOO_LARGE: …" named neither the size nor the limit.
func TestTooLargeBatchIsToldWithItsSizeAndTheLimit(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 1, Plan{MaxBatchBytes: 5000})
	r.openAt()
	r.feed(3, made{base: 2, numbers: []int{2}})
	size := len(r.take(true, 2, 2))
	require.Less(t, size, 100)
	r.lane.Answer(true, route.NoOffset, &route.Fault{Class: route.Refused, Code: codeTooLarge, Err: errors.New("MESSAGE_TOO_LARGE: it is larger than it may be")}) //nolint:err113 // a broker's
	s := r.lane.Status()
	require.Equal(t, Halted, s.State)
	require.Regexp(t, `^MESSAGE_TOO_LARGE: the batch of 1 records at source offset 2 has \d+ bytes for the target; max.message.bytes of the topic was 5000 when`, s.Reason)
	require.Contains(t, s.Reason, itoa(int32(size))+" bytes")
}
