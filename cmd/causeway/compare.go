package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/causeway-mirror/causeway/batch"
	"github.com/causeway-mirror/causeway/route"
)

// pair is one source partition and the target partition that must hold its copy.
type pair struct {
	source, target route.Partition
	// sourceFrom and targetFrom are where reading begins, sourceEnd where it ends. targetEnd was read before sourceEnd, so that nothing below it
	// can stem from beyond sourceEnd.
	sourceFrom, sourceEnd int64
	targetFrom, targetEnd int64
	// olderAllowed says that the target may hold records before the first one of the source, because the source has deleted them already.
	olderAllowed bool
	judge        func(*batch.Record) (batch.Verdict, error)
}

// outcome is what comparing one pair gave.
type outcome struct {
	records, bytes int64
	older          int64  // records on the target that the source no longer has
	difference     string // the first one; "" when equal
}

// lockstep compares a pair record by record, holding no more than one fetch of each side.
type lockstep struct {
	pair
	from, to *partitionReader
	out      outcome
}

func compare(ctx context.Context, source, target *side, p pair) (outcome, error) {
	from, err := source.read(p.source, p.sourceFrom)
	if err != nil {
		return outcome{}, err
	}
	defer from.close()
	to, err := target.read(p.target, p.targetFrom)
	if err != nil {
		return outcome{}, err
	}
	defer to.close()
	l := &lockstep{pair: p, from: from, to: to}
	err = l.run(ctx)
	return l.out, err
}

func (l *lockstep) run(ctx context.Context) error {
	for {
		want, err := l.expected(ctx)
		if errors.Is(err, io.EOF) {
			return l.surplus(ctx)
		}
		if err != nil {
			return err
		}
		if err = l.match(ctx, want); err != nil || l.out.difference != "" {
			return err
		}
		l.out.records++
		l.out.bytes += int64(len(want.Key) + len(want.Value))
	}
}

// expected returns the next record that the target must have.
func (l *lockstep) expected(ctx context.Context) (*kgo.Record, error) {
	for {
		rec, err := l.from.record(ctx, l.sourceEnd)
		if errors.Is(err, errIdle) {
			return nil, fmt.Errorf("read %s of the source: nothing came from offset %d on, and it ends at %d", l.source, l.from.next, l.sourceEnd)
		}
		if err != nil {
			return nil, err
		}
		want, keep, err := handled(rec, l.judge)
		if err != nil {
			return nil, fmt.Errorf("handle %s offset %d: %w", l.source, rec.Offset, err)
		}
		if keep {
			return want, nil
		}
	}
}

// match reads the target's next record and compares it with the wanted one. Records older than the source's beginning are passed over.
func (l *lockstep) match(ctx context.Context, want *kgo.Record) error {
	for {
		got, err := l.to.record(ctx, noEnd)
		if errors.Is(err, errIdle) {
			l.differ("source offset %d is missing on the target, which ends at offset %d", want.Offset, l.to.next)
			return nil
		}
		if err != nil {
			return err
		}
		diff := difference(want, got)
		if diff == "" {
			return nil
		}
		if l.out.records > 0 || !l.olderAllowed {
			l.differ("source offset %d, target offset %d: %s", want.Offset, got.Offset, diff)
			return nil
		}
		l.out.older++
	}
}

// surplus looks for records on the target that no source record explains.
func (l *lockstep) surplus(ctx context.Context) error {
	if l.out.records == 0 && l.olderAllowed {
		return nil // all that the target has is older than what the source still has
	}
	extra, err := l.to.record(ctx, l.targetEnd)
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case errors.Is(err, errIdle):
		return fmt.Errorf("read %s of the target: nothing came from offset %d on, and it ends at %d", l.target, l.to.next, l.targetEnd)
	case err != nil:
		return err
	}
	l.differ("target offset %d has a record that the source does not have: key %s, value %s", extra.Offset, show(extra.Key), show(extra.Value))
	return nil
}

func (l *lockstep) differ(format string, args ...any) {
	l.out.difference = fmt.Sprintf("%s -> %s: ", l.source, l.target) + fmt.Sprintf(format, args...)
}
