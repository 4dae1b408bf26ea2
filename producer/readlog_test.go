package producer

import (
	"encoding/binary"
	"hash/crc32"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/causeway-mirror/causeway/batch"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

// logged encodes a batch as it lies in a target's log: records of the values at these deltas, of the id 7 from sequence seq on.
func logged(base route.Offset, seq, last int32, deltas []int32, values ...string) batch.Batch {
	var records []byte
	for i, v := range values {
		r := kmsg.Record{OffsetDelta: deltas[i], TimestampDelta64: int64(i), Key: []byte("k"), Value: []byte(v), Headers: []kmsg.Header{{Key: "h", Value: nil}}}
		body := r.AppendTo(nil)[1:] // without the length, which is 0 and takes one byte
		records = append(binary.AppendVarint(records, int64(len(body))), body...)
	}
	b := kmsg.RecordBatch{
		FirstOffset: int64(base), Length: int32(batch.HeaderSize - 12 + len(records)), PartitionLeaderEpoch: -1, Magic: 2, LastOffsetDelta: last,
		FirstTimestamp: 5000, MaxTimestamp: 5000 + int64(len(values)) - 1, ProducerID: 7, FirstSequence: seq, NumRecords: int32(len(values)), Records: records,
	}
	out := b.AppendTo(nil)
	binary.BigEndian.PutUint32(out[17:], crc32.Checksum(out[21:], crc32.MakeTable(crc32.Castagnoli)))
	return out
}

func TestLogShowsTheLastRecordOfOurs(t *testing.T) {
	t.Parallel()
	dense := []int32{0, 1, 2}
	first, second := logged(10, 0, 2, dense, "a", "b", "c"), logged(13, 3, 2, dense, "d", "e", "f")
	cleaned := logged(13, 3, 2, dense[:2], "d", "e")
	digest := func(value string) uint64 {
		return (&batch.Record{Key: []byte("k"), Value: []byte(value), Headers: []batch.Header{{Key: "h"}}}).Digest()
	}
	require.NotEqual(t, digest("c"), digest("f"))
	forgotten, known := offsets.Hint{Forgotten: true, First: -1}, offsets.Hint{Known: true, Last: 5, First: -1}
	for name, row := range map[string]struct {
		hint  offsets.Hint
		reads [][]byte
		first int32
		want  offsets.Mark
	}{
		"of several batches":              {known, [][]byte{append(first[:len(first):len(first)], second...)}, 3, offsets.Mark{Digest: digest("f"), Timestamp: 5002}},
		"of several reads":                {known, [][]byte{first, second}, 3, offsets.Mark{Digest: digest("f"), Timestamp: 5002}},
		"which nobody else remembers":     {forgotten, [][]byte{first, second}, 3, offsets.Mark{Digest: digest("f"), Timestamp: 5002}},
		"nothing, before it can be seen":  {known, [][]byte{first}, -1, offsets.Mark{}},
		"nothing, if a cleaner took it":   {known, [][]byte{first, cleaned}, 3, offsets.Mark{}},
		"nothing of a log without a read": {known, nil, -1, offsets.Mark{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := row.hint
			r := &logReader{found: &found{of: subject{Inquiry: offsets.Inquiry{ProducerID: 7}}}}
			for _, b := range row.reads {
				_, err := r.scan(b, 0)
				require.NoError(t, err)
			}
			r.found.fill(&h)
			require.Equal(t, row.first, h.First)
			require.Equal(t, row.want, h.LastRecord)
		})
	}
}

// asks makes lanes whose inquiries are due, each with a log of so many batches, and what they ask.
func (r *rig) asks(question offsets.Question, parts []int32, batches int) (lanes []*fakeLane, asked []inquiry) {
	for _, n := range parts {
		part := route.Partition{Topic: "t", Partition: n}
		r.k.with(func() {
			r.k.leaders[part] = 0
			for i := range int32(batches) {
				r.k.logs[part] = append(r.k.logs[part], logged(route.Offset(i), i, 0, []int32{0}, "v"))
			}
		})
		l := &fakeLane{slot: r.p.Slot(part), question: question, asking: true}
		l.slot.lane = l
		l.slot.queued.Store(true)
		q, _ := l.Inquiry()
		lanes, asked = append(lanes, l), append(asked, inquiry{slot: l.slot, Inquiry: q})
	}
	return lanes, asked
}

func (l *fakeLane) hinted() (n int) {
	l.look(func() { n = l.hints })
	return n
}

// readsOf gives the positions that a lane's log was fetched from.
func (k *target) readsOf(l *fakeLane) (at []int64) {
	k.with(func() { at = slices.Clone(k.reads[l.slot.target]) })
	return at
}

func TestLogThatTakesLongHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, nil)
	free := make(chan struct{})
	r.k.with(func() {
		r.k.hold = func(p route.Partition) {
			if p.Partition == 0 {
				<-free
			}
		}
	})
	long, asked := r.asks(offsets.AskLog, []int32{0}, 3)
	logs, also := r.asks(offsets.AskLog, []int32{1, 2}, 3)
	others, more := r.asks(offsets.AskProducer, []int32{3, 4}, 0)
	done := make(chan struct{})
	go func() { // owned by the test, which waits for it
		defer close(done)
		r.p.round(t.Context(), append(append(asked, also...), more...))
	}()
	for _, l := range append(others, logs...) {
		eventually(t, func() bool { return l.hinted() == 1 }, "it waits for another partition's log")
	}
	require.Zero(t, long[0].hinted())
	close(free)
	<-done
	for _, l := range append(long, logs...) {
		require.Empty(t, l.unread)
		require.True(t, l.hint.Read)
		require.Equal(t, int32(2), l.hint.Last)
	}
}

