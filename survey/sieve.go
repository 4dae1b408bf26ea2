package survey

import (
	"context"

	"github.com/causeway-mirror/causeway/batch"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

// Beyond gives the digests of the records that a target has of a checkpoint's producer id and epoch beyond it, in order. At least n are known to have
// come there. whole is false where some of them are not there any more.
func (l Log) Beyond(ctx context.Context, at offsets.Checkpoint, n int64) (digests []uint64, whole bool, err error) {
	var reader batch.Reader
	whole = l.Start <= at.TargetOffset
	all, err := l.walk(ctx, at.TargetOffset, l.End, func(b batch.Batch) (bool, error) {
		if !by(at.ProducerID, b) || b.ProducerEpoch() != at.ProducerEpoch {
			return true, nil
		}
		ahead := offsets.Ahead(at.Sequence, b.BaseSequence())
		whole = whole && ahead <= int64(len(digests)) && b.Dense()
		known := int64(len(digests)) - ahead // of a batch that lies on the checkpoint
		return whole, decode(&reader, b, func(r *batch.Record) error {
			if known--; known < 0 {
				digests = append(digests, r.Digest())
			}
			return nil
		})
	})
	return digests, whole && (all || int64(len(digests)) >= n), err // what a cleaner has left of a batch may be nothing but its header
}

// Follow goes through a log from an offset on, taking each record that equals the next of digests, and gives the position behind the last of them. It
// finds nothing where the next of them is not within so many bytes.
//
// A filter looks at a record's key, value and headers alone, so that of equal records it keeps all or none: what was kept is found in this way, and
// nothing else. That holds as long as all of it is there: a later record may equal one that was deleted. So in what has lost records nothing is found.
func (l Log) Follow(ctx context.Context, from route.Position, digests []uint64, most int64) (behind route.Position, found bool, err error) {
	var reader batch.Reader
	behind = from
	if len(digests) == 0 {
		return behind, true, nil
	}
	left := most
	whole, err := l.walk(ctx, from.Offset, l.End, func(b batch.Batch) (bool, error) {
		left -= int64(b.Len())
		err := decode(&reader, b, func(r *batch.Record) error {
			if r.Offset >= from.Offset && len(digests) > 0 && r.Digest() == digests[0] {
				digests, left = digests[1:], most
				behind = route.Position{Offset: r.Offset + 1, LeaderEpoch: b.LeaderEpoch()}
			}
			return nil
		})
		return len(digests) > 0 && left > 0, err
	})
	return behind, len(digests) == 0 && whole, err
}
