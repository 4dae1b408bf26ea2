package batch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/route"
)

// TestRewriteFields looks at every field that the target's broker looks at.
func TestRewriteFields(t *testing.T) {
	t.Parallel()
	for _, codec := range codecs() {
		t.Run(codec.String(), func(t *testing.T) {
			t.Parallel()
			d := dense(1000, codec, 3, 100)
			d.header.Attributes = appendTimeBit | transactionalBit | deleteHorizonBit
			d.header.ProducerID, d.header.ProducerEpoch, d.header.FirstSequence, d.header.LastOffsetDelta = 55, 3, 17, 9
			d.records[0].Timestamp, d.records[1].Timestamp, d.records[2].Timestamp = 500, -1, 2000
			d.records[1].Offset, d.records[2].Offset = 1004, 1009
			pieces, err := new(Rewriter).Rewrite([]Batch{d.encode(t)}, Options{})
			require.NoError(t, err)
			require.Len(t, pieces, 1)
			require.Equal(t, route.Offset(1000), pieces[0].First)
			require.Equal(t, route.Offset(1010), pieces[0].Next)
			require.False(t, pieces[0].Oversized)
			b := pieces[0].Batch
			require.NoError(t, b.Check())
			require.NoError(t, b.CheckCRC())
			require.Len(t, b, cap(b))
			got := headerOf(b)
			require.Equal(t, goldenBatch{
				Magic: 2, LastOffset: 2, MaxTimestamp: 2000, Codec: codec.String(), ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1, LeaderEpoch: -1, CRC: b.CRC(),
			}, got)
			require.Equal(t, int32(3), b.Records())
			requireSameRecords(t, d.records, dumbRead(t, b, 0))
		})
	}
}

func TestRewriteCrop(t *testing.T) {
	t.Parallel()
	first, second := dense(100, Lz4, 10, 50), dense(110, Lz4, 10, 50)
	all := append(append([]Record{}, first.records...), second.records...)
	in := []Batch{first.encode(t), second.encode(t)}
	for _, row := range []struct {
		from route.Offset
		left int // out of all; 0: nothing left
	}{{0, 20}, {100, 20}, {101, 19}, {109, 11}, {110, 10}, {119, 1}, {120, 0}} {
		t.Run(strconv.Itoa(int(row.from)), func(t *testing.T) {
			t.Parallel()
			asked := 0
			pieces, err := new(Rewriter).Rewrite(in, Options{From: row.from, Map: func(*Record) (Verdict, error) { asked++; return Keep, nil }})
			require.NoError(t, err)
			require.Equal(t, row.left, asked, "records below the position are not shown")
			if row.left == 0 {
				require.Empty(t, pieces)
				return
			}
			require.Len(t, pieces, 1)
			require.Equal(t, max(row.from, 100), pieces[0].First)
			require.Equal(t, route.Offset(120), pieces[0].Next)
			requireSameRecords(t, all[20-row.left:], dumbRead(t, pieces[0].Batch, 0))
		})
	}
}

func TestRewriteAppendTime(t *testing.T) {
	t.Parallel()
	stamped, plain := dense(100, None, 3, 50), dense(103, None, 3, 50)
	stamped.header.Attributes, stamped.header.MaxTimestamp = appendTimeBit, 1_800_000_000_000
	in := []Batch{stamped.encode(t), plain.encode(t)}
	for _, wanted := range []bool{true, false} {
		pieces, err := new(Rewriter).Rewrite(in, Options{AppendTime: wanted})
		require.NoError(t, err)
		require.Len(t, pieces, 1)
		require.False(t, pieces[0].Batch.AppendTime())
		for i, r := range dumbRead(t, pieces[0].Batch, 0) {
			switch {
			case i >= 3: // a batch that was written before the topic's configuration changed
				require.Equal(t, plain.records[i-3].Timestamp, r.Timestamp)
			case wanted:
				require.Equal(t, int64(1_800_000_000_000), r.Timestamp)
			default:
				require.Equal(t, stamped.records[i].Timestamp, r.Timestamp)
			}
		}
		require.Equal(t, wanted, pieces[0].Batch.MaxTimestamp() == 1_800_000_000_000)
	}
}

