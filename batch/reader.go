package batch

import (
	"io"

	"github.com/causeway-mirror/causeway/route"
)

// DefaultMaxDecoded is Reader.MaxDecoded when that is zero: 256 MiB.
const DefaultMaxDecoded = 256 << 20

// keptScratch is how much memory in bytes is kept for the next batch. What a rare larger batch needed is given back.
const keptScratch = 8 << 20

// Reader decodes batches of all formats, one after the other, and uses its memory again for each. The zero value is ready. Not for concurrent use.
type Reader struct {
	// MaxDecoded bounds the size in bytes that a batch may decompress to, so that a few bytes cannot claim all memory. Zero means DefaultMaxDecoded.
	MaxDecoded int

	batch   Batch
	rest    []byte       // what is not read yet, decompressed
	left    int32        // records not read yet (format 2)
	shift   route.Offset // what is added to offsets of a message set
	last    route.Offset // the offset of the record before; below the base offset at first
	body    []byte       // the record's body as it stands in the batch; nil for a message set
	record  Record
	headers []Header
	scratch []byte
	codecs  decompressor
}

// Reset begins with a batch: checks its header and decompresses its records. The CRC is not looked at. Records of the batch before become invalid. The batch must not change while it is read.
func (r *Reader) Reset(b Batch) error {
	r.batch, r.rest, r.left, r.body = b, nil, 0, nil
	if cap(r.scratch) > keptScratch {
		r.scratch = nil
	}
	if err := b.Check(); err != nil {
		return err
	}
	if b.legacy() {
		return r.resetLegacy()
	}
	r.left, r.last = b.Records(), b.BaseOffset()-1
	if r.left == 0 {
		return nil // whatever a codec makes of no bytes
	}
	var err error
	r.rest, err = r.decompress(b[HeaderSize:])
	return err
}

// decompress gives the bytes themselves when the batch is not compressed.
func (r *Reader) decompress(payload []byte) ([]byte, error) {
	codec := r.batch.Codec()
	if codec == None {
		return payload, nil
	}
	limit := r.MaxDecoded
	if limit <= 0 {
		limit = DefaultMaxDecoded
	}
	out, err := r.codecs.decompress(r.scratch, codec, payload, limit)
	if err != nil {
		e := corrupt(r.batch, "records", nil, "cannot be decompressed ("+codec.String()+")")
		e.Err = err
		return nil, e
	}
	r.scratch = out
	return out, nil
}

// Next gives the next record; io.EOF at the end. The record, and all that it points to, is valid until the next call of Next or Reset. After any other error the rest of the batch is lost.
func (r *Reader) Next() (*Record, error) {
	if r.batch == nil {
		return nil, io.EOF
	}
	if r.batch.legacy() {
		return r.nextLegacy()
	}
	if r.left == 0 {
		if len(r.rest) > 0 {
			return nil, r.fail("recordsCount", r.batch.Records(), "bytes are left after the last record")
		}
		return nil, io.EOF
	}
	size, i := varint(r.rest, 0)
	if i < 0 || size < minRecordSize-1 || size > int64(len(r.rest)-i) {
		return nil, r.fail("record length", nil, "does not fit the batch")
	}
	end := i + int(size)
	bytes := r.rest[i:end:end]
	timestampDelta, i := varint(bytes, 1) // the first byte is the attributes, which mean nothing
	offsetDelta, i := varint(bytes, i)
	if i < 0 || offsetDelta < 0 || offsetDelta > int64(r.batch.LastOffsetDelta()) {
		return nil, r.fail("offset delta", offsetDelta, "outside of the batch")
	}
	offset := r.batch.BaseOffset() + route.Offset(offsetDelta)
	if offset <= r.last {
		return nil, r.fail("offset delta", offsetDelta, "not larger than the one before")
	}
	r.record.Offset, r.record.Timestamp = offset, r.batch.BaseTimestamp()+timestampDelta
	r.body = bytes[i:]
	if wrong := r.record.decodeBody(r.body, r.headers); wrong != "" {
		return nil, r.fail(wrong, nil, "does not fit the record")
	}
	r.headers = r.record.Headers // larger than before, perhaps; a handler may put its own slice into the record, so the memory is remembered apart
	r.rest, r.last, r.left = r.rest[end:], offset, r.left-1
	return &r.record, nil
}

// fail ends the batch.
func (r *Reader) fail(field string, value any, reason string) error {
	err := corrupt(r.batch, field, value, reason)
	r.batch = nil
	return err
}
