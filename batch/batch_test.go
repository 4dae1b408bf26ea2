package batch

import (
	"encoding/binary"
	"io"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/route"
)

func TestNext(t *testing.T) {
	t.Parallel()
	one, two := dense(10, None, 3, 50).encode(t), dense(20, Lz4, 3, 50).encode(t)
	both := append(append([]byte{}, one...), two...)

	b, rest, err := Next(both)
	require.NoError(t, err)
	require.Equal(t, one, b)
	require.Equal(t, len(one), cap(b), "an append to a batch must not reach the next one")
	b, rest, err = Next(rest)
	require.NoError(t, err)
	require.Equal(t, two, b)
	require.Equal(t, route.Offset(20), b.BaseOffset())
	require.Equal(t, route.Offset(22), b.LastOffset())
	require.Equal(t, route.Offset(23), b.NextOffset())
	_, _, err = Next(rest)
	require.Equal(t, io.EOF, err)

	for size := 1; size < len(one); size++ {
		_, rest, err := Next(one[:size])
		require.ErrorIs(t, err, ErrTruncated)
		require.Len(t, rest, size)
	}
}

func TestNextRefuses(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		change func(b Batch)
		field  string
	}{
		{"negative length", func(b Batch) { put32(b, lengthAt, -1) }, "length"},
		{"length below the header", func(b Batch) { put32(b, lengthAt, HeaderSize-prefixSize-1) }, "length"},
		{"smallest number", func(b Batch) { put32(b, lengthAt, math.MinInt32) }, "length"},
		{"magic 3", func(b Batch) { b[magicAt] = 3 }, "magic"},
		{"magic -1", func(b Batch) { b[magicAt] = 0xff }, "magic"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := dense(10, None, 3, 50).encode(t)
			row.change(b)
			_, _, err := Next(b)
			requireCorrupt(t, err, row.field)
			requireCorrupt(t, b.Check(), row.field)
		})
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		change func(b Batch)
		field  string // "" when it must pass
	}{
		{"unchanged", func(Batch) {}, ""},
		{"length too small", func(b Batch) { put32(b, lengthAt, b.int32(lengthAt)-1) }, "length"},
		{"length too large", func(b Batch) { put32(b, lengthAt, b.int32(lengthAt)+1) }, "length"},
		{"base offset negative", func(b Batch) { put64(b, 0, -1) }, "baseOffset"},
		{"last offset overflows", func(b Batch) { put64(b, 0, math.MaxInt64-2) }, "baseOffset"},
		{"last of all offsets", func(b Batch) { put64(b, 0, math.MaxInt64-3) }, ""},
		{"leader epoch", func(b Batch) { put32(b, epochAt, -2) }, "leaderEpoch"},
		{"codec 5", func(b Batch) { b[attrsAt+1] = 5 }, "codec"},
		{"codec 7", func(b Batch) { b[attrsAt+1] = 7 }, "codec"},
		{"unused bits", func(b Batch) { b[attrsAt] = 0xff; b[attrsAt+1] = 0x80 }, ""},
		{"control", func(b Batch) { b[attrsAt+1] = controlBit | transactionalBit }, ""},
		{"last offset delta negative", func(b Batch) { put32(b, lastDeltaAt, -1) }, "lastOffsetDelta"},
		{"thinned", func(b Batch) { put32(b, lastDeltaAt, 100) }, ""},
		{"count negative", func(b Batch) { put32(b, countAt, -1) }, "recordsCount"},
		{"count beyond the offsets", func(b Batch) { put32(b, countAt, 4) }, "recordsCount"},
		{"count beyond the bytes", func(b Batch) { put32(b, countAt, 1000); put32(b, lastDeltaAt, 999) }, "recordsCount"},
		{"no count but bytes", func(b Batch) { put32(b, countAt, 0) }, "recordsCount"},
		{"timestamps negative", func(b Batch) { put64(b, baseTimeAt, -1); put64(b, maxTimeAt, -5) }, ""},
		{"mapped producer id", func(b Batch) { put64(b, producerAt, -57) }, ""},
		{"producer epoch", func(b Batch) { b[prodEpochAt] = 0x80 }, "producerEpoch"},
		{"sequence", func(b Batch) { put32(b, sequenceAt, -2) }, "baseSequence"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := dense(10, None, 3, 50).encode(t)
			row.change(b)
			if row.field == "" {
				require.NoError(t, b.Check())
				return
			}
			requireCorrupt(t, b.Check(), row.field)
			requireCorrupt(t, new(Reader).Reset(b), row.field)
		})
	}
}