// TestRewriteMap drops, changes and keeps. Null and empty stay apart.
func TestRewriteMap(t *testing.T) {
	t.Parallel()
	d := dense(100, Zstd, 6, 50)
	d.records[5].Headers = []Header{{Key: "twice", Value: []byte("1")}, {Key: "twice"}, {Key: "", Value: []byte{}}}
	pieces, err := new(Rewriter).Rewrite([]Batch{d.encode(t)}, Options{Map: func(r *Record) (Verdict, error) {
		switch r.Offset {
		case 100, 103:
			return Drop, nil
		case 101:
			r.Key, r.Value, r.Timestamp = nil, []byte{}, -1
			r.Headers = append(r.Headers, Header{Key: "new", Value: nil})
			return Changed, nil
		case 102:
			r.Value = nil // forgotten: not said to be changed
			return Keep, nil
		case 104:
			r.Value = bytes.Repeat([]byte("long"), 1000)
			r.Headers = []Header{{Key: "a"}, {Key: "b", Value: []byte("c")}}
			return Changed, nil
		default:
			return Keep, nil
		}
	}})
	require.NoError(t, err)
	require.Len(t, pieces, 1)
	require.Equal(t, route.Offset(101), pieces[0].First)
	require.Equal(t, route.Offset(106), pieces[0].Next)
	want := []Record{
		{Timestamp: -1, Key: nil, Value: []byte{}, Headers: []Header{{Key: "new"}}},
		d.records[2],
		{Timestamp: d.records[4].Timestamp, Key: d.records[4].Key, Value: bytes.Repeat([]byte("long"), 1000), Headers: []Header{{Key: "a"}, {Key: "b", Value: []byte("c")}}},
		d.records[5],
	}
	requireSameRecords(t, want, dumbRead(t, pieces[0].Batch, 0))
}

func TestRewriteErrors(t *testing.T) {
	t.Parallel()
	good, bad := dense(100, Lz4, 3, 50).encode(t), dense(103, Lz4, 3, 50).encode(t)
	bad[HeaderSize] ^= 1
	refused := errors.New("refused")
	var w Rewriter
	pieces, err := w.Rewrite([]Batch{good, bad}, Options{})
	requireCorrupt(t, err, "records")
	require.Empty(t, pieces)
	pieces, err = w.Rewrite([]Batch{good}, Options{Map: func(*Record) (Verdict, error) { return Keep, refused }})
	require.ErrorIs(t, err, refused)
	require.EqualError(t, err, "map record 100: refused")
	require.Empty(t, pieces)
	_, _, err = w.Scan(good, func(*Record) (Verdict, error) { return Keep, refused })
	require.ErrorIs(t, err, refused)
	unknown := Codec(5)
	_, err = w.Rewrite([]Batch{good}, Options{Codec: &unknown})
	require.Error(t, err)
	pieces, err = w.Rewrite([]Batch{good}, Options{})
	require.NoError(t, err, "an error must not stay with the rewriter")
	require.Equal(t, int32(3), pieces[0].Batch.Records())
	pieces, err = w.Rewrite(nil, Options{})
	require.NoError(t, err)
	require.Empty(t, pieces)
}

// TestRewriteSplit: every piece within the bound, all records once and in order, and not many more pieces than bytes ask for.
func TestRewriteSplit(t *testing.T) {
	t.Parallel()
	for _, codec := range codecs() {
		t.Run(codec.String(), func(t *testing.T) {
			t.Parallel()
			d := dense(100, codec, 400, 500)
			in := d.encode(t)
			for _, maxBytes := range []int{len(in), len(in) - 1, len(in) / 2, 20_000, 5_000, 700} {
				pieces, err := new(Rewriter).Rewrite([]Batch{in}, Options{MaxBytes: maxBytes})
				require.NoError(t, err)
				requireCovers(t, d.records, in.NextOffset(), pieces)
				for _, p := range pieces {
					require.LessOrEqual(t, len(p.Batch), maxBytes)
					require.False(t, p.Oversized)
				}
				if maxBytes == len(in) && codec == None {
					require.Len(t, pieces, 1)
				}
				if maxBytes >= 20_000 { // small batches compress worse
					require.LessOrEqual(t, len(pieces), len(in)/maxBytes*3/2+2)
				}
			}
		})
	}
}

