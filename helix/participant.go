package helix

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/causeway-mirror/causeway/internal/backoff"
)

// Partition is a partition of a resource on this instance.
type Partition struct{ Resource, Name string }

func (p Partition) String() string { return p.Resource + "/" + p.Name }

// Transition is one step of a partition. The steps are OFFLINE→ONLINE, ONLINE→OFFLINE, OFFLINE→DROPPED, ERROR→OFFLINE and ERROR→DROPPED.
type Transition struct {
	Partition

	From, To State
}

// Handler carries out what a participant is told.
type Handler interface {
	// Transition brings a partition from one state to the next, and returns when it is there. An error puts it into the state ERROR,
	// which is left by ERROR→OFFLINE or ERROR→DROPPED. Calls for one partition never overlap; many partitions' do. When the
	// context ends, the session is over or the participant stops, and what the call returns is forgotten.
	Transition(ctx context.Context, t Transition) error
	// Reset brings partitions to OFFLINE that may be anything else: the session is over, the participant stops, or a partition was told to
	// take a step that does not exist. No Transition of them runs and none begins before it returns. At the end of a session the context
	// is not ended by that of Run: the handler bounds its own work.
	Reset(ctx context.Context, partitions []Partition)
	// Suspend says that ZooKeeper has been silent for so long that the session may soon be over and another instance take the
	// partitions. It must not wait for anything.
	Suspend()
	// Resume takes Suspend back: the session is alive and the instance is still its owner's, or there is a new session after a Reset. It
	// must not wait for anything.
	Resume()
}

// ParticipantConfig is how an instance takes part.
type ParticipantConfig struct {
	Config

	// Instance is the name in the cluster: <host>_<port> where nobody says otherwise.
	Instance string
	// Concurrency bounds how many transitions run at once.
	Concurrency int
	// CommitDelay is how long a reached state waits for others to be reported with it in one transaction.
	CommitDelay time.Duration
	// TakeoverGrace is added to the session timeout while a live node of the same name, perhaps of this process's former self, is
	// waited for to go.
	TakeoverGrace time.Duration
	// RetryLeast is how long a partition stays in ERROR, after its first failure, until the participant itself brings it to OFFLINE, from
	// where the controller takes it. It doubles with each failure in a row, up to RetryMost. 0 leaves that to administrators, as Java
	// participants do.
	RetryLeast, RetryMost time.Duration
}

// DefaultParticipantConfig lacks the address, the cluster and the instance.
func DefaultParticipantConfig() ParticipantConfig {
	return ParticipantConfig{
		Config: DefaultConfig(), Concurrency: 1000, CommitDelay: 10 * time.Millisecond, TakeoverGrace: 5 * time.Second,
		RetryLeast: time.Second, RetryMost: time.Minute,
	}
}

// Validate reports all faults at once.
func (c ParticipantConfig) Validate() error {
	faults := []error{c.Config.Validate(), checkName("instance", c.Instance)}
	if c.Concurrency < 1 {
		faults = append(faults, fmt.Errorf("transition_concurrency: %d: must be at least 1", c.Concurrency))
	}
	if c.CommitDelay < 0 || c.CommitDelay > time.Second {
		faults = append(faults, fmt.Errorf("state_commit_delay: %s: must be 0s to 1s", c.CommitDelay))
	}
	if c.TakeoverGrace < 0 {
		faults = append(faults, fmt.Errorf("takeover_grace: %s: must not be negative", c.TakeoverGrace))
	}
	if c.RetryLeast != 0 && c.RetryLeast < time.Millisecond {
		faults = append(faults, fmt.Errorf("retry_least: %s: must be at least 1ms, or 0s for never", c.RetryLeast))
	}
	if c.RetryLeast != 0 && c.RetryMost < c.RetryLeast {
		faults = append(faults, fmt.Errorf("retry_most: %s: must be at least retry_least, which is %s", c.RetryMost, c.RetryLeast))
	}
	return errors.Join(faults...)
}

// retryPause is how long a partition stays in ERROR that was in it so many times before, in a row.
func (c ParticipantConfig) retryPause(before int) time.Duration {
	pause := c.RetryLeast
	for range before {
		if pause >= c.RetryMost/2 {
			return c.RetryMost
		}
		pause *= 2
	}
	return pause
}

