package batch

import "encoding/binary"

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
