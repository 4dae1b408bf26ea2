package batch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"

	"github.com/causeway-mirror/causeway/route"
)

// Verdict is what is to happen to a record.
type Verdict int8

// The verdicts. Changed must be said when any field of the record is another than before: a kept record is copied as it stood.
const (
	Keep Verdict = iota
	Changed
	Drop
)

// Options says what a rewrite is to do.
type Options struct {
	From       route.Offset                   // From is where to begin: records below it are left out, without asking Map.
	Codec      *Codec                         // Codec of the output; nil keeps that of the first input batch that has records.
	MaxBytes   int                            // MaxBytes bounds an output batch, in bytes on the wire; 0 is no bound.
	AppendTime bool                           // AppendTime gives the records of a batch with append time that time, so that the target's readers see what the source's see.
	Map        func(*Record) (Verdict, error) // Map decides on each record and may change it, but not its offset; nil keeps all.
}

// Piece is one output batch of a rewrite.
type Piece struct {
	Batch     Batch
	First     route.Offset // First is the source offset of the first record in it.
	Next      route.Offset // Next is the source offset after all that the piece covers, left-out records included: where to go on once it is stored.
	Oversized bool         // Oversized says that it is one record that does not fit MaxBytes.
}

// flushAt is the size in bytes of uncompressed records at which an output batch is ended although more would fit: readers have to decompress it whole, as this package does.
const flushAt = 64 << 20

// Rewriter makes new batches of the records of others, and uses its memory again for each call. The zero value is ready. Not for concurrent use.
type Rewriter struct {
	// MaxDecoded is Reader.MaxDecoded for the input.
	MaxDecoded int

	reader Reader
	raw    []byte // the encoded records of the batch being made, as if it becomes one
	marks  []mark // one for each of them
	part   []byte // the encoded records of a part, when it has to be split
	body   []byte // the body of a changed record
	header [HeaderSize]byte
	codec  Codec // of the output, when the options leave it to the input
	codecs compressor
}

// mark remembers of a record what is needed to move it to another batch.
type mark struct {
	offset    route.Offset // in the source's log
	timestamp int64
	body, end int // places in raw
}

// Rewrite makes as few batches as it can of the records of all input batches, which follow each other in one partition. Control batches are left out. If nothing is left there are
// no pieces; else the last piece's Next is that of the last input batch. Offsets in the output are dense from 0, the producer is none (Batch.Patch sets it), the CRC is computed.
// The pieces' memory is the caller's. The error is a *CorruptError for the input, or that of Map with the record's offset; there are no pieces then.
func (w *Rewriter) Rewrite(in []Batch, o Options) (pieces []Piece, err error) {
	w.release()
	w.reader.MaxDecoded = w.MaxDecoded
	for _, b := range in {
		if err := w.reader.Reset(b); err != nil {
			return nil, err
		}
		if b.Control() || b.Records() == 0 {
			continue // they are never compressed, so they have no say in the codec either
		}
		if o.Codec == nil {
			w.codec = b.Codec()
			o.Codec = &w.codec
		}
		if pieces, err = w.read(pieces, b, &o); err != nil {
			return nil, err
		}
	}
	if pieces, err = w.flush(pieces, &o); err != nil {
		return nil, err
	}
	for i := range pieces {
		if i+1 < len(pieces) {
			pieces[i].Next = pieces[i+1].First
		} else {
			pieces[i].Next = in[len(in)-1].NextOffset()
		}
	}
	return pieces, nil
}

// release forgets what a call that failed left, and gives back the memory of rare large batches.
func (w *Rewriter) release() {
	w.raw, w.marks = w.raw[:0], w.marks[:0]
	if cap(w.raw)+cap(w.part)+cap(w.codecs.out)+cap(w.body) > 4*keptScratch {
		w.raw, w.part, w.body, w.codecs = nil, nil, nil, compressor{}
	}
}

// read takes over the records of the batch that the reader stands at.
func (w *Rewriter) read(pieces []Piece, b Batch, o *Options) ([]Piece, error) {
	for {
		record, err := w.reader.Next()
		if errors.Is(err, io.EOF) {
			return pieces, nil
		}
		if err != nil {
			return nil, err
		}
		offset := record.Offset
		if offset < o.From {
			continue
		}
		if o.AppendTime && b.AppendTime() {
			record.Timestamp = b.MaxTimestamp()
		}
		verdict := Keep
		if o.Map != nil {
			if verdict, err = o.Map(record); err != nil {
				return nil, fmt.Errorf("map record %d: %w", offset, err)
			}
		}
		if verdict == Drop {
			continue
		}
		body := w.reader.body
		if verdict == Changed || body == nil {
			w.body = record.appendBody(w.body[:0])
			body = w.body
		}
		w.add(offset, record.Timestamp, body)
		if len(w.raw) >= flushAt {
			if pieces, err = w.flush(pieces, o); err != nil {
				return nil, err
			}
		}
	}
}

// add appends a record to the batch being made.
func (w *Rewriter) add(offset route.Offset, timestamp int64, body []byte) {
	base := timestamp
	if len(w.marks) > 0 {
		base = w.marks[0].timestamp
	}
	w.raw = appendRecord(w.raw, timestamp-base, int64(len(w.marks)), body)
	w.marks = append(w.marks, mark{offset: offset, timestamp: timestamp, body: len(w.raw) - len(body), end: len(w.raw)})
}

