package batch

import (
	"encoding/binary"
	"errors"
	"io"
	"math"

	"github.com/causeway-mirror/causeway/route"
)

// HeaderSize is the length in bytes of the header of a v2 batch; the records follow it.
const HeaderSize = 61

// Places of the header fields. The first three and the magic byte are at the same place in all three formats.
const (
	lengthAt    = 8
	prefixSize  = 12 // base offset and length: bytes that the length field does not count
	epochAt     = 12
	magicAt     = 16
	minPrefix   = 17 // as many bytes tell length and magic
	crcAt       = 17
	attrsAt     = 21
	lastDeltaAt = 23
	baseTimeAt  = 27
	maxTimeAt   = 35
	producerAt  = 43
	prodEpochAt = 51
	sequenceAt  = 53
	countAt     = 57
)

// Attribute bits of a v2 batch. The codec and the timestamp type are at the same place in the older formats.
const (
	codecBits        = 0x07
	appendTimeBit    = 0x08
	transactionalBit = 0x10
	controlBit       = 0x20
	deleteHorizonBit = 0x40
)

// ErrTruncated says that the last batch is cut short. That is normal at the end of a fetch, which is cut by size: the batch is to be fetched again from its base offset.
var ErrTruncated = errors.New("batch is cut short")

// Batch is a view of one whole record batch of format 2, or of one entry of a message set when Magic is below 2. Its methods read the header alone and need a batch that came out
// of Next or passed Check; a shorter slice makes them panic.
type Batch []byte

// Next cuts the first batch off a partition's records. The error is io.EOF when there is none, ErrTruncated when the first one is not whole, or a *CorruptError when its length
// or magic cannot be right. The batch's other fields have not been looked at: see Batch.Check.
func Next(records []byte) (b Batch, rest []byte, err error) {
	if len(records) == 0 {
		return nil, nil, io.EOF
	}
	if len(records) < minPrefix {
		return nil, records, ErrTruncated
	}
	total, err := lengthOf(records)
	if err != nil {
		return nil, records, err
	}
	if total > int64(len(records)) {
		return nil, records, ErrTruncated
	}
	return Batch(records[:total:total]), records[total:], nil
}

// lengthOf reads the whole batch's length, prefix included, from at least minPrefix bytes.
func lengthOf(records []byte) (int64, error) {
	size := int32(binary.BigEndian.Uint32(records[lengthAt:]))
	smallest := int32(HeaderSize)
	switch magic := int8(records[magicAt]); magic {
	case 0, 1:
		smallest = int32(legacySize(magic))
	case 2:
	default:
		return 0, corrupt(records, "magic", magic, "unknown format")
	}
	if size < smallest-prefixSize {
		return 0, corrupt(records, "length", size, "shorter than the header")
	}
	return prefixSize + int64(size), nil
}

func (b Batch) int64(at int) int64 { return int64(binary.BigEndian.Uint64(b[at:])) }
func (b Batch) int32(at int) int32 { return int32(binary.BigEndian.Uint32(b[at:])) }
func (b Batch) int16(at int) int16 { return int16(binary.BigEndian.Uint16(b[at:])) }

// legacy says that the batch is an entry of a message set.
func (b Batch) legacy() bool { return b[magicAt] < 2 }

// attributes gives the attribute bits, which the old formats keep in one byte.
func (b Batch) attributes() int16 {
	if b.legacy() {
		return int16(b[legacyAttrsAt])
	}
	return b.int16(attrsAt)
}

// Len is the length in bytes of the whole batch, header included.
func (b Batch) Len() int { return len(b) }

// Magic is the format: 2, or 0 and 1 for the message sets before it.
func (b Batch) Magic() int8 { return int8(b[magicAt]) }

// BaseOffset is the offset of the first record as the batch was written; that record may be gone. A compressed entry of a message set knows its last offset only, which is given instead.
func (b Batch) BaseOffset() route.Offset { return route.Offset(b.int64(0)) }

// LastOffset is the offset of the last record as the batch was written.
func (b Batch) LastOffset() route.Offset { return b.BaseOffset() + route.Offset(b.LastOffsetDelta()) }

// NextOffset is the offset that follows the batch: where to go on, whether records of it are left or not.
func (b Batch) NextOffset() route.Offset { return b.LastOffset() + 1 }

// LeaderEpoch is the epoch of the leader that appended the batch (KIP-101); -1 when it is not known.
func (b Batch) LeaderEpoch() int32 {
	if b.legacy() {
		return -1
	}
	return b.int32(epochAt)
}

// CRC is the stored checksum: CRC-32C from byte 21 on, or for message sets CRC-32 (IEEE) from the magic byte on.
func (b Batch) CRC() uint32 {
	if b.legacy() {
		return binary.BigEndian.Uint32(b[legacyCRCAt:])
	}
	return binary.BigEndian.Uint32(b[crcAt:])
}

// Codec says how the records are compressed.
func (b Batch) Codec() Codec { return Codec(b.attributes() & codecBits) }

// LastOffsetDelta is the distance from the base offset to the last offset; 0 in message sets.
func (b Batch) LastOffsetDelta() int32 {
	if b.legacy() {
		return 0
	}
	return b.int32(lastDeltaAt)
}

// BaseTimestamp is what the records' timestamps are counted from, in milliseconds. When HasDeleteHorizon it is not a time at which anything was produced. -1 in format 0.
func (b Batch) BaseTimestamp() int64 {
	if b.legacy() {
		return b.legacyTimestamp()
	}
	return b.int64(baseTimeAt)
}

