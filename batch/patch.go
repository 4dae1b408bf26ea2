package batch

import (
	"encoding/binary"
	"hash/crc32"
)

// Producer is what a target's broker checks the order of batches by (KIP-98): a producer id, its epoch and the sequence number of the batch's first record. -1, -1, -1 is none.
type Producer struct {
	ID       int64
	Epoch    int16
	Sequence int32
}

// Patch makes a fetched v2 batch one that may be produced, in place: base offset 0, leader epoch -1, the bits for append time, transaction and delete horizon cleared, and the
// producer's fields set. The base timestamp stays, since the records' timestamps are counted from it, also when it was a delete horizon.
//
// The CRC is carried over the change and never computed from the payload, so that a payload damaged before or after is still refused by the target's broker. A batch may be
// patched any number of times. Message sets cannot be patched (they go through a Rewriter) and make it panic.
func (b Batch) Patch(p Producer) {
	if b.legacy() {
		panic("BUG: patching a batch of an old format")
	}
	header := b[attrsAt:HeaderSize]
	before := crc32.Checksum(header, castagnoli)
	binary.BigEndian.PutUint64(b, 0)
	binary.BigEndian.PutUint32(b[epochAt:], ^uint32(0))
	attributes := b.int16(attrsAt) &^ (appendTimeBit | transactionalBit | deleteHorizonBit)
	binary.BigEndian.PutUint16(b[attrsAt:], uint16(attributes))
	b.putProducer(p)
	// Both checksums have the same length and start, so what they have in common cancels out: the difference is that of the changed bits alone.
	if delta := before ^ crc32.Checksum(header, castagnoli); delta != 0 {
		binary.BigEndian.PutUint32(b[crcAt:], b.CRC()^shiftCRC(delta, len(b)-HeaderSize))
	}
}

// putProducer writes the three producer fields and leaves the CRC alone.
func (b Batch) putProducer(p Producer) {
	binary.BigEndian.PutUint64(b[producerAt:], uint64(p.ID))
	binary.BigEndian.PutUint16(b[prodEpochAt:], uint16(p.Epoch))
	binary.BigEndian.PutUint32(b[sequenceAt:], uint32(p.Sequence))
}
