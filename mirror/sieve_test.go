package mirror

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/route"
)

// sieve is one that the test plays.
type sieve struct {
	mirrors map[int64]bool // what is known of ids
	asked   []int64
	told    []func()
}

func (s *sieve) Copies(id int64) (copies, known bool) {
	if id < 0 {
		return false, true
	}
	copies, known = s.mirrors[id]
	return copies, known
}

func (s *sieve) Ask(ids []int64, told func()) {
	s.asked, s.told = append(s.asked, ids...), append(s.told, told)
}

// learn answers what was asked.
func (s *sieve) learn(mirrors map[int64]bool) {
	told := s.told
	s.mirrors, s.asked, s.told = mirrors, nil, nil
	for _, tell := range told {
		tell()
	}
}

const (
	ours   = 8 // the id of a mirror that brings the topic from the target
	theirs = 9 // that of another program
)

// What another mirror brought counts as read and takes no sequence, wherever it stands.
func TestWhatAnotherMirrorBroughtIsLeftOut(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 1, Plan{Sieve: &sieve{mirrors: map[int64]bool{ours: true, theirs: false}}})
	r.hint(fresh)
	r.feed(8, made{base: 0, numbers: []int{0, 1}, producer: ours}, made{base: 2, numbers: []int{2, 3}, producer: theirs},
		made{base: 4, numbers: []int{4}, producer: ours}, made{base: 5, numbers: []int{5}}, made{base: 6, numbers: []int{6, 7}, producer: ours})
	r.take(true, 0, 2, 3)
	r.ok(true, 0)
	r.take(true, 2, 5)
	r.ok(true, 2)
	at := r.commit()
	require.Equal(t, []int64{8, 3}, []int64{int64(at.SourceOffset), int64(at.Sequence)})
	r.feed(9, made{base: 8, numbers: []int{8}, producer: ours})
	require.EqualValues(t, 9, r.commit().SourceOffset, "what is left out is no lag")
	require.Zero(t, r.lane.Status().LagRecords)
	require.NoError(t, testutil.GatherAndCompare(r.reg, strings.NewReader(`
# HELP causeway_returned_records_total Records left out since another mirror brought them from the target, counted as often as they were read.
# TYPE causeway_returned_records_total counter
causeway_returned_records_total{route="@a@b@1",topic="t"} 6
`), "causeway_returned_records_total"))
}

// Nothing of an answer is forwarded before it is known of all its batches whose they are; what was read and not handled before is read again, and
// what is on its way is not disturbed.
func TestUnknownIDHoldsTheLaneUntilItIsLookedUp(t *testing.T) {
	t.Parallel()
	s := &sieve{}
	r := newRig(t, firstAt(0), 1, Plan{Sieve: s})
	r.openAt()
	_, before, _ := r.lane.Want()
	answer := []made{{base: 2, numbers: []int{2}}, {base: 3, numbers: []int{3}, producer: ours}, {base: 4, numbers: []int{4}, producer: theirs}}
	r.feed(5, answer...)
	require.Equal(t, []int64{ours, theirs}, s.asked)
	require.Zero(t, r.lane.Next(), "forwarded something of an answer that is in doubt")
	at, generation, room := r.lane.Want()
	require.Zero(t, room, "reads on while it does not know")
	require.EqualValues(t, 2, at.Offset)
	require.NotEqual(t, before, generation, "who leads batches to it can't see that they were not taken")
	require.Equal(t, Mirroring, r.lane.Status().State)
	r.after(unsureFor + time.Second)
	require.Equal(t, Degraded, r.lane.Status().State)
	require.Contains(t, r.lane.Status().Reason, "the markers on the source")

	woken := r.sources
	s.learn(map[int64]bool{ours: true, theirs: false})
	require.Greater(t, r.sources, woken)
	require.Equal(t, Mirroring, r.lane.Status().State)
	r.feedTo(before, 5, answer...) // a late answer to what was wanted before
	require.Zero(t, r.lane.Next())
	r.feed(5, answer...)
	r.take(true, 2, 2)
	r.take(true, 3, 4)
	r.ok(true, 2)
	r.ok(true, 3)
	require.Equal(t, route.Offset(5), r.commit().SourceOffset)
}
