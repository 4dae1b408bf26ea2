package fetcher

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/causeway-mirror/causeway/internal/backoff"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/wire"
)

// retryBase is the first wait between two tries; it doubles up to Config.RetryMax.
const retryBase = 100 * time.Millisecond

type askKind int8

const (
	askAdded   askKind = iota + 1 // a new member
	askRemoved                    // a member is gone
	askWoken                      // Wake was called while nobody owned the member
	askStale                      // an answer refused the member: look it up again
	askRetry                      // the same for one that was parked in the meantime
	askReplica                    // the leader prefers that the member is fetched from another broker
	askLost                       // a broker can't be reached: look up what it leads
)

// ask is a message to the router.
type ask struct {
	kind   askKind
	m      *member
	broker int32
}

// routing is the router's own part of a member.
type routing struct {
	pair         *pair
	id           route.TopicID // the one that the position is of, or the first that metadata gave; another one means that the topic was recreated
	waiting      bool          // metadata is to be asked, but not before due
	due          time.Time
	goneSince    time.Time // since when metadata says that it is not there, or another
	goneTimes    int
	other        bool  // another, so far
	replica      int32 // preferred by the leader until replicaUntil
	replicaUntil time.Time
}

// reset begins anew. The id stays: a position means nothing in another topic, whoever wishes to try again.
func (r *routing) reset() {
	r.replica, r.goneSince, r.goneTimes, r.other = -1, time.Time{}, 0, false
}

// pairKey names a fetcher: a broker and an index.
type pairKey struct {
	broker int32
	index  int
}

// router knows where partitions are led and gives each to the fetcher that it belongs to. It alone creates and ends fetchers.
type router struct {
	f      *Fetchers
	signal chan struct{}

	mu   sync.Mutex
	asks []ask

	// The rest belongs to the goroutine of run.
	members  map[*member]struct{}
	byTopic  map[string]map[*member]struct{}
	waiting  map[*member]struct{}
	look     map[string]struct{} // topics to look up as soon as allowed
	topics   map[string]wire.TopicMetadata
	brokers  map[int32]wire.Broker
	pairs    map[pairKey]*pair
	nextLook time.Time
	nextTick time.Time
	backoff  *backoff.Backoff
}

func newRouter(f *Fetchers) *router {
	return &router{
		f:       f,
		signal:  make(chan struct{}, 1),
		members: make(map[*member]struct{}),
		byTopic: make(map[string]map[*member]struct{}),
		waiting: make(map[*member]struct{}),
		look:    make(map[string]struct{}),
		topics:  make(map[string]wire.TopicMetadata),
		pairs:   make(map[pairKey]*pair),
		backoff: newBackoff(f.cfg.RetryMax),
	}
}

func newBackoff(limit time.Duration) *backoff.Backoff {
	return backoff.New(min(retryBase, limit), limit, rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())))
}

// post hands a message to the router. It never blocks.
func (r *router) post(a ask) {
	r.mu.Lock()
	r.asks = append(r.asks, a)
	r.mu.Unlock()
	notify(r.signal)
}

func notify(signal chan struct{}) {
	select {
	case signal <- struct{}{}:
	default:
	}
}

func (r *router) run(ctx context.Context) {
	r.nextTick = time.Now().Add(r.f.cfg.MetadataEvery)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		r.absorb(ctx)
		timer.Reset(time.Until(r.work(ctx)))
		select {
		case <-ctx.Done():
		case <-r.signal:
		case <-timer.C:
		}
	}
}

// absorb takes in what others posted.
func (r *router) absorb(ctx context.Context) {
	r.mu.Lock()
	asks := r.asks
	r.asks = nil
	r.mu.Unlock()
	now := time.Now()
	for _, a := range asks {
		switch a.kind {
		case askAdded:
			r.add(ctx, a.m, now)
		case askRemoved:
			r.drop(a.m)
		case askWoken:
			if a.m.unpark() {
				a.m.routing.reset() // the owner wants it to be tried again
				a.m.refusals.Store(0)
				r.wait(a.m, now)
			}
		case askRetry:
			if a.m.unpark() {
				r.refused(a.m, now)
			}
		case askStale:
			r.refused(a.m, now)
		case askReplica:
			a.m.routing.replica, a.m.routing.replicaUntil = a.broker, now.Add(r.f.cfg.ReplicaFor)
			r.settle(ctx, a.m, now)
		case askLost:
			r.lost(ctx, a.broker, now)
		}
	}
}

func (r *router) add(ctx context.Context, m *member, now time.Time) {
	r.members[m] = struct{}{}
	if r.byTopic[m.p.Topic] == nil {
		r.byTopic[m.p.Topic] = make(map[*member]struct{})
	}
	r.byTopic[m.p.Topic][m] = struct{}{}
	m.routing.replica = -1
	if v := r.lookup(m); v.kind == found {
		r.settle(ctx, m, now) // metadata is never older than MetadataEvery; a refusal corrects it
		return
	}
	r.wait(m, now)
}

