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

// epochTries is after how many refusals of a position that is in range its epoch is not sent any more: a leader that knows only smaller epochs
// refuses it in this way, as after a restore.
const epochTries = 3

// outOfRange is a partition whose position the leader does not have.
type outOfRange struct {
	m          *member // parked
	broker     int32
	at         route.Position
	generation uint32
}

// measure asks for the ends of logs and tells the lanes. Where the position turns out to be in range (a new leader that has caught up), or
// nothing could be learned, the partition is tried again.
func (f *Fetchers) measure(ctx context.Context, ranges []outOfRange) {
	leaders := make(map[route.Partition]int32, len(ranges))
	for _, r := range ranges {
		leaders[r.m.p] = r.broker
	}
	ends, err := f.listEnds(ctx, leaders)
	for _, r := range ranges {
		x, known := ends.of(r.m.p)
		if err == nil && known && (r.at.Offset < x.Start || r.at.Offset > x.End) {
			cause := kerr.OffsetOutOfRange
			if r.m.fail(nil, r.generation, &route.Fault{Class: route.SourceChanged, Code: cause.Message, Err: cause, Extent: x}) != outdated {
				continue
			}
		} else {
			r.m.refused(kerr.OffsetOutOfRange.Message)
			if err == nil && known && r.at.LeaderEpoch >= 0 && r.m.refusals.Load() >= epochTries {
				f.deps.Log.Warn("source does not know the leader epoch of what was read, going on without comparing logs",
					"topic", r.m.p.Topic, "partition", r.m.p.Partition, "offset", int64(r.at.Offset), "epoch", r.at.LeaderEpoch)
				r.m.unsay(r.at)
			}
		}
		f.router.post(ask{kind: askRetry, m: r.m})
	}
}

// logEnds is what ListOffsets says of some partitions.
type logEnds struct {
	starts, stables, ends map[route.Partition]wire.ListedOffset
}

// of is false if one of the ends is not known.
func (e *logEnds) of(p route.Partition) (x route.Extent, ok bool) {
	for _, end := range []struct {
		listed map[route.Partition]wire.ListedOffset
		to     *route.Offset
	}{{e.starts, &x.Start}, {e.stables, &x.LastStable}, {e.ends, &x.End}} {
		l, there := end.listed[p]
		if !there || l.Err != nil {
			return noExtent, false
		}
		*end.to = l.Offset
	}
	return x, true
}

func (f *Fetchers) listEnds(ctx context.Context, leaders map[route.Partition]int32) (e logEnds, err error) {
	ctx, cancel := context.WithTimeout(ctx, f.cfg.RequestTimeout)
	defer cancel()
	var errs [3]error
	e.starts, errs[0] = f.deps.Client.ListOffsets(ctx, leaders, earliest, false)
	e.ends, errs[1] = f.deps.Client.ListOffsets(ctx, leaders, latest, false)
	e.stables, errs[2] = f.deps.Client.ListOffsets(ctx, leaders, latest, true)
	return e, errors.Join(errs[:]...)
}