// MaxTimestamp is the largest timestamp in milliseconds, or the append time of all records when AppendTime. -1 when there is none.
func (b Batch) MaxTimestamp() int64 {
	if b.legacy() {
		return b.legacyTimestamp()
	}
	return b.int64(maxTimeAt)
}

// ProducerID is the id of the idempotent producer (KIP-98); -1 when there is none.
func (b Batch) ProducerID() int64 {
	if b.legacy() {
		return -1
	}
	return b.int64(producerAt)
}

// ProducerEpoch is the epoch of the producer id; -1 when there is none.
func (b Batch) ProducerEpoch() int16 {
	if b.legacy() {
		return -1
	}
	return b.int16(prodEpochAt)
}

// BaseSequence is the sequence number of the first record; -1 when there is none.
func (b Batch) BaseSequence() int32 {
	if b.legacy() {
		return -1
	}
	return b.int32(sequenceAt)
}

// Records is the number of records in the batch; 0 when compaction removed them all. An entry of a message set says 1; if it is compressed, it may hold more.
func (b Batch) Records() int32 {
	if b.legacy() {
		return 1
	}
	return b.int32(countAt)
}

// AppendTime says that all records have the broker's append time, which is MaxTimestamp.
func (b Batch) AppendTime() bool { return b.attributes()&appendTimeBit != 0 && b.Magic() > 0 }

// Transactional says that the batch belongs to a transaction.
func (b Batch) Transactional() bool { return b.flag(transactionalBit) }

// Control says that the batch holds a marker of the broker and no data.
func (b Batch) Control() bool { return b.flag(controlBit) }

// HasDeleteHorizon says that compaction has put the time at which tombstones go into the base timestamp (KIP-534).
func (b Batch) HasDeleteHorizon() bool { return b.flag(deleteHorizonBit) }

// flag reads a bit that the old formats do not have.
func (b Batch) flag(bit int16) bool { return !b.legacy() && b.int16(attrsAt)&bit != 0 }

// Dense says that no record is missing between the first offset and the last. Only such a batch may pass raw: a broker counts offsets by records.
func (b Batch) Dense() bool {
	return !b.legacy() && b.Records() > 0 && int64(b.Records()) == int64(b.LastOffsetDelta())+1
}

// Abort says that a control batch ends its transaction by aborting it; if it is a transaction marker at all, it commits otherwise.
func (b Batch) Abort() bool {
	if !b.Control() {
		return false
	}
	var r Reader
	if r.Reset(b) != nil {
		return false
	}
	marker, err := r.Next()
	// A marker's key is its version and its type, two bytes each; type 0 is an abort.
	return err == nil && len(marker.Key) >= 4 && binary.BigEndian.Uint16(marker.Key[2:]) == 0
}

// Check looks whether every header field is plausible and gives a *CorruptError for the first that is not. Empty batches, which compaction leaves behind, and control batches are
// plausible. The records and the CRC are not looked at.
func (b Batch) Check() error {
	if len(b) < minPrefix {
		return corrupt(b, "length", len(b), "shorter than the header")
	}
	total, err := lengthOf(b)
	if err != nil {
		return err
	}
	if total != int64(len(b)) {
		return corrupt(b, "length", total-prefixSize, "is not the batch's length")
	}
	if offset := b.BaseOffset(); offset < 0 {
		return corrupt(b, "baseOffset", offset, "negative")
	}
	if b.legacy() {
		return b.checkLegacy()
	}
	if codec := b.Codec(); codec > Zstd {
		return corrupt(b, "codec", int8(codec), "unknown codec")
	}
	if err := b.checkCounts(); err != nil {
		return err
	}
	// Producer ids may be below -1: mirroring between brokers maps them so (KIP-1279), and nothing here counts on them. Timestamps may be anything that a client cared to send.
	switch {
	case b.LeaderEpoch() < -1:
		return corrupt(b, "leaderEpoch", b.LeaderEpoch(), "below -1")
	case b.ProducerEpoch() < -1:
		return corrupt(b, "producerEpoch", b.ProducerEpoch(), "below -1")
	case b.BaseSequence() < -1:
		return corrupt(b, "baseSequence", b.BaseSequence(), "below -1")
	}
	return nil
}

// checkCounts compares the two counts of a v2 batch with each other and with the bytes that are there.
func (b Batch) checkCounts() error {
	count, last, payload := b.Records(), b.LastOffsetDelta(), len(b)-HeaderSize
	switch {
	case last < 0:
		return corrupt(b, "lastOffsetDelta", last, "negative")
	case int64(b.BaseOffset()) > math.MaxInt64-1-int64(last):
		return corrupt(b, "baseOffset", b.BaseOffset(), "too large for the last offset delta")
	case count < 0:
		return corrupt(b, "recordsCount", count, "negative")
	case int64(count) > int64(last)+1:
		return corrupt(b, "recordsCount", count, "more records than offsets")
	case count > 0 && payload == 0:
		return corrupt(b, "recordsCount", count, "records without bytes")
	case b.Codec() == None && int64(count)*minRecordSize > int64(payload):
		return corrupt(b, "recordsCount", count, "more records than bytes")
	case b.Codec() == None && count == 0 && payload > 0:
		return corrupt(b, "recordsCount", count, "bytes without records")
	}
	return nil
}
