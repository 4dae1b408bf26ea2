package connector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/causeway-mirror/causeway/cluster"
	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/fetcher"
	"github.com/causeway-mirror/causeway/handler"
	"github.com/causeway-mirror/causeway/internal/slab"
	"github.com/causeway-mirror/causeway/letters"
	"github.com/causeway-mirror/causeway/loops"
	"github.com/causeway-mirror/causeway/mirror"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/operator"
	"github.com/causeway-mirror/causeway/producer"
	"github.com/causeway-mirror/causeway/purgatory"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/spool"
	"github.com/causeway-mirror/causeway/wire"
)

// Deps are what a Connector needs of others.
type Deps struct {
	Log            hclog.Logger
	Registerer     prometheus.Registerer
	Route          route.Route
	Worker         string
	Source, Target cluster.Config
	Store          offsets.Store
	Events         *events.Log
	Handler        *handler.Handler
}

// Connector is one route on one worker.
type Connector struct {
	cfg  Config
	deps Deps

	source, target *wire.Client
	admin          administration
	pool           *slab.Pool
	mirror         *mirror.Mirror
	fetchers       reading
	producer       *producer.Producer

	kick   chan struct{}
	start  time.Time
	drains sync.WaitGroup // partitions on their way out

	claims   *claims
	renewals *renewals
	waits    *purgatory.Purgatory[string] // for acked positions, by source topic

	mu        sync.Mutex // guards what follows; taken before a lane's and those of the two ends, never while one of them is held
	parts     map[route.Partition]*partition
	suspended bool
	settings  map[string]operator.Topic // by topic, of those that have any
	route     routeState
}

// administration is what is asked of the two clusters beside the data path.
type administration struct {
	source, target *cluster.Admin
	loops          *loops.Watch
	letters        *letters.Box
}

func administer(cfg Config, deps Deps, target *wire.Client) administration {
	a := administration{
		source: cluster.NewAdmin(deps.Source, deps.Log.Named("source-admin")), target: cluster.NewAdmin(deps.Target, deps.Log.Named("admin")),
	}
	a.loops = loops.NewWatch(loops.Config{Route: deps.Route.String(), Takes: &cfg.Selection, Alone: !cfg.Share, Drop: cfg.DropLoops}, a.source, a.target,
		deps.Log.Named("loops"), deps.Events)
	a.letters = letters.NewBox(deps.Route.String(), target, a.target, func(ctx context.Context, source string, id int64) error {
		return a.loops.Announce(ctx, source, id)
	})
	return a
}

// partition is one that shall run here.
type partition struct {
	source route.Partition
	target route.Partition // as far as it is known
	reason string          // why it does not run yet
	halted bool            // it needs something changed
	rests  bool            // its topic was deleted, and by policy that is no trouble
	told   bool            // an event told that it is halted, so its end must be told too
	anew   mirror.Anew     // why and where the next start begins a new epoch, if it must
	wish   *wish           // a reset that it is to be started anew with
	begun  bool            // it ran before, so there must be a checkpoint
	since  time.Time
	absent time.Time    // since when the source does not know its topic; zero: it does, or was not asked
	lane   *mirror.Lane // nil until it runs
	slot   *producer.Slot
	line   *spool.Line // before the lane; nil where nothing spills
	leave  bool
	gone   bool          // being drained
	left   chan struct{} // closed when it runs here no longer
}

// answerTimeout is how long a broker may take over an answer that needs no replication: a dead one must be known as such within half a minute.
const answerTimeout = 10 * time.Second

// New builds the parts; it does no IO.
func New(cfg Config, deps Deps) (*Connector, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	link := wire.DefaultConfig()
	link.RequestTimeout = answerTimeout
	source, err := wire.New(deps.Source, link, deps.Log.Named("source"))
	if err != nil {
		return nil, fmt.Errorf("source: %w", err)
	}
	target, err := wire.New(deps.Target, link, deps.Log.Named("target"))
	if err != nil {
		return nil, fmt.Errorf("target: %w", err)
	}
	buffers := int64(float64(cfg.MemoryBytes) * bufferShare)
	c := &Connector{
		cfg: cfg, deps: deps, source: source, target: target, admin: administer(cfg, deps, target),
		pool: slab.NewPool(slab.NewBudget(buffers), buffers/idleShare), kick: make(chan struct{}, 1), start: time.Now(),
		parts: map[route.Partition]*partition{}, settings: map[string]operator.Topic{},
		claims: newClaims(deps.Store, deps.Worker), renewals: newRenewals(),
	}
	label := deps.Route.String()
	c.waits = purgatory.New[string]("positions", label, deps.Registerer)
	c.mirror = mirror.New(cfg.mirror(), mirror.Deps{
		Saver: deps.Store, Events: deps.Events, Pool: c.pool, Log: deps.Log.Named("mirror"), Registerer: deps.Registerer, Route: label,
		Worker: deps.Worker, Waiting: c.waiting, Moved: func(p route.Partition) { c.waits.Signal(p.Topic) },
	})
	c.mirror.SetLimits(cfg.Limits)
	c.producer = producer.New(cfg.producer(), producer.Deps{Client: target, Log: deps.Log.Named("producer"), Registerer: deps.Registerer, Route: label})
	fc := fetcher.DefaultConfig()
	fc.Fetchers, fc.ReadCommitted, fc.Rack = cfg.Fetchers, cfg.Isolation == ReadCommitted, deps.Source.ClientRack
	fc.MaxBytes = int32(min(int64(fc.MaxBytes), buffers/4))
	c.fetchers.Fetchers = fetcher.New(fc, fetcher.Deps{
		Client: source, Pool: c.pool, Log: deps.Log.Named("fetcher"), Registerer: deps.Registerer, Route: label,
	})
	newMetrics(deps.Registerer, label, c.pool.Budget())
	return c, nil
}

