package batch

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/causeway-mirror/causeway/route"
)

// bytesOrNil draws a field: null, empty, or some bytes, now and then enough for several blocks of a codec.
func bytesOrNil(t *rapid.T, name string) []byte {
	switch rapid.IntRange(0, 9).Draw(t, name+" kind") {
	case 0:
		return nil
	case 1:
		return []byte{}
	case 2:
		return make([]byte, rapid.IntRange(0, 100_000).Draw(t, name+" zeros"))
	default:
		return rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, name)
	}
}

// drawn is an input batch and what is known to be in it, the times being those of the producer.
type drawn struct {
	batch   Batch
	records []Record
	max     int64 // the append time when the batch has one
}

func drawRecord(t *rapid.T, offset route.Offset, headers bool) Record {
	r := Record{Offset: offset, Timestamp: rapid.Int64Range(-1, 1<<42).Draw(t, "timestamp"), Key: bytesOrNil(t, "key"), Value: bytesOrNil(t, "value")}
	if headers {
		for range rapid.IntRange(0, 3).Draw(t, "headers") {
			r.Headers = append(r.Headers, Header{Key: rapid.StringN(0, 8, 20).Draw(t, "header"), Value: bytesOrNil(t, "header value")})
		}
	}
	return r
}

// drawModern draws a batch of format 2: dense or thinned, of data or a marker.
func drawModern(tb testing.TB, t *rapid.T, next route.Offset) drawn {
	tb.Helper()
	d := dumb{codec: rapid.SampledFrom(codecs()).Draw(t, "codec")}
	d.header.FirstOffset, d.header.FirstTimestamp = int64(next), rapid.Int64Range(-1, 1<<42).Draw(t, "base")
	d.header.Attributes = int16(rapid.SampledFrom([]int{0, 0, appendTimeBit, transactionalBit, deleteHorizonBit, controlBit | transactionalBit}).Draw(t, "bits"))
	d.header.ProducerID = rapid.Int64Range(-1, 100).Draw(t, "producer")
	for range rapid.IntRange(1, 8).Draw(t, "count") {
		next += route.Offset(rapid.SampledFrom([]int{0, 0, 0, 0, 3}).Draw(t, "gap"))
		d.records = append(d.records, drawRecord(t, next, true))
		d.header.MaxTimestamp = max(d.header.MaxTimestamp, d.records[len(d.records)-1].Timestamp)
		next++
	}
	if d.header.Attributes&appendTimeBit != 0 {
		d.header.MaxTimestamp = 1 << 43
	}
	d.header.LastOffsetDelta = int32(int64(next) - 1 - d.header.FirstOffset + int64(rapid.IntRange(0, 1).Draw(t, "tail")))
	out := drawn{batch: d.encode(tb), records: d.records, max: d.header.MaxTimestamp}
	if out.batch.Control() {
		out.records = nil
	}
	return out
}

// drawLegacy draws an entry of a message set, alone or with others in it.
func drawLegacy(tb testing.TB, t *rapid.T, next route.Offset) drawn {
	tb.Helper()
	magic := int8(rapid.IntRange(0, 1).Draw(t, "magic"))
	codec := rapid.SampledFrom([]Codec{None, Gzip, Snappy, Lz4}).Draw(t, "codec")
	count := 1
	if codec != None {
		count = rapid.IntRange(1, 5).Draw(t, "count")
	}
	var out drawn
	var inner []Batch
	for i := range count {
		r := drawRecord(t, next+route.Offset(i), false)
		offset := r.Offset
		if magic == 1 && codec != None {
			offset = route.Offset(i)
		}
		e := entry(magic, offset, 0, r.Key, r.Value)
		r.Timestamp = e.MaxTimestamp()
		out.records, inner = append(out.records, r), append(inner, e)
	}
	if out.batch = inner[0]; codec != None {
		out.batch = wrapped(tb, magic, next+route.Offset(count-1), codec, inner...)
	}
	return out
}

