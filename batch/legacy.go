package batch

import (
	"encoding/binary"
	"errors"
	"io"

	"github.com/causeway-mirror/causeway/route"
)

// An entry of a message set: offset 8, length 4, CRC 4, magic 1, attributes 1, timestamp 8 (format 1 only), key and value, each with its length as int32, -1 for null.
// In a compressed entry the value is a message set of its own.
const (
	legacyCRCAt   = 12
	legacyAttrsAt = 17
	legacyTimeAt  = 18
)

// legacyKeyAt is the place of the key's length.
func legacyKeyAt(magic int8) int {
	if magic == 0 {
		return legacyTimeAt
	}
	return legacyTimeAt + 8
}

// legacySize is the length of the smallest entry: null key, null value.
func legacySize(magic int8) int { return legacyKeyAt(magic) + 8 }

// legacyTimestamp reads the timestamp, which format 0 does not have.
func (b Batch) legacyTimestamp() int64 {
	if b.Magic() == 0 {
		return -1
	}
	return b.int64(legacyTimeAt)
}

// checkLegacy looks at what is left to check when offset, length and magic are right.
func (b Batch) checkLegacy() error {
	if codec := b.Codec(); codec > Lz4 {
		return corrupt(b, "codec", int8(codec), "unknown codec for this format")
	}
	_, _, err := b.legacyKeyValue()
	return err
}

// legacyKeyValue gives key and value; nil is null.
func (b Batch) legacyKeyValue() (key, value []byte, err error) {
	key, rest, ok := legacyBytes(b[legacyKeyAt(b.Magic()):])
	if !ok {
		return nil, nil, corrupt(b, "key", nil, "length does not fit the entry")
	}
	value, rest, ok = legacyBytes(rest)
	if !ok || len(rest) > 0 {
		return nil, nil, corrupt(b, "value", nil, "length does not fit the entry")
	}
	return key, value, nil
}

// legacyBytes cuts a field off that begins with its length.
func legacyBytes(b []byte) (field, rest []byte, ok bool) {
	if len(b) < 4 {
		return nil, nil, false
	}
	size := int64(int32(binary.BigEndian.Uint32(b)))
	b = b[4:]
	if size == -1 {
		return nil, b, true
	}
	if size < 0 || size > int64(len(b)) {
		return nil, nil, false
	}
	return b[:size:size], b[size:], true
}

// resetLegacy begins with an entry of a message set: the entry itself, or the message set in it.
func (r *Reader) resetLegacy() error {
	r.rest, r.shift, r.last = r.batch, 0, route.NoOffset
	if r.batch.Codec() == None {
		return nil
	}
	_, value, err := r.batch.legacyKeyValue()
	if err != nil {
		return err
	}
	if value == nil {
		return corrupt(r.batch, "value", nil, "null in a compressed entry")
	}
	if r.rest, err = r.decompress(value); err != nil {
		return err
	}
	if r.batch.Magic() == 0 {
		return nil
	}
	// Format 1 counts the offsets inside from the first; the entry has that of the last (KIP-31). So the last one inside has to be found.
	var last route.Offset
	for rest := r.rest; len(rest) > 0; {
		var inner Batch
		if inner, rest, err = Next(rest); err != nil {
			return r.fail("value", nil, "the message set inside is not whole")
		}
		last = inner.BaseOffset()
	}
	if r.shift = r.batch.BaseOffset() - last; r.shift < 0 {
		return r.fail("offset", last, "an inner offset beyond the entry's")
	}
	return nil
}

// nextLegacy gives the next record of a message set. An offset inside may not leave the entry's, nor go back.
func (r *Reader) nextLegacy() (*Record, error) {
	inner, rest, err := Next(r.rest)
	if errors.Is(err, io.EOF) {
		return nil, io.EOF
	}
	if err != nil {
		return nil, r.fail("value", nil, "the message set inside is not whole")
	}
	if err := inner.Check(); err != nil {
		return nil, r.fail("value", nil, "the message set inside: "+err.Error())
	}
	nested := inner.Codec() != None // an entry that is not compressed is read as a set of one
	if inner.Magic() != r.batch.Magic() || nested {
		return nil, r.fail("value", nil, "an entry inside is compressed or of another format")
	}
	key, value, err := inner.legacyKeyValue()
	if err != nil {
		return nil, err
	}
	offset := inner.BaseOffset() + r.shift
	if offset <= r.last || offset > r.batch.BaseOffset() {
		return nil, r.fail("offset", offset, "out of order or beyond the entry's")
	}
	r.record = Record{Offset: offset, Timestamp: inner.legacyTimestamp(), Key: key, Value: value, Headers: r.headers[:0]}
	r.rest, r.last = rest, offset
	return &r.record, nil
}