// Run mirrors until ctx ends, then drains, commits and returns. An error is the process's own fault: the store failed, or an invariant broke.
func (c *Connector) Run(ctx context.Context) error {
	if err := c.openSpool(); err != nil {
		return err
	}
	// The parts outlive ctx: they are needed to drain.
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer c.waits.Close() // nothing moves any more
	g, work := errgroup.WithContext(work)
	g.Go(func() error { return c.mirror.Run(work) })
	g.Go(func() error { return c.producer.Run(work) })
	g.Go(func() error { return c.fetchers.Run(work) })
	if c.fetchers.spool != nil {
		g.Go(func() error { return c.fetchers.spool.Run(work) })
	}
	control, ended := context.WithCancelCause(ctx)
	g.Go(func() error {
		<-work.Done() // a part failed: the control loop must not go on
		ended(context.Cause(work))
		return nil
	})
	var watching sync.WaitGroup
	watching.Go(func() { c.watchLoop(control) })
	watching.Go(func() { c.doubtLoop(control) })
	watching.Go(func() { c.limitLoop(control) })
	watching.Go(func() { c.shortLoop(control) })
	watching.Go(func() { c.circleLoop(control) })
	watching.Go(func() { c.admin.loops.Sift(control) })
	err := c.control(control)
	ended(nil)
	watching.Wait()
	err = errors.Join(err, c.drainAll(work))
	c.drains.Wait() // each has a deadline of its own
	stop()
	err = errors.Join(g.Wait(), err, c.closeSpool())
	c.source.Close()
	c.target.Close()
	return c.verdict(errors.Join(err, c.admin.target.Close(), c.admin.source.Close()))
}

// verdict tells of a store that failed, in the one line that matters: the same fault comes from every part that wanted to store something.
func (c *Connector) verdict(err error) error {
	var broken *offsets.StorageError
	if !errors.As(err, &broken) {
		return err
	}
	c.deps.Events.Emit(events.Event{
		Type: events.DiskFull, Severity: events.Error, Message: "positions can't be stored: stopped; nothing is lost, what was sent meanwhile is found again",
		Reason: broken.Error(),
	})
	return broken
}

// watchLoop looks after the route's health, also while control waits for a cluster that does not answer.
func (c *Connector) watchLoop(ctx context.Context) {
	every(ctx, healthTick, func() {
		c.watch()
		c.drain(ctx, c.stale())
	})
}

// every looks after something, time and again, until ctx ends.
func every(ctx context.Context, interval time.Duration, look func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			look()
		case <-ctx.Done():
			return
		}
	}
}

// drain stops partitions in the background. It is called before drainAll begins, or with mu held and partitions that drainAll has not taken.
func (c *Connector) drain(ctx context.Context, parts []*partition) {
	for _, p := range parts {
		c.drains.Go(func() { c.stop(ctx, p) })
	}
}

// Add says that partitions shall run here, whoever else may think so of himself. It returns at once and may be repeated.
func (c *Connector) Add(parts ...route.Partition) {
	c.mu.Lock()
	for _, p := range parts {
		if q := c.parts[p]; q == nil {
			c.parts[p] = &partition{
				source: p, target: route.Partition{Partition: p.Partition}, since: time.Now(), reason: "not asked for yet", left: make(chan struct{}),
			}
		} else {
			q.leave = false
		}
	}
	c.mu.Unlock()
	c.signal()
}

func (c *Connector) signal() {
	select {
	case c.kick <- struct{}{}:
	default:
	}
}

const (
	retryLeast = 200 * time.Millisecond
	retryMost  = 5 * time.Second
	healthTick = time.Second
)

