package survey

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/causeway-mirror/causeway/batch"
	"github.com/causeway-mirror/causeway/internal/slab"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/wire"
)

const fetchBytes = 1 << 20

// Log is a partition as its leader has it.
type Log struct {
	client    *wire.Client
	partition route.Partition
	broker    int32
	committed bool
	// Start is the first offset that is there; End lies behind the last, and behind the last committed one if only such are read.
	Start, End route.Offset
}

// Open asks where a log is and which offsets it has. With committed, records of aborted and open transactions are left out.
func Open(ctx context.Context, client *wire.Client, p route.Partition, committed bool) (Log, error) {
	l := Log{client: client, partition: p, committed: committed}
	m, err := client.Metadata(ctx, p.Topic)
	if err != nil {
		return l, err
	}
	t, found := m.Topics[p.Topic], false
	for i := range t.Partitions {
		if t.Partitions[i].Partition == p.Partition {
			l.broker, found = t.Partitions[i].Leader, true
		}
	}
	if !found {
		if t.Err == nil {
			t.Err = kerr.UnknownTopicOrPartition
		}
		return l, fmt.Errorf("%s: %w", p, t.Err)
	}
	for at, to := range map[int64]*route.Offset{wire.AtStart: &l.Start, wire.AtEnd: &l.End} {
		found, err := client.ListOffsets(ctx, map[route.Partition]int32{p: l.broker}, at, committed)
		if err == nil {
			err = found[p].Err
		}
		if err != nil {
			return l, fmt.Errorf("%s: find where the log begins and ends: %w", p, err)
		}
		*to = found[p].Offset
	}
	return l, nil
}

// each shows the batches that have offsets from `from` to `to`, not including `to`, in order, until one is enough. What nobody may read of them is left
// out: control batches, and aborted transactions of a log of which only what is committed is read.
func (l Log) each(ctx context.Context, from, to route.Offset, show func(batch.Batch) (more bool, err error)) error {
	_, err := l.walk(ctx, from, to, show)
	return err
}

// walk is each, and says whether the log still has all that it ever had of what was gone through: not where a cleaner was at work, or where the first
// records are deleted.
func (l Log) walk(ctx context.Context, from, to route.Offset, show func(batch.Batch) (more bool, err error)) (whole bool, err error) {
	at, to := max(from, l.Start), min(to, l.End)
	if at >= to {
		return from >= l.Start, nil
	}
	conn, err := l.client.Dial(ctx, l.broker)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	r := &turn{log: l, conn: conn, pool: slab.NewPool(slab.NewBudget(fetchBytes), fetchBytes), to: to, show: show, holed: from < l.Start}
	for at < to && !r.enough {
		next, err := r.fetch(ctx, at)
		if err != nil {
			return false, fmt.Errorf("read %s at %d: %w", l.partition, at, err)
		}
		if next == at && !r.enough {
			return false, fmt.Errorf("read %s at %d of %d: nothing comes", l.partition, at, to) //nolint:err113 // can't be decided on
		}
		at = next
	}
	return !r.holed, nil
}

// turn is one reading of a log.
type turn struct {
	log     Log
	conn    *wire.Conn
	pool    *slab.Pool
	aborted wire.Aborted
	to      route.Offset
	show    func(batch.Batch) (bool, error)
	enough  bool
	holed   bool // records that were there are not any more
}

// fetch shows what one fetch from `at` brings, and returns the position behind it.
func (r *turn) fetch(ctx context.Context, at route.Offset) (route.Offset, error) {
	a, s, err := r.conn.FetchOne(ctx, wire.One{Partition: r.log.partition, At: at, ReadCommitted: r.log.committed, Pool: r.pool, Bytes: fetchBytes})
	if err != nil {
		return at, err
	}
	defer s.Release()
	r.aborted.Begin(a.AbortedTransactions, r.log.committed)
	return r.scan(a.RecordBatches, at)
}

// scan shows the batches of an answer.
func (r *turn) scan(records []byte, at route.Offset) (route.Offset, error) {
	for at < r.to {
		b, rest, err := batch.Next(records)
		if errors.Is(err, io.EOF) || errors.Is(err, batch.ErrTruncated) {
			break
		}
		if err == nil {
			err = b.Check()
		}
		if err == nil {
			err = b.CheckCRC()
		}
		if err != nil {
			return at, err
		}
		records = rest
		keep := r.aborted.Keeps(b)
		if b.NextOffset() <= at {
			continue
		}
		r.holed = r.holed || b.BaseOffset() > at || !b.Control() && !b.Dense()
		if keep && b.Records() > 0 && b.BaseOffset() < r.to {
			more, err := r.show(b)
			if err != nil {
				return at, err
			}
			if r.enough = !more; r.enough {
				return at, nil
			}
		}
		at = b.NextOffset()
	}
	return at, nil
}
