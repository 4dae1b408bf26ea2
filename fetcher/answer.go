package fetcher

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/causeway-mirror/causeway/internal/slab"
	"github.com/causeway-mirror/causeway/route"
)

// answer handles the answer to the request that request built. s holds the records.
func (l *loop) answer(ctx context.Context, resp *kmsg.FetchResponse, s *slab.Slab) {
	if resp.ErrorCode != 0 {
		l.refused(ctx, resp.ErrorCode)
		return
	}
	l.succeeded()
	l.session.answered(resp.SessionID)
	l.resize(s)
	now := time.Now()
	for i := range resp.Topics {
		t := &resp.Topics[i]
		name := t.Topic
		if name == "" {
			name = l.session.names[t.TopicID]
		}
		for j := range t.Partitions {
			rp := &t.Partitions[j]
			sl := l.slots[route.Partition{Topic: name, Partition: rp.Partition}]
			if sl == nil || sl.m == nil || !sl.listed || resp.Version > 12 && sl.sent.id != t.TopicID {
				continue // it has left, or it was recreated
			}
			l.partition(sl, rp, s, now)
		}
	}
	if len(l.ranges) > 0 {
		ranges := l.ranges
		l.ranges = nil
		l.f.wg.Go(func() { l.f.measure(ctx, ranges) })
	}
}

// refused handles an error of the fetch as a whole.
func (l *loop) refused(ctx context.Context, code int16) {
	l.f.metrics.errors.WithLabelValues(codeName(code)).Inc()
	l.session.renew()
	switch code {
	case kerr.FetchSessionIDNotFound.Code, kerr.InvalidFetchSessionEpoch.Code, kerr.FetchSessionTopicIDError.Code:
		// The session was evicted, an answer was lost, or topics got ids: a new session is all that it takes. The broker has done
		// nothing else, so one that says so again and again must be slowed down.
		if l.backoff.Failures() == 0 {
			l.backoff.Next()
			return
		}
	case kerr.UnknownTopicID.Code, kerr.InconsistentTopicID.Code:
		// A topic was recreated, and brokers before 3.3 fail the whole fetch for it; metadata tells which one.
		l.f.router.post(ask{kind: askLost, broker: l.pair.broker})
	default:
		l.f.deps.Log.Debug("fetch refused", "broker", l.pair.broker, "error", codeName(code))
	}
	_ = l.backoff.Wait(ctx) // ends early only with ctx
}

// partition handles what came of one partition.
func (l *loop) partition(s *slot, rp *kmsg.FetchResponseTopicPartition, sl *slab.Slab, now time.Time) {
	switch {
	case rp.ErrorCode != 0:
		l.trouble(s, rp.ErrorCode)
		return
	case rp.PreferredReadReplica >= 0 && rp.PreferredReadReplica != l.pair.broker && l.f.cfg.Rack != "":
		if s.m.release(l) {
			l.f.router.post(ask{kind: askReplica, m: s.m, broker: rp.PreferredReadReplica})
		}
		l.drop(s)
		return
	}
	x := route.Extent{
		Start: route.Offset(rp.LogStartOffset), LastStable: route.Offset(rp.LastStableOffset), End: route.Offset(rp.HighWatermark),
	}
	if d := rp.DivergingEpoch; d.EndOffset >= 0 {
		l.diverged(s, &DivergedError{d.Epoch, route.Offset(d.EndOffset)}, x)
		return
	}
	s.m.served()
	news := x != s.extent
	s.extent = x
	if len(rp.RecordBatches) == 0 {
		if news {
			s.m.extent(l, x)
		}
		return
	}
	from := s.sent.at.Offset
	end, err := l.sift(from, rp)
	if end.Offset > from {
		if !s.m.append(l, piece{s.generation, sl, l.batches, end, x}) {
			l.drop(s) // somebody else has taken it; what came is fetched there again
			return
		}
		l.warm(s, now)
	}
	clear(l.batches)
	if err != nil {
		l.damaged(s, end.Offset, codeCorrupt, err)
	}
}

// warm notes that a partition got data.
func (l *loop) warm(s *slot, now time.Time) {
	s.lastData = now
	l.touch(s)
	if !l.hot {
		s.m.offer(l, l.pair.hot)
	} else if s.cooling {
		s.cooling = false
		s.m.keep(l, l.pair.cold)
	}
}

// trouble handles a partition's error.
func (l *loop) trouble(s *slot, code int16) {
	name := codeName(code)
	l.f.metrics.errors.WithLabelValues(name).Inc()
	err := kerr.ErrorForCode(code)
	action, class := classify(code)
	if action == measure && s.m.place.Load().leader != l.pair.broker {
		action = reroute // a replica may lag; only the leader's word counts (KIP-392)
	}
	switch action {
	case suspect:
		l.damaged(s, s.sent.at.Offset, name, err)
	case tellLane:
		l.tell(s, &route.Fault{Class: class, Code: name, Err: err, Extent: noExtent})
	case measure:
		if s.m.park(l) {
			l.ranges = append(l.ranges, outOfRange{m: s.m, broker: l.pair.broker, at: s.sent.at, generation: s.generation})
		}
		l.drop(s)
	default:
		if action == renew {
			l.session.renew()
		}
		l.again(s, name)
	}
}

// again sends the partition back to the router.
func (l *loop) again(s *slot, name string) {
	l.f.deps.Log.Debug("partition is looked up again", "topic", s.p.Topic, "partition", s.p.Partition, "broker", l.pair.broker, "error", name)
	s.m.refused(name)
	if s.m.release(l) {
		l.f.router.post(ask{kind: askStale, m: s.m})
	}
	l.drop(s)
}

// diverged handles the word that the broker's log is not the one that was read.
func (l *loop) diverged(s *slot, e *DivergedError, x route.Extent) {
	switch {
	case s.m.place.Load().leader != l.pair.broker:
		l.again(s, codeDiverged) // a replica may lag; only the leader's word counts (KIP-392)
	case e.End >= s.sent.at.Offset:
		// The broker only does not know the epoch, since a replica that was made from a compacted log saw nothing of it. What was read
		// is all there.
		s.m.unsay(s.sent.at)
		l.touch(s)
	default:
		l.tell(s, &route.Fault{Class: route.SourceChanged, Code: codeDiverged, Err: e, Extent: x})
	}
}

// damaged fetches once more, over another connection, and then tells the lane. The bytes may have been damaged on their way.
func (l *loop) damaged(s *slot, at route.Offset, code string, err error) {
	if s.damage != at {
		l.f.deps.Log.Warn("corrupt batch, fetching again", "topic", s.p.Topic, "partition", s.p.Partition, "offset", int64(at), "err", err)
		s.damage = at
		l.suspect = true
		l.touch(s)
		return
	}
	s.damage = route.NoOffset
	l.tell(s, &route.Fault{Class: route.Corrupt, Code: code, Err: err, Extent: s.extent})
}

// tell reports a fault to the lane, unless it was rewound meanwhile.
func (l *loop) tell(s *slot, f *route.Fault) {
	if s.m.fail(l, s.generation, f) != outdated {
		l.drop(s)
		return
	}
	l.touch(s)
}
