package batch

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/route"
)

// entry makes an entry of a message set. Its timestamp, where the format has one, is 1000 and the offset.
func entry(magic int8, offset route.Offset, attributes byte, key, value []byte) Batch {
	b := make(Batch, legacyKeyAt(magic))
	put64(b, 0, int64(offset))
	b[magicAt], b[legacyAttrsAt] = byte(magic), attributes
	if magic == 1 {
		put64(b, legacyTimeAt, 1000+int64(offset))
	}
	for _, field := range [][]byte{key, value} {
		size := int32(len(field))
		if field == nil {
			size = -1
		}
		b = append(binary.BigEndian.AppendUint32(b, uint32(size)), field...)
	}
	put32(b, lengthAt, int32(len(b)-prefixSize))
	put32(b, legacyCRCAt, int32(crc32.ChecksumIEEE(b[magicAt:])))
	return b
}

// wrapped makes a compressed entry of others.
func wrapped(t testing.TB, magic int8, offset route.Offset, codec Codec, inner ...Batch) Batch {
	t.Helper()
	var set []byte
	for _, b := range inner {
		set = append(set, b...)
	}
	return entry(magic, offset, byte(codec), nil, dumbCompress(t, codec, set))
}

func TestLegacyOffsets(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		batch Batch
		want  []route.Offset
	}{
		{"single", entry(0, 7, 0, nil, nil), []route.Offset{7}},
		{"format 0 has them absolute", wrapped(t, 0, 9, Gzip, entry(0, 5, 0, nil, nil), entry(0, 9, 0, nil, nil)), []route.Offset{5, 9}},
		{"format 1 counts from the first", wrapped(t, 1, 9, Gzip, entry(1, 0, 0, nil, nil), entry(1, 1, 0, nil, nil)), []route.Offset{8, 9}},
		{"format 1 thinned", wrapped(t, 1, 9, Lz4, entry(1, 1, 0, nil, nil), entry(1, 4, 0, nil, nil)), []route.Offset{6, 9}},
		{"nothing inside", wrapped(t, 1, 9, Gzip), []route.Offset{}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			got := []route.Offset{}
			for _, r := range read(t, new(Reader), row.batch) {
				got = append(got, r.Offset)
			}
			require.Equal(t, row.want, got)
		})
	}
}

func TestLegacyRefuses(t *testing.T) {
	t.Parallel()
	plain := entry(1, 0, 0, nil, []byte("value"))
	for _, row := range []struct {
		name  string
		batch Batch
	}{
		{"inner cut short", wrapped(t, 1, 9, Gzip, plain[:len(plain)-1])},
		{"inner of format 0", wrapped(t, 1, 9, Gzip, entry(0, 0, 0, nil, nil))},
		{"inner of format 2", wrapped(t, 1, 9, Gzip, dense(0, None, 1, 10).encode(t))},
		{"compressed twice", wrapped(t, 1, 9, Gzip, wrapped(t, 1, 0, Gzip, plain))},
		{"inner offset beyond", wrapped(t, 1, 9, Gzip, entry(1, 10, 0, nil, nil))},
		{"inner offset beyond, format 0", wrapped(t, 0, 9, Gzip, entry(0, 10, 0, nil, nil))},
		{"offsets go back", wrapped(t, 0, 9, Gzip, entry(0, 9, 0, nil, nil), entry(0, 8, 0, nil, nil))},
		{"inner offset overflows", wrapped(t, 1, 9, Gzip, entry(1, 0, 0, nil, nil), entry(1, math.MinInt64, 0, nil, nil), entry(1, 1, 0, nil, nil))},
		{"null value", entry(1, 9, byte(Gzip), nil, nil)},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			pieces, err := new(Rewriter).Rewrite([]Batch{row.batch}, Options{})
			var corrupt *CorruptError
			require.ErrorAs(t, err, &corrupt)
			require.Empty(t, pieces)
		})
	}
}

func TestLegacyHeader(t *testing.T) {
	t.Parallel()
	for magic, stamp := range []int64{-1, 1005} {
		b := entry(int8(magic), 5, byte(Lz4)|appendTimeBit, nil, []byte("x"))
		got := headerOf(b)
		require.Equal(t, goldenBatch{
			Magic: int8(magic), LastOffset: 5, MaxTimestamp: stamp, Codec: "lz4", AppendTime: magic == 1,
			ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1, LeaderEpoch: -1, CRC: b.CRC(),
		}, got)
		require.Equal(t, stamp, b.BaseTimestamp())
		require.Equal(t, route.Offset(6), b.NextOffset())
		require.Equal(t, int32(1), b.Records())
		require.False(t, b.Abort())
		require.Panics(t, func() { b.Patch(Producer{}) })
	}
}
