package fetcher

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/wire"
)

const (
	latest   = -1
	earliest = -2
)

// outOfRange is a partition whose position the leader does not have.
type outOfRange struct {
	m          *member // parked
	broker     int32
	offset     route.Offset
	generation uint32
}

// measure asks for the ends of logs and tells the lanes. Where the position turns out to be in range (a new leader that has caught up), or
// nothing could be learned, the partition is tried again.
func (f *Fetchers) measure(ctx context.Context, ranges []outOfRange) {
	leaders := make(map[route.Partition]int32, len(ranges))
	for _, r := range ranges {
		leaders[r.m.p] = r.broker
	}
	starts, stables, ends, err := f.extents(ctx, leaders)
	for _, r := range ranges {
		start, stable, end := starts[r.m.p], stables[r.m.p], ends[r.m.p]
		failed := errors.Join(err, start.Err, stable.Err, end.Err)
		x := route.Extent{Start: start.Offset, LastStable: stable.Offset, End: end.Offset}
		if failed == nil && (r.offset < x.Start || r.offset > x.End) {
			cause := kerr.OffsetOutOfRange
			if r.m.fail(nil, r.generation, &route.Fault{Class: route.SourceChanged, Code: cause.Message, Err: cause, Extent: x}) != outdated {
				continue
			}
		} else {
			r.m.refused(kerr.OffsetOutOfRange.Message)
		}
		f.router.post(ask{kind: askRetry, m: r.m})
	}
}

func (f *Fetchers) extents(ctx context.Context, leaders map[route.Partition]int32) (starts, stables, ends map[route.Partition]wire.ListedOffset, err error) {
	ctx, cancel := context.WithTimeout(ctx, f.cfg.RequestTimeout)
	defer cancel()
	var errs [3]error
	starts, errs[0] = f.deps.Client.ListOffsets(ctx, leaders, earliest, false)
	ends, errs[1] = f.deps.Client.ListOffsets(ctx, leaders, latest, false)
	stables, errs[2] = f.deps.Client.ListOffsets(ctx, leaders, latest, true)
	return starts, stables, ends, errors.Join(errs[:]...)
}