func TestLongLogIsReadInSeveralRounds(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, nil)
	r.p.turn = 0 // one fetch a turn
	lanes, asked := r.asks(offsets.AskLog, []int32{0, 1}, 5)
	for _, l := range lanes {
		l.look(func() { l.asks = false })
		l.slot.queued.Store(false)
		l.slot.Wake() // the lane asks again by itself
	}
	for _, l := range lanes {
		eventually(t, func() bool { return l.hinted() == 5 }, "the log is not read to its end")
		for _, f := range l.unread {
			require.Equal(t, "LOG_LONG", f.Code)
		}
		require.Len(t, l.unread, 4)
	}
	for _, l := range lanes {
		require.True(t, l.hint.Read)
		require.True(t, l.hint.Forgotten)
		require.Equal(t, []int32{4, 4}, []int32{l.hint.First, l.hint.Last})
		require.Equal(t, []int64{0, 1, 2, 3, 4}, r.k.readsOf(l), "nothing is read twice")
	}

	// What was found is of this log and for this question alone.
	r.p.turn = time.Minute
	asked[0].From, asked[1].ProducerID = 2, 8
	r.p.round(t.Context(), asked)
	require.Equal(t, []int64{2, 3, 4}, r.k.readsOf(lanes[0])[5:])
	require.Equal(t, []int64{0, 1, 2, 3, 4}, r.k.readsOf(lanes[1])[5:])
	require.False(t, lanes[1].hint.Known)
}

func TestFewLogsOfABrokerAreReadAtTheSameTime(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, nil)
	var mu sync.Mutex
	now, most := 0, 0
	r.k.with(func() {
		r.k.hold = func(route.Partition) {
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			runtime.Gosched()
			mu.Lock()
			now--
			mu.Unlock()
		}
	})
	lanes, asked := r.asks(offsets.AskLog, []int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 20)
	r.p.round(t.Context(), asked)
	for _, l := range lanes {
		require.True(t, l.hint.Read)
	}
	require.LessOrEqual(t, most, maxReads)
}