func (r *router) drop(m *member) {
	if _, ok := r.members[m]; !ok {
		return
	}
	delete(r.members, m)
	delete(r.waiting, m)
	delete(r.byTopic[m.p.Topic], m)
	if len(r.byTopic[m.p.Topic]) == 0 {
		delete(r.byTopic, m.p.Topic)
		delete(r.topics, m.p.Topic)
	}
	if m.routing.pair != nil {
		m.routing.pair.members--
		m.routing.pair = nil
	}
}

// wait lets the next look-up at or after due settle the member.
func (r *router) wait(m *member, due time.Time) {
	if _, ok := r.members[m]; !ok {
		return
	}
	m.routing.waiting, m.routing.due = true, due
	r.waiting[m] = struct{}{}
}

// refused looks a member up again. A replica that refuses is not asked again before the leader names it anew.
func (r *router) refused(m *member, now time.Time) {
	m.routing.replica = -1
	r.wait(m, now.Add(r.delay(m)))
}

// delay grows with the refusals in a row. The first one costs no time: mostly it is a leader that moved.
func (r *router) delay(m *member) time.Duration {
	n := m.refusals.Load()
	if n < 2 {
		return 0
	}
	d := r.f.cfg.RetryMax
	if n < 16 {
		d = min(d, retryBase<<(n-2))
	}
	return d/2 + rand.N(d/2+1)
}

// lost looks up whatever is placed at a broker. Replicas are left at once: their leader is another broker.
func (r *router) lost(ctx context.Context, broker int32, now time.Time) {
	for m := range r.members {
		if m.routing.pair == nil || m.routing.pair.broker != broker {
			continue
		}
		r.look[m.p.Topic] = struct{}{}
		if m.routing.replica == broker {
			m.routing.replica = -1
			r.settle(ctx, m, now)
		}
	}
}

// work does what is due and says when something is due next.
func (r *router) work(ctx context.Context) time.Time {
	now := time.Now()
	if !now.Before(r.nextTick) {
		r.tick(now)
	}
	next := r.nextTick
	for m := range r.waiting {
		if !m.routing.due.After(now) {
			r.look[m.p.Topic] = struct{}{}
		} else if m.routing.due.Before(next) {
			next = m.routing.due
		}
	}
	if len(r.look) == 0 {
		return next
	}
	if now.Before(r.nextLook) {
		return r.nextLook
	}
	if r.refresh(ctx) {
		return now // look again: settling may have made something due
	}
	return r.nextLook
}

// tick looks everything up and ends fetchers that nothing belongs to any more.
func (r *router) tick(now time.Time) {
	r.nextTick = now.Add(r.f.cfg.MetadataEvery)
	for topic := range r.byTopic {
		r.look[topic] = struct{}{}
	}
	for key, p := range r.pairs {
		if p.members == 0 {
			p.cancel()
			delete(r.pairs, key)
		}
	}
}

// refresh asks for the topics in look and settles their members.
func (r *router) refresh(ctx context.Context) bool {
	topics := make([]string, 0, len(r.look))
	for t := range r.look {
		if r.byTopic[t] != nil {
			topics = append(topics, t)
		}
	}
	clear(r.look)
	if len(topics) == 0 {
		return true
	}
	actx, cancel := context.WithTimeout(ctx, r.f.cfg.RequestTimeout)
	md, err := r.f.deps.Client.Metadata(actx, topics...)
	cancel()
	now := time.Now()
	if err != nil {
		if ctx.Err() != nil {
			return false
		}
		r.f.metrics.errors.WithLabelValues(linkLabel).Inc()
		if r.f.health.fail(nil, err) {
			r.f.deps.Log.Warn("source cluster unreachable", "err", err)
		}
		for _, t := range topics {
			r.look[t] = struct{}{}
		}
		r.nextLook = now.Add(max(r.backoff.Next(), r.f.cfg.MetadataMin))
		return false
	}
	if r.f.health.up(nil) {
		r.f.deps.Log.Info("source cluster reachable again")
	}
	r.backoff.Reset()
	r.nextLook = now.Add(r.f.cfg.MetadataMin)
	r.brokers = md.Brokers
	for _, t := range topics {
		tm, ok := md.Topics[t]
		if ok {
			slices.SortFunc(tm.Partitions, func(a, b wire.PartitionMetadata) int { return cmp.Compare(a.Partition, b.Partition) })
			r.topics[t] = tm
		} else {
			delete(r.topics, t)
		}
		for m := range r.byTopic[t] {
			r.settle(ctx, m, now)
		}
	}
	return true
}
