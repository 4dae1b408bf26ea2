package connector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/causeway-mirror/causeway/batch"
	"github.com/causeway-mirror/causeway/cluster"
	"github.com/causeway-mirror/causeway/fetcher"
	"github.com/causeway-mirror/causeway/internal/slab"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/wire"
)

// Another filter forwards other records, so that the sequences of what was stored beyond the checkpoint say nothing of where to go on. Contents
// do: a filter looks at a record's key, value and headers alone, so that of equal records all are kept, or none. Hence the records that the
// target has beyond the checkpoint are found by going through the source once, taking each that equals the next one of the target, and the last
// of them is where the old filter has come to.

const (
	sieveBytes = 1 << 20
	// mostSieved bounds what is read of the source in vain: where records were changed, too, none is ever found.
	mostSieved = 512 << 20
)

// sieve finds what was stored beyond a checkpoint.
type sieve struct {
	c      *Connector
	t      *pair
	at     offsets.Checkpoint
	pool   *slab.Pool
	reader batch.Reader

	stored []uint64 // digests of the records that the target has beyond the checkpoint
}

// sieved moves a checkpoint behind what the target has beyond it that another filter has left, and gives what is to be told once that is stored:
// nothing, unless it can't be told for sure what that is.
func (c *Connector) sieved(ctx context.Context, t *pair, at, next offsets.Checkpoint) (offsets.Checkpoint, func(), error) {
	unsure := func() { c.unsure(at, "the filter, transform or isolation was changed") } // nothing is, after a clean end
	if at.Clean || at.TargetOffset < 0 || uncommitted(at.Fingerprint) != uncommitted(next.Fingerprint) {
		return next, unsure, nil
	}
	s := &sieve{c: c, t: t, at: at, pool: slab.NewPool(slab.NewBudget(sieveBytes), sieveBytes)}
	end, whole, err := s.target(ctx)
	if err != nil || !whole {
		return next, unsure, err
	}
	behind, found, err := s.source(ctx)
	if err != nil || !found {
		return next, unsure, err
	}
	next.SourceOffset, next.TargetOffset, next.LeaderEpoch = behind.Offset, end, behind.LeaderEpoch
	return next, func() {}, nil
}

func uncommitted(fingerprint string) bool { return strings.Contains(fingerprint, "+"+ReadUncommitted) }

// target notes what the target has of ours beyond the checkpoint, and where its log ends. It is not whole where records were deleted since.
func (s *sieve) target(ctx context.Context) (end route.Offset, whole bool, err error) {
	number, _ := s.t.align.Target(s.at.Partition.Partition)
	p := route.Partition{Topic: s.t.topic.Target, Partition: number}
	broker, err := leader(s.t.target, p)
	if err != nil {
		return 0, false, fmt.Errorf("target: %w", err)
	}
	last, err := s.appended(ctx, broker, p)
	if err != nil {
		return 0, false, err
	}
	if end, err = s.c.targetEnd(ctx, s.t, p); err != nil {
		return 0, false, err
	}
	whole = true
	err = s.read(ctx, s.c.target, broker, wire.One{Partition: p, At: s.at.TargetOffset}, end, func(_ *fetcher.Aborted, b batch.Batch) (bool, error) {
		if b.Control() || b.Magic() < 2 || b.ProducerID() != s.at.ProducerID || b.ProducerEpoch() != s.at.ProducerEpoch {
			return true, nil
		}
		ahead := offsets.Ahead(s.at.Sequence, b.BaseSequence())
		whole = whole && ahead <= int64(len(s.stored)) && b.Dense()
		skip := int64(len(s.stored)) - ahead // of a batch that lies on the checkpoint, or was sent again in the same place
		err := s.each(b, func(rec *batch.Record) bool {
			if skip--; skip < 0 {
				s.stored = append(s.stored, rec.Digest())
			}
			return true
		})
		return whole, err
	})
	if err == nil && last >= 0 && offsets.Ahead(s.at.Sequence, last)+1 != int64(len(s.stored)) {
		if whole = false; offsets.Ahead(s.at.Sequence, last) >= int64(len(s.stored)) && s.at.TargetOffset < end {
			err = fmt.Errorf("target: what was appended to %s in the old epoch is not all replicated yet", p) //nolint:err113 // is tried again
		}
	}
	return end, whole, err
}

