package producer

import (
	"encoding/binary"
	"hash/crc32"
	"testing"

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
			r := &logReader{hint: &h, q: inquiry{Inquiry: offsets.Inquiry{ProducerID: 7}}}
			for _, b := range row.reads {
				_, err := r.scan(b, 0)
				require.NoError(t, err)
			}
			require.Equal(t, row.first, h.First)
			require.Equal(t, row.want, h.LastRecord)
		})
	}
}