func TestCheckEmpty(t *testing.T) {
	t.Parallel()
	d := dense(10, Lz4, 5, 50)
	for _, size := range []int{0, 1, minPrefix - 1, HeaderSize - 1} {
		requireCorrupt(t, make(Batch, size).Check(), "length")
	}
	empty := d.encodeRaw(t, nil, 0)[:HeaderSize] // as compaction leaves it: no payload at all
	put32(empty, lengthAt, HeaderSize-prefixSize)
	require.NoError(t, empty.Check())
	require.False(t, empty.Dense())
	require.Equal(t, route.Offset(15), empty.NextOffset())
	require.Empty(t, read(t, new(Reader), empty))

	put32(empty, countAt, 1)
	requireCorrupt(t, empty.Check(), "recordsCount")
}

func TestCheckLegacy(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		change func(b Batch)
		field  string
	}{
		{"unchanged", func(Batch) {}, ""},
		{"zstd", func(b Batch) { b[legacyAttrsAt] = 4 }, "codec"},
		{"key longer than the entry", func(b Batch) { put32(b, legacyKeyAt(1), 1000) }, "key"},
		{"key length -2", func(b Batch) { put32(b, legacyKeyAt(1), -2) }, "key"},
		{"value ends early", func(b Batch) { put32(b, len(b)-9, 4) }, "value"},
		{"null value with bytes", func(b Batch) { put32(b, len(b)-9, -1) }, "value"},
		{"too short", func(b Batch) { put32(b, lengthAt, 21) }, "length"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := entry(1, 5, 0, []byte("k"), []byte("value"))
			row.change(b)
			if row.field == "" {
				require.NoError(t, b.Check())
				require.NoError(t, b.CheckCRC())
				return
			}
			requireCorrupt(t, b.Check(), row.field)
		})
	}
}

func TestDense(t *testing.T) {
	t.Parallel()
	b := dense(10, None, 3, 50).encode(t)
	require.True(t, b.Dense())
	put32(b, lastDeltaAt, 3)
	require.False(t, b.Dense())
	put32(b, lastDeltaAt, -1)
	put32(b, countAt, 0)
	require.False(t, b.Dense(), "none of none is not dense")
	put32(b, lastDeltaAt, math.MaxInt32)
	put32(b, countAt, math.MinInt32)
	require.False(t, b.Dense())
	require.False(t, entry(1, 5, 0, nil, nil).Dense())
}

func TestCheckCRC(t *testing.T) {
	t.Parallel()
	b := dense(10, Lz4, 3, 50).encode(t)
	require.NoError(t, b.CheckCRC())
	put64(b, 0, 99)
	put32(b, epochAt, 99)
	require.NoError(t, b.CheckCRC(), "base offset and leader epoch are not covered")
	for at := attrsAt; at < len(b); at++ {
		b[at] ^= 0x10
		requireCorrupt(t, b.CheckCRC(), "crc")
		b[at] ^= 0x10
	}
}

func TestCorruptError(t *testing.T) {
	t.Parallel()
	b := dense(10, None, 3, 50).encode(t)
	put32(b, countAt, -1)
	require.EqualError(t, b.Check(), "corrupt batch at offset 10: recordsCount -1: negative")
	require.EqualError(t, Batch(nil).Check(), "corrupt batch at offset -1: length 0: shorter than the header")
}

func TestCodecNames(t *testing.T) {
	t.Parallel()
	names := []string{}
	for codec := range Codec(6) {
		names = append(names, codec.String())
	}
	require.Equal(t, []string{"none", "gzip", "snappy", "lz4", "zstd", "codec 5"}, names)
}

func requireCorrupt(t testing.TB, err error, field string) {
	t.Helper()
	var corrupt *CorruptError
	require.ErrorAs(t, err, &corrupt)
	require.Equal(t, field, corrupt.Field, "%v", err)
}

func put32(b Batch, at int, v int32) { binary.BigEndian.PutUint32(b[at:], uint32(v)) }
func put64(b Batch, at int, v int64) { binary.BigEndian.PutUint64(b[at:], uint64(v)) }