// flush makes a piece, or as many as are needed, of what was added.
func (w *Rewriter) flush(pieces []Piece, o *Options) ([]Piece, error) {
	if len(w.marks) == 0 {
		return pieces, nil
	}
	codec, maxBytes := *o.Codec, o.MaxBytes
	if maxBytes <= 0 {
		maxBytes = math.MaxInt32
	}
	payload, err := w.codecs.compress(codec, w.raw)
	if err != nil {
		return nil, err
	}
	if size := HeaderSize + len(payload); size <= maxBytes || len(w.marks) == 1 {
		if pieces, err = w.finish(pieces, w.marks, codec, payload); err == nil {
			pieces[len(pieces)-1].Oversized = size > maxBytes
		}
	} else {
		pieces, err = w.split(pieces, codec, maxBytes, len(payload))
	}
	w.raw, w.marks = w.raw[:0], w.marks[:0]
	return pieces, err
}

// split cuts what was added into several batches. How many records fit cannot be known before they are compressed, so it is guessed from how well they were compressed before, a
// little low, and guessed again lower when it was too many.
func (w *Rewriter) split(pieces []Piece, codec Codec, maxBytes, compressed int) ([]Piece, error) {
	ratio := float64(len(w.raw)) / float64(max(compressed, 1))
	for rest := w.marks; len(rest) > 0; {
		room := float64(maxBytes-HeaderSize) * ratio * 0.98
		taken := fitting(rest, room)
		payload, err := w.assemble(rest[:taken], codec)
		for err == nil && HeaderSize+len(payload) > maxBytes && taken > 1 {
			room = float64(rest[taken-1].end-rest[0].body) * float64(maxBytes-HeaderSize) / float64(len(payload)) * 0.98
			taken = min(taken-1, fitting(rest[:taken], room))
			payload, err = w.assemble(rest[:taken], codec)
		}
		if err != nil {
			return nil, err
		}
		if pieces, err = w.finish(pieces, rest[:taken], codec, payload); err != nil {
			return nil, err
		}
		pieces[len(pieces)-1].Oversized = HeaderSize+len(payload) > maxBytes
		ratio = float64(len(w.part)) / float64(max(len(payload), 1))
		rest = rest[taken:]
	}
	return pieces, nil
}

// fitting is the number of records, one at least, that take no more than room before compression.
func fitting(marks []mark, room float64) int {
	for i := range marks {
		if float64(marks[i].end-marks[0].body) > room {
			return max(i, 1)
		}
	}
	return len(marks)
}

// assemble encodes records for a batch of their own and compresses them.
func (w *Rewriter) assemble(marks []mark, codec Codec) ([]byte, error) {
	w.part = w.part[:0]
	for i, m := range marks {
		w.part = appendRecord(w.part, m.timestamp-marks[0].timestamp, int64(i), w.raw[m.body:m.end])
	}
	return w.codecs.compress(codec, w.part)
}

// finish puts the header before the payload, in new memory.
func (w *Rewriter) finish(pieces []Piece, marks []mark, codec Codec, payload []byte) ([]Piece, error) {
	size := HeaderSize + len(payload)
	if size > math.MaxInt32 {
		return nil, fmt.Errorf("encode batch at offset %d: %d bytes are more than the format holds", marks[0].offset, size)
	}
	latest := marks[0].timestamp
	for _, m := range marks {
		latest = max(latest, m.timestamp)
	}
	header := Batch(w.header[:])
	binary.BigEndian.PutUint64(header, 0)
	binary.BigEndian.PutUint32(header[lengthAt:], uint32(size-prefixSize))
	binary.BigEndian.PutUint32(header[epochAt:], ^uint32(0))
	header[magicAt] = 2
	binary.BigEndian.PutUint16(header[attrsAt:], uint16(codec))
	binary.BigEndian.PutUint32(header[lastDeltaAt:], uint32(len(marks)-1))
	binary.BigEndian.PutUint64(header[baseTimeAt:], uint64(marks[0].timestamp))
	binary.BigEndian.PutUint64(header[maxTimeAt:], uint64(latest))
	header.putProducer(Producer{ID: -1, Epoch: -1, Sequence: -1})
	binary.BigEndian.PutUint32(header[countAt:], uint32(len(marks)))
	b := make(Batch, 0, size)
	b = append(append(b, header...), payload...)
	binary.BigEndian.PutUint32(b[crcAt:], crc32.Checksum(b[attrsAt:], castagnoli))
	return append(pieces, Piece{Batch: b, First: marks[0].offset}), nil
}

// Scan shows every record to m and only looks at the answers, so that a batch whose records all pass unchanged may go raw. It says whether any record was changed or dropped and
// how many were not dropped. What m changes in a record is forgotten. The error is as for Rewrite.
func (w *Rewriter) Scan(b Batch, m func(*Record) (Verdict, error)) (changed bool, kept int32, err error) {
	w.reader.MaxDecoded = w.MaxDecoded
	if err := w.reader.Reset(b); err != nil {
		return false, 0, err
	}
	for {
		record, err := w.reader.Next()
		if errors.Is(err, io.EOF) {
			return changed, kept, nil
		}
		if err != nil {
			return false, 0, err
		}
		offset := record.Offset
		verdict, err := m(record)
		if err != nil {
			return false, 0, fmt.Errorf("map record %d: %w", offset, err)
		}
		changed = changed || verdict != Keep
		if verdict != Drop {
			kept++
		}
	}
}
