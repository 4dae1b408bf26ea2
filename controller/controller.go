package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/route"
)

// Deps are what a controller works with. Source, Target, Positions, Workload and Pulse may be nil: what needs them is left out then.
type Deps struct {
	Log            hclog.Logger
	Registerer     prometheus.Registerer
	Route          route.Route
	ID             string // instance name
	Coordinator    Coordinator
	Source, Target Kafka
	Positions      Positions
	Workload       Workload
	Pulse          Pulse
	Events         *events.Log
}

// Controller stands for election and leads while it is elected.
type Controller struct {
	cfg     Config
	deps    Deps
	metrics *metrics
	tallies *tallies
	term    atomic.Pointer[Term]
}

// New checks the configuration; nothing is opened before Run.
func New(cfg Config, deps Deps) (*Controller, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Controller{cfg: cfg, deps: deps, metrics: newMetrics(deps.Registerer, deps.Route.String()), tallies: &tallies{}}, nil
}

// Run takes part until ctx ends. It returns an error only for what no new attempt can mend.
func (c *Controller) Run(ctx context.Context) error {
	if err := c.deps.Coordinator.Campaign(ctx, c.lead); err != nil && ctx.Err() == nil {
		return fmt.Errorf("lead the cluster: %w", err)
	}
	return nil
}

// Term gives the present term of leadership, or ErrNotLeader.
func (c *Controller) Term() (*Term, error) {
	if t := c.term.Load(); t != nil {
		return t, nil
	}
	return nil, ErrNotLeader
}

// Leader says who leads at the moment.
func (c *Controller) Leader(ctx context.Context) (Leader, error) {
	return c.deps.Coordinator.Leader(ctx)
}

// lead is one term, from the election until ctx ends.
func (c *Controller) lead(ctx context.Context, cluster Cluster) error {
	t := newTerm(c, cluster)
	c.term.Store(t)
	c.deps.Log.Info("elected", "id", c.deps.ID)
	c.deps.Events.Emit(events.Event{Type: events.LeaderChanged, Severity: events.Info, Message: c.deps.ID + " leads the route's cluster"})
	t.run(ctx)
	c.term.Store(nil)
	c.metrics.forget()
	c.deps.Log.Info("term is over", "id", c.deps.ID)
	return nil
}

// Term is one term of leadership. Its methods may be called from any goroutine; once the term is over they fail with ErrNotLeader or with what
// keeps their write from being made.
type Term struct {
	cfg     Config
	deps    Deps
	metrics *metrics
	tallies *tallies
	cluster Cluster
	began   time.Time
	turns   chan struct{} // holds one token while nobody changes ideal states
	kick    chan struct{} // wakes the watch
	crew    *crew
	lag     *lagTable
	rates   atomic.Pointer[rates]
	report  atomic.Pointer[discoveryReport]
	repairs *repairs
	lastRun atomic.Int64 // of a balance of load, Unix nanoseconds
}

func newTerm(c *Controller, cluster Cluster) *Term {
	now := time.Now()
	if c.cfg.Replicas != nil {
		cluster = &pairs{Cluster: cluster, replicas: c.cfg.Replicas}
	}
	t := &Term{
		cfg: c.cfg, deps: c.deps, metrics: c.metrics, tallies: c.tallies, cluster: cluster, began: now,
		turns: make(chan struct{}, 1), kick: make(chan struct{}, 1),
		crew: newCrew(c.cfg.Rebalance.Delay), lag: newLagTable(c.cfg), repairs: newRepairs(),
	}
	t.turns <- struct{}{}
	t.rates.Store(&rates{})
	t.report.Store(&discoveryReport{})
	return t
}

// run works until ctx ends.
func (t *Term) run(ctx context.Context) {
	var jobs sync.WaitGroup
	defer jobs.Wait()
	jobs.Go(func() { t.watch(ctx) })
	jobs.Go(func() { t.repairAll(ctx) })
	start := func(name string, first, interval time.Duration, needed bool, do func(context.Context) error) {
		if needed && interval > 0 {
			jobs.Go(func() { t.every(ctx, name, first, interval, do) })
		}
	}
	start("validation", t.cfg.ValidateInterval, t.cfg.ValidateInterval, true, t.validate)
	start("discovery", t.cfg.Discovery.First, t.cfg.Discovery.Interval, t.deps.Source != nil, t.discover)
	start("lag", t.cfg.Lag.First, t.cfg.Lag.Interval, t.deps.Source != nil && t.deps.Positions != nil, t.measure)
	start("workload", 0, t.cfg.WeighInterval, t.deps.Workload != nil, t.weigh)
	start("balance", t.cfg.Rebalance.Period, t.cfg.Rebalance.Period, true, t.balanceLoad)
	start("backup", t.cfg.Backup.Interval, t.cfg.Backup.Interval, t.cfg.Backup.Dir != "", newBackups(t).run)
}

// patience is how much longer than its last run a job rests at least, so that a slow ZooKeeper or Kafka is not asked all the time.
const patience = 5

// every runs a job until ctx ends. What fails is logged and counted, and tried again the next time.
func (t *Term) every(ctx context.Context, name string, first, interval time.Duration, do func(context.Context) error) {
	timer := time.NewTimer(first)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		began := time.Now()
		if err := do(ctx); err != nil && ctx.Err() == nil {
			t.metrics.jobErrors.WithLabelValues(name).Inc()
			t.deps.Log.Warn("a job failed and is tried again", "job", name, "error", err)
		}
		timer.Reset(max(interval, patience*time.Since(began)))
	}
}

// turn waits until nobody else changes ideal states. The caller calls release when it is done.
func (t *Term) turn(ctx context.Context) (release func(), err error) {
	select {
	case <-t.turns:
		return func() { t.turns <- struct{}{} }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// conflictTries is how often a change is made anew on what another writer left.
const conflictTries = 5

// change makes one change of ideal states: alone, and again if another writer came in between: the cluster knows by then what that one wrote.
func (t *Term) change(ctx context.Context, do func(s *State) error) error {
	release, err := t.turn(ctx)
	if err != nil {
		return err
	}
	defer release()
	for range conflictTries {
		if err = do(t.cluster.State()); !errors.Is(err, ErrConflict) {
			return err
		}
	}
	return err
}

// wake lets the watch look again.
func (t *Term) wake() {
	select {
	case t.kick <- struct{}{}:
	default:
	}
}
