package fetcher

import (
	"context"
	"sync"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/causeway-mirror/causeway/internal/slab"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/wire"
)

// Deps is what the fetchers work with. None of it is closed by them.
type Deps struct {
	Client     *wire.Client
	Pool       *slab.Pool
	Log        hclog.Logger
	Registerer prometheus.Registerer // nil: no metrics
	Route      string                // label of the metrics
}

// Fetchers fetches the partitions that it is given, each into its lane.
type Fetchers struct {
	cfg     Config
	deps    Deps
	metrics *metrics
	router  *router
	health  health
	wg      sync.WaitGroup // every goroutine but Run's own

	mu      sync.RWMutex
	members map[route.Partition]*member
}

// New returns fetchers that do nothing before Run. The configuration must be valid.
func New(cfg Config, d Deps) *Fetchers {
	f := &Fetchers{
		cfg: cfg, deps: d,
		metrics: newMetrics(d.Registerer, d.Route),
		members: make(map[route.Partition]*member),
	}
	f.router = newRouter(f)
	return f
}

// Run fetches until ctx ends. When it returns, every goroutine has, no lane is called any more, and what was reserved of the budget has been
// given back, but for what lanes retain. It never fails by itself: an unreachable cluster is tried for ever. It must be called once.
func (f *Fetchers) Run(ctx context.Context) error {
	defer f.metrics.close()
	f.router.run(ctx)
	f.wg.Wait()
	return nil
}

// Add begins to fetch a partition of the topic with that id: another topic of the same name is a fault. A zero id stands for the topic that is
// there now. A partition that is there already keeps its lane.
func (f *Fetchers) Add(p route.Partition, id route.TopicID, l Lane) {
	m := &member{p: p, lane: l, routing: routing{id: id}}
	f.mu.Lock()
	if f.members[p] != nil {
		f.mu.Unlock()
		return
	}
	f.members[p] = m
	f.mu.Unlock()
	f.router.post(ask{kind: askAdded, m: m})
}

// Remove ends fetching a partition. When it returns its lane is not being called and never will be, even if an answer is under way. It
// waits for a call that is running, so it must not be called from one, nor with a lock held that the lane's methods need.
func (f *Fetchers) Remove(p route.Partition) {
	f.mu.Lock()
	m := f.members[p]
	delete(f.members, p)
	f.mu.Unlock()
	if m == nil {
		return
	}
	m.remove()
	f.router.post(ask{kind: askRemoved, m: m})
}

// Wake says that what a partition's lane wants has changed: it has room again, was rewound, or its fault was dealt with. It never blocks
// and never calls a lane.
func (f *Fetchers) Wake(p route.Partition) {
	f.mu.RLock()
	m := f.members[p]
	f.mu.RUnlock()
	if m != nil {
		f.wake(m)
	}
}

func (f *Fetchers) wake(m *member) {
	if l := m.owner.Load(); l != nil {
		l.woke(m)
		return
	}
	f.router.post(ask{kind: askWoken, m: m})
}

// Trouble says why a partition is not fetched at the moment although its lane was not told of a fault; nil if all is well.
func (f *Fetchers) Trouble(p route.Partition) *Trouble {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if m := f.members[p]; m != nil {
		return m.trouble.Load()
	}
	return nil
}

// Reachable is nil while the source cluster answers, else an *UnreachableError.
func (f *Fetchers) Reachable() error { return f.health.worst() }
