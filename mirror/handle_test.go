package mirror

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/batch"
	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/route"
)

func TestRawOrRewritten(t *testing.T) {
	t.Parallel()
	keep := func(*batch.Record) (batch.Verdict, error) { return batch.Keep, nil }
	none := func(*batch.Record) (batch.Verdict, error) { return batch.Drop, nil }
	odd := func(r *batch.Record) (batch.Verdict, error) {
		if numberOf(t, r)%2 == 0 {
			return batch.Drop, nil
		}
		return batch.Keep, nil
	}
	four := made{base: 10, numbers: []int{10, 11, 12, 13}}
	for _, row := range []struct {
		name string
		plan Plan
		at   route.Offset
		in   made
		want [][]int // by output batch
		raw  bool
	}{
		{"as it came", Plan{}, 10, four, [][]int{{10, 11, 12, 13}}, true},
		{"a hole before it", Plan{}, 3, four, [][]int{{10, 11, 12, 13}}, true},
		{"thinned by compaction", Plan{}, 10, made{base: 10, numbers: []int{10, 13}, deltas: []int{0, 3}}, [][]int{{10, 13}}, false},
		{"position in its middle", Plan{}, 12, four, [][]int{{12, 13}}, false},
		{"too large for the target", Plan{MaxBatchBytes: batch.HeaderSize + 24}, 10, four, [][]int{{10, 11}, {12, 13}}, false},
		{"just fits", Plan{MaxBatchBytes: len(four.bytes())}, 10, four, [][]int{{10, 11, 12, 13}}, true},
		{"append time kept", Plan{KeepAppendTime: true}, 10, made{base: 10, numbers: []int{10}, appendTime: true}, [][]int{{10}}, false},
		{"append time not kept", Plan{}, 10, made{base: 10, numbers: []int{10}, appendTime: true}, [][]int{{10}}, true},
		{"zstd refused", Plan{NoZstd: true}, 10, made{base: 10, numbers: []int{10, 11}, codec: "zstd"}, [][]int{{10, 11}}, false},
		{"zstd taken", Plan{}, 10, made{base: 10, numbers: []int{10, 11}, codec: "zstd"}, [][]int{{10, 11}}, true},
		{"looked at, all kept", Plan{Records: keep}, 10, four, [][]int{{10, 11, 12, 13}}, true},
		{"some dropped", Plan{Records: odd}, 10, four, [][]int{{11, 13}}, false},
		{"all dropped", Plan{Records: none}, 10, four, nil, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, firstAt(row.at), 1, row.plan)
			r.hint(fresh)
			r.feed(14, row.in)
			seq := int32(0)
			for _, want := range row.want {
				b := r.take(true, seq, want...)
				require.Equal(t, route.Offset(0), b.BaseOffset())
				require.False(t, b.AppendTime())
				require.False(t, row.plan.NoZstd && b.Codec() == batch.Zstd)
				if row.raw {
					require.Equal(t, []byte(row.in.bytes()[batch.HeaderSize:]), []byte(b[batch.HeaderSize:]), "payload touched")
				}
				if row.plan.KeepAppendTime {
					require.Equal(t, row.in.bytes().MaxTimestamp(), b.MaxTimestamp())
				}
				r.ok(true, route.Offset(seq))
				require.Equal(t, row.raw, r.lane.Status().Raw)
				seq += int32(len(want))
			}
			require.Zero(t, r.lane.Next())
			require.Zero(t, r.pool.Budget().Used())
			c := r.commit()
			require.Equal(t, route.Offset(14), c.SourceOffset)
			require.Equal(t, seq, c.Sequence)
		})
	}
}

func TestLegacyBatchIsConverted(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 1, Plan{})
	r.hint(fresh)
	// one message of format 1 (KIP-32): offset 0, null key, value "0 "
	m := []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 24, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 3, 232, 255, 255, 255, 255, 0, 0, 0, 2, '0', ' '}
	s := r.pool.Get(len(m), 0)
	copy(s.Bytes(), m)
	b, _, err := batch.Next(s.Bytes())
	require.NoError(t, err)
	r.lane.Append(0, s, []batch.Batch{b}, route.Position{Offset: 1, LeaderEpoch: -1}, route.Extent{LastStable: 1, End: 1})
	s.Release()
	r.handle()
	require.Equal(t, int8(2), r.take(true, 0, 0).Magic())
	r.ok(true, 0)
	require.Equal(t, route.Offset(1), r.commit().SourceOffset)
}

func TestUnreadableBatchHaltsBehindWhatIsReadable(t *testing.T) {
	t.Parallel()
	damaged := false
	plan := Plan{Records: func(rec *batch.Record) (batch.Verdict, error) {
		if damaged && numberOf(t, rec) == 2 {
			return batch.Keep, errors.New("damaged")
		}
		return batch.Keep, nil
	}}
	r := newRig(t, firstAt(0), 1, plan)
	damaged = true
	r.hint(fresh)
	ms := []made{{base: 0, numbers: []int{0, 1}}, {base: 2, numbers: []int{2}}, {base: 3, numbers: []int{3}}}
	r.feed(4, ms...)
	r.take(true, 0, 0, 1)
	r.ok(true, 0)
	require.Equal(t, Halted, r.lane.Status().State)
	require.Zero(t, r.pool.Budget().Used())
	require.Equal(t, 1, r.told(events.PartitionHalted))
	require.Equal(t, route.Offset(2), r.commit().SourceOffset)
	damaged = false
	r.lane.Retry()
	at, _, room := r.lane.Want()
	require.Equal(t, route.Offset(2), at.Offset)
	require.Positive(t, room)
	r.feed(4, ms[1:]...)
	r.take(true, 2, 2)
	r.take(true, 3, 3)
	r.ok(true, 2)
	r.ok(true, 3)
	require.Equal(t, Mirroring, r.lane.Status().State)
}

func TestAnswersWhileBatchesAreHandled(t *testing.T) {
	t.Parallel()
	var r *rig
	during := func() {}
	r = newRig(t, firstAt(0), 1, Plan{Records: func(*batch.Record) (batch.Verdict, error) {
		during()
		return batch.Keep, nil
	}})
	r.openAt()
	r.feed(3, made{base: 2, numbers: []int{2}})
	r.take(true, 2, 2)
	during = func() { // the lane halts and is emptied while its next batch is with the stream
		during = func() {}
		r.fail(route.Refused)
	}
	r.feed(4, made{base: 3, numbers: []int{3}})
	require.Equal(t, Halted, r.lane.Status().State)
	require.Zero(t, r.pool.Budget().Used())
	at, _, _ := r.lane.Want()
	require.Equal(t, route.Offset(2), at.Offset)
}