// control starts partitions. It ends with an error if the store fails.
func (c *Connector) control(ctx context.Context) error {
	wait := retryLeast
	retry := time.NewTimer(0)
	defer retry.Stop()
	for {
		select {
		case <-c.kick:
		case <-retry.C:
		case <-ctx.Done():
			return nil
		}
		starting := c.pending()
		if len(starting) == 0 {
			wait = retryLeast
			continue
		}
		all, err := c.startAll(ctx, starting)
		var broken *offsets.StorageError
		if errors.As(err, &broken) {
			return err
		}
		if all {
			wait = retryLeast
			continue
		}
		retry.Reset(wait)
		wait = min(2*wait, retryMost)
	}
}

// pending lists what is to be started.
func (c *Connector) pending() (starting []*partition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.parts {
		if p.lane == nil && !p.gone {
			starting = append(starting, p)
		}
	}
	slices.SortFunc(starting, func(a, b *partition) int { return a.source.Compare(b.source) })
	return starting
}

// stale lists the partitions that can't go on from their checkpoint, or shall not: they are started anew, in a new epoch.
func (c *Connector) stale() (parts []*partition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.restlessLocked() {
		if anew := p.lane.Stale(); anew.Cause != 0 {
			p.gone, p.anew = true, anew
			parts = append(parts, p)
		}
	}
	return parts
}

// restlessLocked lists the running partitions that may need to be looked after. The caller holds mu.
func (c *Connector) restlessLocked() (parts []*partition) {
	for _, l := range c.mirror.Restless() {
		if p := c.parts[l.Source()]; p != nil && p.lane == l && !p.gone {
			parts = append(parts, p)
		}
	}
	return parts
}

// drainShare is the part of the shutdown timeout, in tenths, after which partitions are given up: what follows needs some of it, too.
const drainShare = 8

// lateCommit is what the commits of partitions that were given up get, all together.
const lateCommit = 2 * time.Second

// deadlines are the time for draining, which ends with ctx too, and the time for committing what was given up.
func (c *Connector) deadlines(ctx context.Context) (drain, late context.Context, cancel func()) {
	share := c.cfg.ShutdownTimeout * drainShare / 10
	drain, cancelDrain := context.WithTimeout(ctx, share)
	late, cancelLate := context.WithTimeout(context.WithoutCancel(ctx), share+lateCommit)
	return drain, late, func() { cancelDrain(); cancelLate() }
}

// stop drains one partition and lets go of it.
func (c *Connector) stop(ctx context.Context, p *partition) {
	drain, late, cancel := c.deadlines(context.WithoutCancel(ctx))
	defer cancel()
	_ = c.release(drain, late, p) // a store that failed is told by the next commit
	c.mu.Lock()
	if p.leave {
		delete(c.parts, p.source)
		close(p.left)
	} else { // it is to be started anew, or was added again meanwhile
		c.parts[p.source] = &partition{
			source: p.source, target: p.target, since: time.Now(), reason: "starts anew", told: p.lane.Halted(), anew: p.anew, wish: p.wish,
			begun: true, left: p.left,
		}
	}
	c.mu.Unlock()
	c.signal()
}

// release ends a partition here. An error is that of a store which failed; what else was left undone is found out by the next owner.
func (c *Connector) release(drain, late context.Context, p *partition) error {
	c.fetchers.Remove(p.source)
	err := c.mirror.Drain(drain, late, p.lane)
	p.slot.Detach()
	c.leaveLine(p)
	c.mirror.Remove(p.lane) // also with unanswered batches: what it holds is given back with their answers
	if err == nil {
		return nil
	}
	at := p.lane.Status().Acked
	c.deps.Events.Emit(events.Of(p.source, events.DrainIncomplete, events.Warning, "left with unanswered batches, or without a commit").
		Range(at, at).Because(err.Error()))
	var broken *offsets.StorageError
	if errors.As(err, &broken) {
		return broken
	}
	return nil
}

// drainAll drains every lane at once and commits, within the shutdown timeout. What is unanswered then is found out at the next start. After it
// has begun nothing is drained in the background any more: what runs is on its way out here.
func (c *Connector) drainAll(work context.Context) error {
	drain, late, cancel := c.deadlines(work)
	defer cancel()
	c.mu.Lock()
	var running []*partition
	for _, p := range c.parts {
		if p.lane != nil && !p.gone {
			p.gone = true
			running = append(running, p)
		}
	}
	c.mu.Unlock()
	for _, p := range running { // all at once: what is unanswered is waited for together
		c.mirror.Close(p.lane)
	}
	var broken error
	for _, p := range running {
		broken = errors.Join(broken, c.release(drain, late, p))
		close(p.left)
	}
	return errors.Join(broken, c.mirror.Commit(late))
}