// appended is the last sequence that the target's leader has of us; -1 where it has none, or doesn't say.
func (s *sieve) appended(ctx context.Context, broker int32, p route.Partition) (int32, error) {
	all, err := s.c.target.DescribeProducers(ctx, broker, []route.Partition{p})
	known := all[p]
	for _, err := range []error{err, known.Err} {
		if err != nil && !errors.Is(err, wire.ErrUnsupported) && cluster.Classify(err) != cluster.Authorization {
			return -1, fmt.Errorf("target: %w", err)
		}
	}
	for _, a := range known.Active {
		if a.ID == s.at.ProducerID && a.Epoch == s.at.ProducerEpoch {
			return a.LastSequence, nil
		}
	}
	return -1, nil
}

// source looks for what the target has, and gives the position behind the last of it.
func (s *sieve) source(ctx context.Context) (behind route.Position, found bool, err error) {
	behind = route.Position{Offset: s.at.SourceOffset, LeaderEpoch: s.at.LeaderEpoch}
	if len(s.stored) == 0 {
		return behind, true, nil
	}
	p := s.at.Partition
	broker, err := leader(s.t.source, p)
	if err != nil {
		return behind, false, fmt.Errorf("source: %w", err)
	}
	committed := s.c.cfg.Isolation == ReadCommitted
	ends, err := s.c.source.ListOffsets(ctx, map[route.Partition]int32{p: broker}, wire.AtEnd, committed)
	if err == nil {
		err = ends[p].Err
	}
	if err != nil {
		return behind, false, fmt.Errorf("source: %w", err)
	}
	next, seen := 0, 0
	one := wire.One{Partition: p, At: s.at.SourceOffset, ReadCommitted: committed}
	err = s.read(ctx, s.c.source, broker, one, ends[p].Offset, func(aborted *fetcher.Aborted, b batch.Batch) (bool, error) {
		if seen += len(b); !aborted.Keeps(b) {
			return seen < mostSieved, nil
		}
		err := s.each(b, func(rec *batch.Record) bool {
			if rec.Offset < s.at.SourceOffset || rec.Digest() != s.stored[next] {
				return true
			}
			next++
			behind = route.Position{Offset: rec.Offset + 1, LeaderEpoch: b.LeaderEpoch()}
			return next < len(s.stored)
		})
		return next < len(s.stored) && seen < mostSieved, err
	})
	return behind, next == len(s.stored), err
}

// read shows the batches from one.At up to end, or until show has seen enough.
func (s *sieve) read(ctx context.Context, client *wire.Client, broker int32, one wire.One, end route.Offset, //nolint:revive // where, what and how far
	show func(aborted *fetcher.Aborted, b batch.Batch) (bool, error),
) error {
	if one.At >= end {
		return nil
	}
	conn, err := client.Dial(ctx, broker)
	if err != nil {
		return err
	}
	defer conn.Close()
	one.Pool, one.Bytes = s.pool, sieveBytes
	for more := true; more && one.At < end; {
		at := one.At
		if one.At, more, err = s.fetch(ctx, conn, one, end, show); err != nil {
			return fmt.Errorf("read %s at %d: %w", one.Partition, at, err)
		}
		if more && one.At == at {
			return fmt.Errorf("read %s: nothing can be read at %d of %d", one.Partition, at, end) //nolint:err113 // is tried again
		}
	}
	return nil
}

func (*sieve) fetch(ctx context.Context, conn *wire.Conn, one wire.One, end route.Offset,
	show func(aborted *fetcher.Aborted, b batch.Batch) (bool, error),
) (at route.Offset, more bool, err error) {
	at = one.At
	answer, body, err := conn.FetchOne(ctx, one)
	if err != nil {
		return at, false, err
	}
	defer body.Release()
	var aborted fetcher.Aborted
	aborted.Begin(answer.AbortedTransactions, one.ReadCommitted)
	for records := answer.RecordBatches; at < end; {
		b, rest, err := batch.Next(records)
		if errors.Is(err, io.EOF) || errors.Is(err, batch.ErrTruncated) {
			return at, true, nil
		}
		if err == nil {
			err = b.Check()
		}
		if err != nil {
			return at, false, err
		}
		if more, err := show(&aborted, b); err != nil || !more {
			return at, false, err
		}
		records, at = rest, max(at, b.NextOffset())
	}
	return at, true, nil
}

// each shows the records of a batch until show has seen enough.
func (s *sieve) each(b batch.Batch, show func(*batch.Record) bool) error {
	if err := s.reader.Reset(b); err != nil {
		return err
	}
	for {
		rec, err := s.reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil || !show(rec) {
			return err
		}
	}
}
