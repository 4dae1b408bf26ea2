package fetcher

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/wire"
)

// proof says in which reign the leader's log was found to be the one that was read. What is read on from there in the same generation is of
// that log.
type proof struct {
	known         bool
	generation    uint32
	leader, epoch int32
}

// doubt is a partition whose leader is to be asked whether its log is the one that was read.
type doubt struct {
	m     *member // parked
	at    route.Position
	proof proof // to be had
}

// unproven is true if the leader must be asked before the member is fetched; the member is parked then. Brokers before 2.7 don't compare epochs
// when they are fetched from.
func (l *loop) unproven(m *member, w wish, at *place) bool {
	need := proof{known: true, generation: w.generation, leader: at.leader, epoch: at.epoch}
	if l.session.tells || w.at.LeaderEpoch < 0 || m.proven(need) || !m.park(l) {
		return false
	}
	l.doubts = append(l.doubts, doubt{m, w.at, need})
	return true
}

// prove has the leaders of what was gathered asked.
func (l *loop) prove(ctx context.Context) {
	if len(l.doubts) == 0 {
		return
	}
	byLeader := make(map[int32][]doubt)
	for _, d := range l.doubts {
		byLeader[d.proof.leader] = append(byLeader[d.proof.leader], d)
	}
	clear(l.doubts)
	l.doubts = l.doubts[:0]
	for leader, doubts := range byLeader {
		l.f.wg.Go(func() { l.f.prove(ctx, leader, doubts) })
	}
}

// prove asks where the epochs of what was read end in the leader's log, and tells the lanes of those for which that is before their position.
// All others are fetched: after a retry, where nothing could be learned.
func (f *Fetchers) prove(ctx context.Context, leader int32, doubts []doubt) {
	ctx, cancel := context.WithTimeout(ctx, f.cfg.RequestTimeout)
	defer cancel()
	asks := make([]wire.EpochAsk, 0, len(doubts))
	for _, d := range doubts {
		asks = append(asks, wire.EpochAsk{Partition: d.m.p, CurrentLeaderEpoch: d.proof.epoch, LeaderEpoch: d.at.LeaderEpoch})
	}
	ends, err := f.deps.Client.OffsetsForLeaderEpoch(ctx, leader, asks)
	for _, d := range doubts {
		end, answered := ends[d.m.p]
		refusal := err
		if err == nil {
			refusal = end.Err
		}
		switch {
		case mute(refusal):
			d.m.prove(d.proof)
		case refusal != nil || !answered:
			d.m.refused(errName(refusal))
		case end.End >= 0 && end.End < d.at.Offset:
			e := &DivergedError{end.LeaderEpoch, end.End}
			fault := &route.Fault{Class: route.SourceChanged, Code: codeDiverged, Err: e, Extent: noExtent}
			if d.m.fail(nil, d.proof.generation, fault) != outdated {
				continue
			}
		default: // an epoch that the leader does not know proves nothing either way
			d.m.prove(d.proof)
		}
		f.router.post(ask{kind: askRetry, m: d.m})
	}
}

// mute is true if the brokers will never say it: too old (before 2.0), or, before 2.3, for want of a right that only brokers have.
func mute(err error) bool {
	return errors.Is(err, wire.ErrUnsupported) || errors.Is(err, kerr.ClusterAuthorizationFailed) || errors.Is(err, kerr.TopicAuthorizationFailed)
}

func (m *member) proven(p proof) bool {
	m.call.Lock()
	defer m.call.Unlock()
	return m.proof == p
}

func (m *member) prove(p proof) {
	m.call.Lock()
	defer m.call.Unlock()
	m.proof = p
}
