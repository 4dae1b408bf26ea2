package survey

import (
	"context"

	"github.com/causeway-mirror/causeway/batch"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

// Last is the last record of a producer id on a target.
type Last struct {
	Known    bool // there is one
	Epoch    int16
	Sequence int32
	Digest   uint64 // 0 if a cleaner took the record away
}

// by says that a batch was sent under a producer id.
func by(id int64, b batch.Batch) bool {
	return b.Magic() >= 2 && b.ProducerID() == id && b.BaseSequence() >= 0
}

// back reads a log backwards, in ranges that grow, each of them forwards. It ends when seen says that nothing before a range is wanted.
func (l Log) back(ctx context.Context, end route.Offset, show func(batch.Batch) (more bool, err error), seen func() bool) error {
	for span, to := route.Offset(1), end; to > l.Start && !seen(); span *= 8 {
		from := max(l.Start, to-span)
		if err := l.each(ctx, from, to, show); err != nil {
			return err
		}
		to = from
	}
	return nil
}

// LastOf finds the last record of a producer id.
func (l Log) LastOf(ctx context.Context, id int64) (last Last, err error) {
	var reader batch.Reader
	err = l.back(ctx, l.End, func(b batch.Batch) (bool, error) {
		if !by(id, b) {
			return true, nil
		}
		last = Last{Known: true, Epoch: b.ProducerEpoch(), Sequence: offsets.Plus(b.BaseSequence(), b.LastOffsetDelta())}
		return true, decode(&reader, b, func(r *batch.Record) error {
			if r.Offset == b.LastOffset() {
				last.Digest = r.Digest()
			}
			return nil
		})
	}, func() bool { return last.Known })
	return last, err
}

// Sent names a record by what its producer sent it under.
type Sent struct {
	ID       int64
	Epoch    int16
	Sequence int32
}

// Find finds a record that was sent, which stands at no later offset than most. at is NoOffset if it is not there; digest is 0 if a cleaner took it
// away.
func (l Log) Find(ctx context.Context, s Sent, most route.Offset) (at route.Offset, digest uint64, err error) {
	var reader batch.Reader
	passed := false
	at = route.NoOffset
	err = l.back(ctx, min(most+1, l.End), func(b batch.Batch) (bool, error) {
		if !by(s.ID, b) || b.ProducerEpoch() > s.Epoch {
			return true, nil
		}
		nth := offsets.Ahead(b.BaseSequence(), s.Sequence)
		if b.ProducerEpoch() < s.Epoch || nth > int64(b.LastOffsetDelta()) {
			passed = true // what is looked for stands behind it, or nowhere
			return true, nil
		}
		if nth < 0 {
			return false, nil
		}
		at = b.BaseOffset() + route.Offset(nth)
		return false, decode(&reader, b, func(r *batch.Record) error {
			if r.Offset == at {
				digest = r.Digest()
			}
			return nil
		})
	}, func() bool { return passed || at >= 0 })
	return at, digest, err
}

// FirstLike finds the first record of a producer id that has a digest; NoOffset if none has.
func (l Log) FirstLike(ctx context.Context, id int64, digest uint64) (at route.Offset, err error) {
	var reader batch.Reader
	at = route.NoOffset
	err = l.each(ctx, l.Start, l.End, func(b batch.Batch) (bool, error) {
		if !by(id, b) {
			return true, nil
		}
		err := decode(&reader, b, func(r *batch.Record) error {
			if at < 0 && r.Digest() == digest {
				at = r.Offset
			}
			return nil
		})
		return at < 0, err
	})
	return at, err
}