// ParticipantDeps is what a participant needs from others.
type ParticipantDeps struct {
	Handler    Handler
	Log        hclog.Logger
	Registerer prometheus.Registerer
	// Joined, if set, is called each time the instance has joined, for what else shall live with the session. Its context ends with the
	// session or the participant; the participant waits for it to return, and goes on meanwhile.
	Joined func(ctx context.Context, s *Session)
	// NotSetUp, if set, is told each time that the instance can't join since the cluster, or without auto-join the instance, does not exist.
	// That is waited for then, and Run does not fail by it.
	NotSetUp func(err error)
}

// Participant is an instance of a cluster: it joins, does what messages tell, reports, and joins again when its session was lost.
type Participant struct {
	cfg     ParticipantConfig
	deps    ParticipantDeps
	log     hclog.Logger
	metrics *participantMetrics
	session atomic.Pointer[Session] // while joined
	// suspended is the handler's: Suspend was called last. Only the goroutine of Run and the watchdog that it waits for use it.
	suspended bool
}

// NewParticipant starts nothing.
func NewParticipant(cfg ParticipantConfig, deps ParticipantDeps) *Participant {
	log := deps.Log.With("instance", cfg.Instance)
	return &Participant{cfg: cfg, deps: deps, log: log, metrics: newParticipantMetrics(deps.Registerer)}
}

// Session is the session in which the instance is a member of the cluster; nil while it is none.
func (p *Participant) Session() *Session { return p.session.Load() }

// rejoinAfter bounds the pauses between attempts to join again.
const (
	rejoinBase  = 100 * time.Millisecond
	rejoinLimit = 10 * time.Second
	setUpLimit  = 3 * time.Second
)

// Run takes part until the context ends, which brings all partitions to OFFLINE, leaves the cluster and returns nil. Errors: ErrNotSetUp when
// the cluster, or without auto-join the instance, does not exist at the first attempt and NotSetUp is not there to be told; *TakenError when
// another process is alive under the name. While ZooKeeper can't be reached, Run waits for it.
func (p *Participant) Run(ctx context.Context) error {
	pause := backoff.New(rejoinBase, rejoinLimit, rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())))
	joined := false
	for {
		was, err := p.serve(ctx)
		if ctx.Err() != nil { // what was asked for
			return nil //nolint:nilerr // see above
		}
		var taken *TakenError
		if errors.As(err, &taken) || !joined && !was && errors.Is(err, ErrNotSetUp) {
			return err
		}
		if was {
			joined = true
			pause.Reset()
		}
		p.log.Warn("out of the cluster, joining again", "err", err)
		_ = pause.Wait(ctx) // its end is seen above
	}
}

// serve is one session, from its beginning until it is over or the context ends; was says whether the instance was a member.
func (p *Participant) serve(ctx context.Context) (was bool, err error) {
	session, err := Open(ctx, p.cfg.Config, p.log)
	if err != nil {
		return false, err
	}
	defer session.Close()
	t := newTenure(p, session)
	if err := p.join(ctx, t); err != nil {
		return false, fmt.Errorf("join cluster %s: %w", p.cfg.Cluster, err)
	}
	p.metrics.joins.Inc()
	p.log.Info("joined the cluster", "cluster", string(p.cfg.Cluster), "session", session.ID(), "partitions", len(t.states))
	p.session.Store(session)
	defer p.session.Store(nil)
	if p.suspended {
		p.resume()
	}
	err = t.run(ctx)
	drain := context.WithoutCancel(ctx)
	if touched := t.touched(); len(touched) > 0 {
		p.deps.Handler.Reset(drain, touched)
	}
	if ctx.Err() != nil {
		t.leave(drain)
	}
	return true, err
}

// join joins, when the cluster is set up. A new session for each look at that would be a burden for ZooKeeper.
func (p *Participant) join(ctx context.Context, t *tenure) error {
	pause := backoff.New(rejoinBase, setUpLimit, rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())))
	for {
		err := t.join(ctx)
		if p.deps.NotSetUp == nil || !errors.Is(err, ErrNotSetUp) {
			return err
		}
		p.deps.NotSetUp(err)
		if err := pause.Wait(ctx); err != nil {
			return err
		}
	}
}

func (p *Participant) suspend() {
	p.suspended = true
	p.metrics.suspended.Set(1)
	p.log.Warn("zookeeper is silent, partitions are suspended")
	p.deps.Handler.Suspend()
}

func (p *Participant) resume() {
	p.suspended = false
	p.metrics.suspended.Set(0)
	p.log.Info("zookeeper answers again, partitions are resumed")
	p.deps.Handler.Resume()
}
