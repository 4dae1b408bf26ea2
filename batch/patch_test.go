package batch

import (
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The vectors were computed apart from this code; a real broker accepted batches patched so.
const (
	vectorOld   = "004b 00000002 0000018bcfe56800 0000018bcfe568c8 0000000000000037 0003 00000011 00000003"
	vectorNew   = "0003 00000002 0000018bcfe56800 0000018bcfe568c8 0000000000002329 0000 0000002a 00000003"
	vectorDelta = 0xfff14987
)

// vector makes a batch with the given header from byte 21 on and a payload of n bytes.
func vector(t *testing.T, header string, n int) Batch {
	t.Helper()
	b := make(Batch, HeaderSize+n)
	fields, err := hex.DecodeString(strings.ReplaceAll(header, " ", ""))
	require.NoError(t, err)
	copy(b[attrsAt:], fields)
	put32(b, lengthAt, int32(len(b)-prefixSize))
	b[magicAt] = 2
	for i := range n {
		b[HeaderSize+i] = byte(i % 251)
	}
	put32(b, crcAt, int32(crc32.Checksum(b[attrsAt:], castagnoli)))
	return b
}

func TestPatchVectors(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		payload       int
		power         uint32
		before, after uint32
	}{
		{0, 0x80000000, 0xdedd68e4, 0x212c2163},
		{1, 0x00800000, 0x7609b13c, 0x20ca1fe6},
		{100, 0xe0b99ccb, 0x6c1bd702, 0x4399283a},
		{65_536, 0xfe7740e6, 0x7c445907, 0x8a66132e},
		{1_048_576, 0x59726915, 0xf7f5d89f, 0xcccede0c},
	} {
		t.Run(strconv.Itoa(row.payload), func(t *testing.T) {
			t.Parallel()
			require.Equal(t, row.power, shiftCRC(0x80000000, row.payload))
			require.Equal(t, row.after, row.before^shiftCRC(vectorDelta, row.payload))
			b := vector(t, vectorOld, row.payload)
			require.Equal(t, row.before, b.CRC())
			b.Patch(Producer{ID: 9001, Epoch: 0, Sequence: 42})
			require.Equal(t, row.after, b.CRC())
			want := vector(t, vectorNew, row.payload)
			put32(want, epochAt, -1)
			require.Equal(t, want, b)
		})
	}
}

// TestShiftPowers needs every power, also those of lengths that no test has the memory for.
func TestShiftPowers(t *testing.T) {
	t.Parallel()
	power := uint32(0x00800000)
	for k := range 31 {
		require.Equal(t, power, shiftCRC(0x80000000, 1<<k), "2^%d", k)
		power = mulCRC(power, power)
	}
}

// TestPatchProperty patches anything and computes the CRC in full.
func TestPatchProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := make(Batch, HeaderSize+rapid.IntRange(0, 5000).Draw(t, "payload"))
		seed := rapid.SliceOfN(rapid.Byte(), 1, 200).Draw(t, "bytes")
		for i := range b {
			b[i] = seed[i%len(seed)] ^ byte(i>>8)
		}
		b[magicAt] = 2
		put32(b, crcAt, int32(crc32.Checksum(b[attrsAt:], castagnoli)))
		before := append(Batch{}, b...)
		for range rapid.IntRange(1, 3).Draw(t, "times") {
			p := Producer{ID: rapid.Int64().Draw(t, "id"), Epoch: rapid.Int16().Draw(t, "epoch"), Sequence: rapid.Int32().Draw(t, "sequence")}
			b.Patch(p)
			require.NoError(t, b.CheckCRC())
			got := Producer{ID: b.ProducerID(), Epoch: b.ProducerEpoch(), Sequence: b.BaseSequence()}
			require.Equal(t, p, got)
		}
		require.False(t, b.AppendTime() || b.Transactional() || b.HasDeleteHorizon())
		require.Equal(t, before.int16(attrsAt)&^0x58, b.int16(attrsAt), "other bits stay")
		require.Equal(t, int64(0), b.int64(0))
		require.Equal(t, int32(-1), b.LeaderEpoch())
		require.Equal(t, before[lastDeltaAt:producerAt], b[lastDeltaAt:producerAt])
		require.Equal(t, before[countAt:], b[countAt:])
	})
}

// TestPatchKeepsDamage is why a CRC is never computed anew on the raw path.
func TestPatchKeepsDamage(t *testing.T) {
	t.Parallel()
	b := dense(10, Lz4, 3, 50).encode(t)
	b[len(b)-3] ^= 1
	b.Patch(Producer{ID: 1, Epoch: 2, Sequence: 3})
	requireCorrupt(t, b.CheckCRC(), "crc")
}

// TestPatchHorizon: the records' times are counted from the delete horizon, so they stay right only if it stays.
func TestPatchHorizon(t *testing.T) {
	t.Parallel()
	d := dense(10, None, 3, 50)
	d.header.Attributes = deleteHorizonBit
	d.header.FirstTimestamp += 777
	b := d.encode(t)
	require.Equal(t, d.records, read(t, new(Reader), b))
	want := d.records
	b.Patch(Producer{ID: 1})
	for i := range want {
		want[i].Offset -= 10
	}
	require.Equal(t, want, read(t, new(Reader), b))
	require.Equal(t, want, dumbRead(t, b, 0))
}

func TestPatchAllocates(t *testing.T) {
	b := vector(t, vectorOld, 100_000)
	records := []byte(b)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		b, _, err := Next(records)
		if err != nil || b.Check() != nil {
			t.Error("not a batch")
		}
		b.Patch(Producer{ID: 5, Sequence: int32(binary.BigEndian.Uint32(b[crcAt:]) >> 1)})
	}))
}