// TestRewriteUnevenSplit: records that compress very differently spoil every guess.
func TestRewriteUnevenSplit(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6))
	d := dense(100, Lz4, 60, 10)
	for i := range d.records {
		value := make([]byte, 3000)
		if i >= 30 {
			for j := range value {
				value[j] = byte(random.Uint32())
			}
		}
		d.records[i].Value = value
	}
	d.records[45].Value = make([]byte, 2_000_000) // legal: only the compressed size counts
	pieces, err := new(Rewriter).Rewrite([]Batch{d.encode(t)}, Options{MaxBytes: 10_000})
	require.NoError(t, err)
	requireCovers(t, d.records, 160, pieces)
	for _, p := range pieces {
		require.LessOrEqual(t, len(p.Batch), 10_000)
	}
	require.Less(t, len(pieces), 20)
}

func TestRewriteOversized(t *testing.T) {
	t.Parallel()
	d := dense(100, None, 5, 50)
	d.records[2].Value = make([]byte, 5000)
	pieces, err := new(Rewriter).Rewrite([]Batch{d.encode(t)}, Options{MaxBytes: 1000})
	require.NoError(t, err)
	requireCovers(t, d.records, 105, pieces)
	for _, p := range pieces {
		require.Equal(t, p.First == 102, p.Oversized)
		require.Equal(t, p.Oversized, len(p.Batch) > 1000)
	}
	require.Len(t, pieces, 3)
}

// TestRewriteMerge puts small batches of any codec and format together.
func TestRewriteMerge(t *testing.T) {
	t.Parallel()
	in := []Batch{entry(0, 99, 0, []byte("old"), nil)}
	want := []Record{{Timestamp: -1, Key: []byte("old")}}
	for i := range 20 {
		d := dense(route.Offset(100+10*i), codecs()[i%5], 3, 50)
		in, want = append(in, d.encode(t)), append(want, d.records...)
	}
	gzip := Gzip
	pieces, err := new(Rewriter).Rewrite(in, Options{Codec: &gzip})
	require.NoError(t, err)
	require.Len(t, pieces, 1)
	require.Equal(t, route.Offset(99), pieces[0].First)
	require.Equal(t, route.Offset(293), pieces[0].Next)
	require.Equal(t, Gzip, pieces[0].Batch.Codec())
	requireSameRecords(t, want, dumbRead(t, pieces[0].Batch, 0))
}

// TestRewriteLeavesOut: control batches and empty ones give nothing but are covered.
func TestRewriteLeavesOut(t *testing.T) {
	t.Parallel()
	control, data := dense(103, None, 1, 10), dense(100, None, 3, 10)
	control.header.Attributes = controlBit | transactionalBit
	empty := dense(104, None, 5, 10).encodeRaw(t, nil, 0)
	in := []Batch{data.encode(t), control.encode(t), empty}
	pieces, err := new(Rewriter).Rewrite(in, Options{})
	require.NoError(t, err)
	require.Len(t, pieces, 1)
	require.Equal(t, route.Offset(109), pieces[0].Next)
	requireSameRecords(t, data.records, dumbRead(t, pieces[0].Batch, 0))

	pieces, err = new(Rewriter).Rewrite(in[1:], Options{})
	require.NoError(t, err)
	require.Empty(t, pieces)

	pieces, err = new(Rewriter).Rewrite(append(in[1:], dense(109, Lz4, 3, 10).encode(t)), Options{})
	require.NoError(t, err)
	require.Equal(t, Lz4, pieces[0].Batch.Codec(), "batches that have nothing to compress do not say how to")
}

// TestRewriteExtremes: numbers that wrap around come back as they were.
func TestRewriteExtremes(t *testing.T) {
	t.Parallel()
	d := dense(100, None, 4, 10)
	d.header.FirstTimestamp = math.MaxInt64
	for i, stamp := range []int64{math.MinInt64, math.MaxInt64, -1, 0} {
		d.records[i].Timestamp = stamp
	}
	pieces, err := new(Rewriter).Rewrite([]Batch{d.encode(t)}, Options{})
	require.NoError(t, err)
	require.Equal(t, d.records[1].Timestamp, pieces[0].Batch.MaxTimestamp())
	got := read(t, new(Reader), pieces[0].Batch)
	for i := range got {
		require.Equal(t, d.records[i].Timestamp, got[i].Timestamp)
	}
}

