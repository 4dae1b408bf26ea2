package survey

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/causeway-mirror/causeway/batch"
	"github.com/causeway-mirror/causeway/route"
)

// Source is a source partition and what is forwarded of it.
type Source struct {
	Log

	// Records judges and changes each record as it is forwarded; nil: all are, as they are.
	Records func(*batch.Record) (batch.Verdict, error)

	reader  batch.Reader
	offsets []route.Offset
}

// forwarded shows the batches of a range with the offsets of their records that are forwarded and lie in it; those with none are left out.
func (s *Source) forwarded(ctx context.Context, from, to route.Offset, show func(b batch.Batch, at []route.Offset) (more bool, err error)) error {
	return s.each(ctx, from, to, func(b batch.Batch) (bool, error) {
		s.offsets = s.offsets[:0]
		if s.Records == nil && b.Dense() {
			for at := max(from, b.BaseOffset()); at < min(to, b.NextOffset()); at++ {
				s.offsets = append(s.offsets, at)
			}
		} else if err := s.decode(b, func(r *batch.Record) {
			if r.Offset >= from && r.Offset < to {
				s.offsets = append(s.offsets, r.Offset)
			}
		}); err != nil {
			return false, err
		}
		if len(s.offsets) == 0 {
			return true, nil
		}
		return show(b, s.offsets)
	})
}

// decode shows the records of a batch that are forwarded, as they are forwarded.
func (s *Source) decode(b batch.Batch, show func(*batch.Record)) error {
	return decode(&s.reader, b, func(r *batch.Record) error {
		if s.Records != nil {
			at := r.Offset
			verdict, err := s.Records(r)
			if err != nil {
				return fmt.Errorf("map record %d: %w", at, err)
			}
			if verdict == batch.Drop {
				return nil
			}
		}
		show(r)
		return nil
	})
}

func decode(reader *batch.Reader, b batch.Batch, show func(*batch.Record) error) error {
	if err := reader.Reset(b); err != nil {
		return err
	}
	for {
		r, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = show(r)
		}
		if err != nil {
			return err
		}
	}
}

// Count is how many records of a range are forwarded.
func (s *Source) Count(ctx context.Context, from, to route.Offset) (n int64, err error) {
	err = s.forwarded(ctx, from, to, func(_ batch.Batch, at []route.Offset) (bool, error) {
		n += int64(len(at))
		return true, nil
	})
	return n, err
}

// First is the first record of a range that is forwarded, and its digest; NoOffset if there is none.
func (s *Source) First(ctx context.Context, from, to route.Offset) (at route.Offset, digest uint64, err error) {
	at = route.NoOffset
	err = s.forwarded(ctx, from, to, func(b batch.Batch, offsets []route.Offset) (bool, error) {
		at = offsets[0]
		digest, err = s.digest(b, at)
		return false, err
	})
	return at, digest, err
}

// digest is that of the record at an offset.
func (s *Source) digest(b batch.Batch, at route.Offset) (digest uint64, err error) {
	err = s.decode(b, func(r *batch.Record) {
		if r.Offset == at {
			digest = r.Digest()
		}
	})
	return digest, err
}

// Back is where the last n records before an offset begin that are forwarded.
type Back struct {
	First  route.Offset // of the first of them; the end itself for n = 0
	Before uint64       // the digest of the one before them that is forwarded; 0 where the log has none
	Lacks  int64        // so many of them the log has no more: First is where it begins
}

// Back counts n records back from an offset.
func (s *Source) Back(ctx context.Context, end route.Offset, n int64) (Back, error) {
	if s.End < end {
		return Back{}, fmt.Errorf("%s ends at %d, before %d", s.partition, s.End, end) //nolint:err113 // only ever shown
	}
	have, from := int64(0), end
	for have <= n {
		if from <= s.Start {
			return Back{First: s.Start, Lacks: n - have}, nil
		}
		to := from
		from = max(s.Start, end-max(route.Offset(n+1), 2*(end-to)))
		more, err := s.Count(ctx, from, to)
		if err != nil {
			return Back{}, err
		}
		have += more
	}
	b, skip := Back{First: end}, have-n-1
	err := s.forwarded(ctx, from, end, func(in batch.Batch, at []route.Offset) (more bool, err error) {
		switch {
		case skip >= int64(len(at)):
			skip -= int64(len(at))
			return true, nil
		case skip >= 0:
			if b.Before, err = s.digest(in, at[skip]); err != nil {
				return false, err
			}
			at, skip = at[skip+1:], -1
		}
		if len(at) > 0 {
			b.First = at[0]
		}
		return len(at) == 0, nil
	})
	return b, err
}

// Has says whether a record with a digest is forwarded of a range.
func (s *Source) Has(ctx context.Context, digest uint64, from, to route.Offset) (has bool, err error) {
	err = s.each(ctx, from, to, func(b batch.Batch) (bool, error) {
		err := s.decode(b, func(r *batch.Record) { has = has || r.Digest() == digest && r.Offset >= from && r.Offset < to })
		return !has, err
	})
	return has, err
}