// TestReaderProperty: the package, franz-go's consumer and what was put in agree.
func TestReaderProperty(t *testing.T) {
	t.Parallel()
	var reader Reader
	rapid.Check(t, func(rt *rapid.T) {
		draw := rapid.SampledFrom([]func(testing.TB, *rapid.T, route.Offset) drawn{drawModern, drawLegacy}).Draw(rt, "format")
		d := draw(t, rt, route.Offset(rapid.Int64Range(0, 1<<40).Draw(rt, "offset")))
		if d.batch.Control() {
			return
		}
		require.NoError(rt, d.batch.Check())
		require.NoError(rt, d.batch.CheckCRC())
		got := read(t, &reader, d.batch)
		require.Equal(rt, d.records, got)
		if d.batch.AppendTime() {
			for i := range got {
				got[i].Timestamp = d.max
			}
		}
		require.Equal(rt, dumbRead(t, d.batch, 0), got)
	})
}

// TestRewriteProperty compares any rewrite with the plain way to do the same: a list of records, cropped and mapped.
func TestRewriteProperty(t *testing.T) {
	t.Parallel()
	var w Rewriter
	rapid.Check(t, func(rt *rapid.T) {
		var in []Batch
		var want []Record
		next := route.Offset(rapid.Int64Range(0, 1000).Draw(rt, "first"))
		o := Options{
			From:       next + route.Offset(rapid.SampledFrom([]int{0, 0, 1, 5}).Draw(rt, "from")),
			MaxBytes:   rapid.SampledFrom([]int{0, 0, 150, 1000, 50_000}).Draw(rt, "bytes"),
			AppendTime: rapid.Bool().Draw(rt, "append time"),
		}
		if rapid.Bool().Draw(rt, "map?") {
			o.Map = dumbMap
		}
		if rapid.Bool().Draw(rt, "codec?") {
			codec := rapid.SampledFrom(codecs()).Draw(rt, "output codec")
			o.Codec = &codec
		}
		for range rapid.IntRange(1, 6).Draw(rt, "batches") {
			draw := rapid.SampledFrom([]func(testing.TB, *rapid.T, route.Offset) drawn{drawModern, drawModern, drawLegacy}).Draw(rt, "format")
			d := draw(t, rt, next)
			in, next = append(in, d.batch), d.batch.NextOffset()
			want = append(want, dumbRewrite(d, o)...)
		}
		before := slices.Concat(in...)
		pieces, err := w.Rewrite(in, o)
		require.NoError(rt, err)
		require.Equal(rt, before, slices.Concat(in...), "the input must stay as it is: it may still go raw")
		if len(want) == 0 {
			require.Empty(rt, pieces)
			return
		}
		requireCovers(t, want, next, pieces)
		for _, p := range pieces {
			require.NoError(rt, p.Batch.CheckCRC())
			require.Equal(rt, p.Oversized, o.MaxBytes > 0 && len(p.Batch) > o.MaxBytes)
			require.True(rt, !p.Oversized || p.Batch.Records() == 1)
		}
	})
}

// dumbMap decides by the offset alone, so that it can be asked twice.
func dumbMap(r *Record) (Verdict, error) {
	switch r.Offset % 4 {
	case 0:
		return Drop, nil
	case 1:
		r.Key, r.Value = r.Value, append([]byte("changed "), r.Key...)
		r.Headers = append(slices.Clone(r.Headers), Header{Key: "seen", Value: []byte{}})
		return Changed, nil
	default:
		return Keep, nil
	}
}

func dumbRewrite(d drawn, o Options) []Record {
	var out []Record
	for _, r := range d.records {
		if r.Offset < o.From {
			continue
		}
		if o.AppendTime && d.batch.AppendTime() {
			r.Timestamp = d.max
		}
		if o.Map != nil {
			if verdict, _ := o.Map(&r); verdict == Drop {
				continue
			}
		}
		out = append(out, r)
	}
	return out
}