func TestScan(t *testing.T) {
	t.Parallel()
	b := dense(100, Lz4, 4, 50).encode(t)
	before := append(Batch{}, b...)
	for _, row := range []struct {
		name     string
		verdicts [4]Verdict
		changed  bool
		kept     int32
	}{
		{"all kept", [4]Verdict{}, false, 4},
		{"first changed", [4]Verdict{Changed}, true, 4},
		{"last dropped", [4]Verdict{3: Drop}, true, 3},
		{"all dropped", [4]Verdict{Drop, Drop, Drop, Drop}, true, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			changed, kept, err := new(Rewriter).Scan(b, func(r *Record) (Verdict, error) {
				r.Value, r.Headers = nil, append(r.Headers, Header{Key: "x"})
				return row.verdicts[r.Offset-100], nil
			})
			require.NoError(t, err)
			require.Equal(t, row.changed, changed)
			require.Equal(t, row.kept, kept)
			require.Equal(t, before, b)
		})
	}
}

// TestReaderRefuses: records that do not agree with the header.
func TestReaderRefuses(t *testing.T) {
	t.Parallel()
	record := func(timestamp, offset int64, body string) []byte {
		return appendRecord(nil, timestamp, offset, []byte(body))
	}
	const minimal = "\x01\x01\x00" // null, null, no headers
	for _, row := range []struct {
		name string
		raw  []byte
	}{
		{"bytes left over", append(record(0, 0, minimal), 0)},
		{"one record more", append(record(0, 0, minimal), record(0, 1, minimal)...)},
		{"offset beyond the last", record(0, 3, minimal)},
		{"offset negative", record(0, -1, minimal)},
		{"length negative", append([]byte{1}, record(0, 0, minimal)...)},
		{"length beyond the end", []byte{100, 0, 0, 0, 1, 1, 0}},
		{"length without end", []byte{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80}},
		{"length wraps", append(binary.AppendUvarint(nil, math.MaxUint64), record(0, 0, minimal)...)},
		{"key length -2", record(0, 0, "\x03\x01\x00")},
		{"key beyond the record", record(0, 0, "\x10\x01\x00")},
		{"value beyond the record", record(0, 0, "\x01\x10\x00")},
		{"header count negative", record(0, 0, "\x01\x01\x01")},
		{"header count beyond the record", record(0, 0, "\x01\x01\x10\x00\x00")},
		{"header key null", record(0, 0, "\x01\x01\x02\x01\x01")},
		{"header value beyond the record", record(0, 0, "\x01\x01\x02\x00\x10")},
		{"body longer than the fields", record(0, 0, minimal+"\x00")},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			d := dense(100, None, 3, 10)
			err := drain(new(Reader), d.encodeRaw(t, row.raw, 1))
			var corrupt *CorruptError
			require.ErrorAs(t, err, &corrupt)
		})
	}
	twice := append(record(0, 1, minimal), record(0, 1, minimal)...)
	require.Error(t, drain(new(Reader), dense(100, None, 3, 10).encodeRaw(t, twice, 2)), "an offset twice")
}

// requireCovers compares the records of all pieces with those wanted, and that the pieces follow each other without a hole.
func requireCovers(t testing.TB, want []Record, next route.Offset, pieces []Piece) {
	t.Helper()
	n := 0
	for i, p := range pieces {
		require.NoError(t, p.Batch.Check())
		require.True(t, p.Batch.Dense())
		require.Equal(t, want[n].Offset, p.First)
		count := int(p.Batch.Records())
		requireSameRecords(t, want[n:n+count], dumbRead(t, p.Batch, 0))
		n += count
		if i+1 < len(pieces) {
			require.Equal(t, pieces[i+1].First, p.Next)
		} else {
			require.Equal(t, next, p.Next)
		}
	}
	require.Len(t, want, n)
}
