package letters

import (
	"context"
	"fmt"
	"time"

	"github.com/causeway-mirror/causeway/batch"
	"github.com/causeway-mirror/causeway/route"
)

// Letter is a dead letter that was not put back yet.
type Letter struct {
	At     route.Partition // where it stands
	Offset route.Offset    // there
	Buried time.Time       // when it became one
	Time   time.Time       // the record's own
	From   Origin          // of which Cluster is left out
	Bytes  int             // of key and value
}

// mostLetters bounds a list: each is kept in memory until it is answered.
const mostLetters = 100_000

// List gives the letters of a source topic that stand on a dead-letter topic now and were not put back, the oldest of each partition first. It reads
// them all, and leaves them where they are. Errors: ErrNone, what the brokers say.
func (b *Box) List(ctx context.Context, source, topic string) (all []Letter, err error) {
	w, err := b.begin(ctx, source, topic)
	if err != nil {
		return nil, err
	}
	w.looks = true
	w.do = func(_ context.Context, p route.Partition, _ batch.Batch, r *batch.Record) error {
		l, ok := open(r)
		if !ok || l.source != source {
			return nil
		}
		if len(all) == mostLetters {
			return fmt.Errorf("there are more than %d letters", mostLetters) //nolint:err113 // can't be decided on
		}
		all = append(all, Letter{
			At: p, Offset: r.Offset, Buried: time.UnixMilli(r.Timestamp).UTC(), Time: time.UnixMilli(l.timestamp).UTC(), Bytes: len(r.Key) + len(r.Value),
			From: Origin{Source: route.Partition{Topic: source, Partition: l.partition}, Offset: l.offset, Target: l.target, Reason: l.reason},
		})
		return nil
	}
	return all, w.run(ctx)
}
