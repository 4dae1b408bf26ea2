package batch

import (
	"encoding/binary"
	"hash"
	"hash/fnv"
	"math"
	"unsafe"

	"github.com/causeway-mirror/causeway/route"
)

// minRecordSize is the length in bytes of the smallest record of format 2: each of its seven fields takes one byte at least.
const minRecordSize = 7

// Record is one record of a batch, as a view: see Reader.Next for how long it lives. Its byte slices may be replaced by others, but their bytes must not be written to: they may
// be those of a batch that passes on raw.
type Record struct {
	Offset    route.Offset // Offset in the source's log.
	Timestamp int64        // Timestamp in milliseconds as the producer gave it, also when the batch has an append time; -1 when there is none.
	Key       []byte       // Key is nil when null.
	Value     []byte       // Value is nil when null.
	Headers   []Header     // Headers in their order; keys may repeat.
}

// Digest is a number for the record's key, value and headers by which two records are told apart. It is never 0.
func (r *Record) Digest() uint64 {
	h := fnv.New64a()
	for _, field := range [][]byte{r.Key, r.Value} {
		writeSized(h, field)
	}
	for i := range r.Headers {
		writeSized(h, []byte(r.Headers[i].Key))
		writeSized(h, r.Headers[i].Value)
	}
	return h.Sum64() | 1
}

// writeSized puts the length before the field, -1 for null, so that no two records are the same row of bytes.
func writeSized(h hash.Hash, field []byte) {
	size := int64(len(field))
	if field == nil {
		size = -1
	}
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(size))
	_, _ = h.Write(b[:])
	_, _ = h.Write(field)
}

// Header is one of a record's headers. Key points into the same memory as the record and lives as long (strings.Clone keeps it).
type Header struct {
	Key   string
	Value []byte // Value is nil when null.
}

// A record of format 2: length, attributes (one byte, unused), timestamp delta, offset delta, then what is here called its body: key, value, headers. All numbers are zigzag varints.
// The body does not depend on the batch, so it is copied as it stands when a record moves to another one.

// varint reads a number at place i; next is negative when there is none.
func varint(b []byte, i int) (v int64, next int) {
	if uint(i) < uint(len(b)) && b[i] < 0x80 {
		return int64(b[i]>>1) ^ -int64(b[i]&1), i + 1
	}
	return longVarint(b, i)
}

// longVarint is varint for numbers of more than one byte, apart so that the usual case is inlined.
func longVarint(b []byte, i int) (v int64, next int) {
	if i < 0 || i >= len(b) {
		return 0, -1
	}
	v, n := binary.Varint(b[i:])
	if n <= 0 {
		return 0, -1
	}
	return v, i + n
}

// varintSize is the number of bytes that a number takes.
func varintSize(v int64) int {
	u := uint64(v)<<1 ^ uint64(v>>63)
	n := 1
	for ; u >= 0x80; u >>= 7 {
		n++
	}
	return n
}

// sized reads a field that begins with its length; null when that is -1.
func sized(b []byte, i int) (field []byte, next int) {
	size, i := varint(b, i)
	if i < 0 || size < -1 || size > int64(len(b)-i) {
		return nil, -1
	}
	if size < 0 {
		return nil, i
	}
	end := i + int(size)
	return b[i:end:end], end
}

// decodeBody reads key, value and headers, which must fill the body. The header slice's memory is used again. It gives the name of the field that is wrong, or "".
func (r *Record) decodeBody(body []byte, headers []Header) (wrong string) {
	var i int
	if r.Key, i = sized(body, 0); i < 0 {
		return "key"
	}
	if r.Value, i = sized(body, i); i < 0 {
		return "value"
	}
	count, i := varint(body, i)
	if i < 0 || count < 0 || 2*count > int64(len(body)-i) || count > math.MaxInt32 {
		return "header count"
	}
	headers = headers[:0]
	for range count {
		var key, value []byte
		if key, i = sized(body, i); i < 0 || key == nil {
			return "header key"
		}
		if value, i = sized(body, i); i < 0 {
			return "header value"
		}
		name := unsafe.String(unsafe.SliceData(key), len(key)) //nolint:gosec // a string a header would be an allocation a header; Header says how long it lives
		headers = append(headers, Header{Key: name, Value: value})
	}
	r.Headers = headers
	if i != len(body) {
		return "record length"
	}
	return ""
}

// appendBody writes key, value and headers.
func (r *Record) appendBody(dst []byte) []byte {
	dst = appendSized(dst, r.Key)
	dst = appendSized(dst, r.Value)
	dst = binary.AppendVarint(dst, int64(len(r.Headers)))
	for _, h := range r.Headers {
		dst = append(binary.AppendVarint(dst, int64(len(h.Key))), h.Key...)
		dst = appendSized(dst, h.Value)
	}
	return dst
}

// appendSized writes a field and its length.
func appendSized(dst, field []byte) []byte {
	if field == nil {
		return binary.AppendVarint(dst, -1)
	}
	return append(binary.AppendVarint(dst, int64(len(field))), field...)
}

// appendRecord writes a record with its deltas to the batch that it is to be in.
func appendRecord(dst []byte, timestampDelta, offsetDelta int64, body []byte) []byte {
	dst = binary.AppendVarint(dst, int64(1+varintSize(timestampDelta)+varintSize(offsetDelta)+len(body)))
	dst = append(dst, 0)
	dst = binary.AppendVarint(dst, timestampDelta)
	dst = binary.AppendVarint(dst, offsetDelta)
	return append(dst, body...)
}
