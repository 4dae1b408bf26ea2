package batch

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/causeway-mirror/causeway/route"
)

// This file is the second implementation that the first is compared with: it encodes with franz-go's kmsg and the codecs' own stream writers, reads with franz-go's consumer, and
// cares for nothing but being plain.

// dumb is a v2 batch to be encoded: the header as it is to be, less length, CRC and codec; the records' offsets are absolute.
type dumb struct {
	header  kmsg.RecordBatch
	codec   Codec
	records []Record
}

// dense gives n records of about size bytes that look like JSON, from offset base on, as a batch of a plain producer.
func dense(base route.Offset, codec Codec, n, size int) dumb {
	random := rand.New(rand.NewPCG(1, uint64(base)))
	d := dumb{codec: codec, header: kmsg.RecordBatch{
		FirstOffset: int64(base), PartitionLeaderEpoch: 7, FirstTimestamp: 1_700_000_000_000, MaxTimestamp: 1_700_000_000_000 + int64(n-1),
		ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1, LastOffsetDelta: int32(n - 1),
	}}
	for i := range n {
		d.records = append(d.records, Record{
			Offset: base + route.Offset(i), Timestamp: d.header.FirstTimestamp + int64(i),
			Key: []byte("key-" + strconv.Itoa(i)), Value: jsonLike(random, size),
		})
	}
	return d
}

// jsonLike gives about size bytes of fields, half of whose values are random and half of which are words: lz4 halves it, as it does with such records in life.
func jsonLike(random *rand.Rand, size int) []byte {
	words := []string{"created", "2026-11-30T02:00:00.000Z", "https://example.org/orders/", "pending", "customer", "delivered to the front desk", "EUR", "null"}
	var b strings.Builder
	b.WriteString(`{"id":`)
	b.WriteString(strconv.FormatUint(random.Uint64(), 10))
	for b.Len() < size-32 {
		b.WriteString(`,"field_` + strconv.Itoa(random.IntN(40)) + `":"`)
		if random.IntN(2) == 0 {
			b.WriteString(strconv.FormatUint(random.Uint64(), 36))
		} else {
			b.WriteString(words[random.IntN(len(words))])
		}
		b.WriteString(`"`)
	}
	b.WriteString("}")
	return []byte(b.String())
}

func (d dumb) encode(t testing.TB) Batch {
	t.Helper()
	var raw []byte
	for _, r := range d.records {
		k := kmsg.Record{TimestampDelta64: r.Timestamp - d.header.FirstTimestamp, OffsetDelta: int32(int64(r.Offset) - d.header.FirstOffset), Key: r.Key, Value: r.Value}
		for _, h := range r.Headers {
			k.Headers = append(k.Headers, kmsg.Header{Key: h.Key, Value: h.Value})
		}
		body := k.AppendTo(nil)[1:] // the length of 0 takes one byte
		raw = append(binary.AppendVarint(raw, int64(len(body))), body...)
	}
	return d.encodeRaw(t, raw, int32(len(d.records)))
}

// encodeRaw makes a batch of bytes that are said to be so many records.
func (d dumb) encodeRaw(t testing.TB, raw []byte, count int32) Batch {
	t.Helper()
	h := d.header
	h.Magic, h.NumRecords, h.Attributes = 2, count, h.Attributes|int16(d.codec)
	h.Records = dumbCompress(t, d.codec, raw)
	h.Length = int32(HeaderSize - prefixSize + len(h.Records))
	b := h.AppendTo(nil)
	binary.BigEndian.PutUint32(b[crcAt:], crc32.Checksum(b[attrsAt:], crc32.MakeTable(crc32.Castagnoli)))
	return b
}

func dumbCompress(t testing.TB, codec Codec, raw []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	var w io.WriteCloser
	switch codec {
	case None:
		return raw
	case Gzip:
		w = gzip.NewWriter(&out)
	case Snappy:
		return s2.EncodeSnappy(nil, raw)
	case Lz4:
		w = lz4.NewWriter(&out)
	case Zstd:
		encoder, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1))
		require.NoError(t, err)
		w = encoder
	}
	_, err := w.Write(raw)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes()
}

// dumbRead reads batches as franz-go's consumer does, control records included. Timestamps are those that a consumer sees.
func dumbRead(t testing.TB, batches []byte, from route.Offset) []Record {
	t.Helper()
	partition := kmsg.NewFetchResponseTopicPartition()
	partition.RecordBatches = batches
	fetched, _ := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{KeepControlRecords: true, Offset: int64(from)}, &partition, kgo.DefaultDecompressor(), nil)
	require.NoError(t, fetched.Err)
	records := make([]Record, 0, len(fetched.Records))
	for _, r := range fetched.Records {
		records = append(records, fromKgo(r))
	}
	return records
}

// fromKgo translates. The consumer shows records of format 0 without a timestamp of its own.
func fromKgo(r *kgo.Record) Record {
	out := Record{Offset: route.Offset(r.Offset), Timestamp: r.Timestamp.UnixMilli(), Key: r.Key, Value: r.Value}
	if r.Attrs.TimestampType() == -1 {
		out.Timestamp = -1
	}
	for _, h := range r.Headers {
		out.Headers = append(out.Headers, Header{Key: h.Key, Value: h.Value})
	}
	return out
}

// clone copies a record out of its reader's memory.
func clone(r *Record) Record {
	out := Record{Offset: r.Offset, Timestamp: r.Timestamp, Key: slices.Clone(r.Key), Value: slices.Clone(r.Value)}
	for _, h := range r.Headers {
		out.Headers = append(out.Headers, Header{Key: strings.Clone(h.Key), Value: slices.Clone(h.Value)})
	}
	return out
}

// read reads batches with the package's own Reader.
func read(t testing.TB, r *Reader, batches ...Batch) []Record {
	t.Helper()
	records := []Record{}
	for _, b := range batches {
		require.NoError(t, r.Reset(b))
		for {
			record, err := r.Next()
			if err == io.EOF { //nolint:errorlint // the contract is io.EOF itself
				break
			}
			require.NoError(t, err)
			records = append(records, clone(record))
		}
	}
	return records
}

func codecs() []Codec { return []Codec{None, Gzip, Snappy, Lz4, Zstd} }
