package fetcher

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/wire"
)

type verdictKind int8

const (
	found      verdictKind = iota + 1
	leaderless             // an election is under way, or the broker that was asked does not know yet
	gone                   // not there, or another topic of the same name; believed only when it lasts
	forbidden
)

// verdict is what metadata says of one partition.
type verdict struct {
	kind verdictKind
	at   wire.PartitionMetadata
	id   route.TopicID
	err  error
}

// lookup reads the metadata at hand.
func (r *router) lookup(m *member) verdict {
	t, ok := r.topics[m.p.Topic]
	switch {
	case !ok, errors.Is(t.Err, kerr.UnknownTopicOrPartition), errors.Is(t.Err, kerr.UnknownTopicID):
		return verdict{kind: gone, err: kerr.UnknownTopicOrPartition}
	case errors.Is(t.Err, kerr.TopicAuthorizationFailed):
		return verdict{kind: forbidden, err: t.Err}
	case t.Err != nil:
		return verdict{kind: leaderless, err: t.Err}
	case !m.routing.id.IsZero() && !t.ID.IsZero() && t.ID != m.routing.id:
		return verdict{kind: gone, err: kerr.InconsistentTopicID}
	}
	i, ok := slices.BinarySearchFunc(t.Partitions, m.p.Partition, func(p wire.PartitionMetadata, n int32) int { return cmp.Compare(p.Partition, n) })
	switch {
	case !ok:
		return verdict{kind: gone, err: kerr.UnknownTopicOrPartition}
	case t.Partitions[i].Leader < 0:
		return verdict{kind: leaderless, err: kerr.LeaderNotAvailable}
	}
	return verdict{kind: found, at: t.Partitions[i], id: t.ID}
}

// settle acts on the metadata at hand for one member.
func (r *router) settle(ctx context.Context, m *member, now time.Time) {
	if m.isParked() { // until Wake, or a retry, whatever metadata says; who waited as well was looked up again and again
		r.settled(m)
		return
	}
	v := r.lookup(m)
	owned := m.owner.Load() != nil
	switch v.kind {
	case found:
		r.found(ctx, m, v, now)
	case leaderless:
		if owned { // it is fetched all the same: the broker that answered is behind
			r.settled(m)
			return
		}
		r.again(m, v.err, now)
	case gone:
		r.gone(m, v.err, now)
	case forbidden:
		if owned || m.failUnowned(&route.Fault{Class: route.Refused, Code: errName(v.err), Err: v.err, Extent: noExtent}) {
			r.settled(m)
		}
	}
}

// found moves a member to its leader, or to the replica that the leader prefers.
func (r *router) found(ctx context.Context, m *member, v verdict, now time.Time) {
	m.routing.goneSince, m.routing.goneTimes = time.Time{}, 0
	if !v.id.IsZero() {
		m.routing.id = v.id
	}
	old := m.place.Load()
	news := old == nil || old.leader != v.at.Leader || old.epoch != v.at.LeaderEpoch
	if m.routing.waiting && m.routing.due.After(now) && !news {
		return // the same broker has just refused it
	}
	broker := v.at.Leader
	if m.routing.replica >= 0 {
		if _, ok := r.brokers[m.routing.replica]; ok && now.Before(m.routing.replicaUntil) {
			broker = m.routing.replica
		} else {
			m.routing.replica = -1
		}
	}
	p := r.pairAt(ctx, broker, Index(m.p, r.f.cfg.Fetchers))
	if !m.move(&place{pair: p, leader: v.at.Leader, epoch: v.at.LeaderEpoch, id: v.id}) {
		return
	}
	r.settled(m)
	if m.routing.pair != p {
		if m.routing.pair != nil {
			m.routing.pair.members--
		}
		m.routing.pair = p
		p.members++
	}
}

// settled ends waiting.
func (r *router) settled(m *member) {
	m.routing.waiting = false
	delete(r.waiting, m)
}

// again waits for the next look-up, longer each time.
func (r *router) again(m *member, err error, now time.Time) {
	if m.routing.waiting && m.routing.due.After(now) {
		return
	}
	m.refused(errName(err))
	r.wait(m, now.Add(r.delay(m)))
}

// gone reports a partition as gone or recreated when metadata has said so more than once and for long enough: a broker that has just
// started calls every topic gone. Another id is never made up, at most it is an older one of a broker that is behind, so it needs to last for
// seconds only; and who is told of it looks again before anything is decided.
func (r *router) gone(m *member, err error, now time.Time) {
	if owner := m.owner.Load(); owner != nil {
		if !errors.Is(err, kerr.InconsistentTopicID) && !r.f.health.isDown(owner) {
			r.settled(m)
			return // it is being fetched, so it is there
		}
		m.pull() // by name we would go on in the other topic; and who can't reach its broker fetches nothing
	}
	lasts, other := r.f.cfg.GoneAfter, errors.Is(err, kerr.InconsistentTopicID)
	if other {
		lasts = r.f.cfg.RecreatedAfter
	}
	if m.routing.goneSince.IsZero() || m.routing.other != other {
		m.routing.goneSince, m.routing.goneTimes, m.routing.other = now, 0, other
		m.refusals.Store(0) // looked up again soon
	}
	m.routing.goneTimes++
	if m.routing.goneTimes < 2 || now.Sub(m.routing.goneSince) < lasts {
		r.again(m, err, now)
		return
	}
	if m.failUnowned(&route.Fault{Class: route.SourceChanged, Code: errName(err), Err: err, Extent: noExtent}) {
		r.settled(m)
	}
}

// pairAt gives the fetcher of a broker and an index; a new one begins at once.
func (r *router) pairAt(ctx context.Context, broker int32, index int) *pair {
	key := pairKey{broker, index}
	p := r.pairs[key]
	if p == nil {
		p = newPair(r.f, broker)
		r.pairs[key] = p
		p.start(ctx)
	}
	return p
}

func errName(err error) string {
	var e *kerr.Error
	if errors.As(err, &e) {
		return e.Message
	}
	return "UNKNOWN"
}
