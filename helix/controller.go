package helix

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/causeway-mirror/causeway/internal/backoff"
)

// ControllerDeps is what a Controller works with.
type ControllerDeps struct {
	Log        hclog.Logger
	Registerer prometheus.Registerer
	// Lead is called in each term, when the cluster is known, and must return soon after its context ends, which is when leadership is lost,
	// ZooKeeper has said nothing for too long, or Run's context ends. If it returns earlier, its error says why this process can't lead:
	// another one is given the chance.
	Lead func(ctx context.Context, t *Term) error
}

// Controller takes part in the election of a cluster's controller, and while it leads, has the participants do what the ideal states say and
// writes the external views.
type Controller struct {
	cfg     ControllerConfig
	deps    ControllerDeps
	metrics *controllerMetrics

	mu     sync.Mutex
	leader string   // guarded by mu; who leads, as far as known
	open   *Session // guarded by mu; the newest; nil before the first
}

// NewController gives a Controller that does nothing until Run. The config must be valid.
func NewController(cfg ControllerConfig, deps ControllerDeps) *Controller {
	return &Controller{cfg: cfg, deps: deps, metrics: newControllerMetrics(deps.Registerer)}
}

// Leader is the name of the controller that leads, or empty: it may be this one, and have changed.
func (c *Controller) Leader() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leader
}

// Trouble is why ZooKeeper can't be reached, as far as known of the newest session; nil if it was at the last attempt.
func (c *Controller) Trouble() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		return nil
	}
	return c.open.Trouble()
}

func (c *Controller) setLeader(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leader != name {
		c.deps.Log.Info("leader changed", "leader", name)
	}
	c.leader = name
}

// Between attempts, when ZooKeeper answers but something is wrong.
const (
	retryBase  = 100 * time.Millisecond
	retryLimit = 5 * time.Second
)

// Run takes part until its context ends; then it gives leadership back and returns nil. What goes wrong is logged and tried again.
func (c *Controller) Run(ctx context.Context) error {
	pause := backoff.New(retryBase, retryLimit, rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())))
	said := ""
	for {
		err := c.session(ctx, pause)
		c.setLeader("")
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the end was asked for
		}
		if text := fmt.Sprint(err); text != said { // once, however often it is tried
			c.deps.Log.Warn("controller begins again", "err", err)
			said = text
		}
		_ = pause.Wait(ctx) // its end is seen above
	}
}

// session takes part with one session, until that or the context ends, or something goes wrong.
func (c *Controller) session(ctx context.Context, pause *backoff.Backoff) error {
	s, err := Open(ctx, c.cfg.Config, c.deps.Log)
	if err != nil {
		return err
	}
	defer s.Close()
	c.mu.Lock()
	c.open = s
	c.mu.Unlock()
	// Requests would outlive a session that is over.
	ctx, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel(nil)
	watching.Go(func() {
		select {
		case <-s.Done():
			cancel(s.Err())
		case <-ctx.Done():
		}
	})
	if err := NewAdmin(s, c.cfg.Cluster).CheckCluster(ctx); err != nil {
		return err
	}
	for {
		guard, err := c.elect(ctx, s)
		if err != nil {
			return err
		}
		err = c.term(ctx, s, guard)
		c.setLeader("") // whoever leads now, it is not this process
		if err != nil && !errors.Is(err, errSilent) && !errors.Is(err, errNotLeader) {
			return err
		}
		pause.Reset()
	}
}

// errSilent ends a term: ZooKeeper may have forgotten the session by now, or will before long.
var errSilent = errors.New("zookeeper is silent")

// errNotLeader ends a term: the node LEADER is gone or somebody else's.
var errNotLeader = errors.New("the leader's node is not ours")

// term leads until something ends it.
func (c *Controller) term(ctx context.Context, s *Session, guard Guard) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var children sync.WaitGroup
	defer children.Wait()
	defer cancel(nil)
	children.Go(func() { cancel(watchSilence(ctx, s)) })
	children.Go(func() { cancel(c.watchLeader(ctx, s)) })
	t := newTerm(c, s, guard)
	c.deps.Log.Info("leads", "epoch", t.Epoch(), "session", s.ID())
	defer c.deps.Log.Info("leads no longer", "epoch", t.Epoch(), "session", s.ID())
	err := t.prepare(ctx)
	if err == nil {
		c.metrics.leader.Set(1)
		defer c.metrics.leader.Set(0)
		if c.deps.Lead != nil {
			children.Go(func() {
				err := c.deps.Lead(ctx, t)
				if ctx.Err() == nil {
					cancel(fmt.Errorf("lead: %w", err))
				}
			})
		}
		err = t.run(ctx)
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return err
}

// silenceChecks is how often the silence is looked at within its limit.
const silenceChecks = 20

// watchSilence returns errSilent when whoever leads must stop: the silence began when the last request that was answered was sent.
func watchSilence(ctx context.Context, s *Session) error {
	ticker := time.NewTicker(s.SilenceLimit() / silenceChecks)
	defer ticker.Stop()
	for s.Silence() < s.SilenceLimit() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
	return errSilent
}

// watchLeader returns when the node LEADER is no longer ours.
func (c *Controller) watchLeader(ctx context.Context, s *Session) error {
	for {
		changed := make(chan struct{}, 1)
		_, stat, err := s.Get(ctx, c.cfg.Cluster.leader(), func(Event) { changed <- struct{}{} })
		switch {
		case errors.Is(err, ErrNotFound), err == nil && stat.Owner != s.ID():
			return errNotLeader
		case err != nil:
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}
