package statemodel

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/route"
)

// State is where a partition stands on this worker.
type State string

// The states. A partition that nobody has heard of is OFFLINE.
const (
	Offline State = "OFFLINE"
	Online  State = "ONLINE"
	Dropped State = "DROPPED"
	Error   State = "ERROR"
)

// Partitions runs partitions; connector.Connector satisfies it. Calls for one partition never overlap, those for many do.
type Partitions interface {
	// Online claims a partition and lets it run. It waits for the store of checkpoints at most. It may be repeated.
	Online(ctx context.Context, p route.Partition) error
	// Offline stops a partition, drains it within a bound of its own, commits, and returns when it runs here no longer. It may be repeated.
	Offline(ctx context.Context, p route.Partition) error
	// Suspend keeps all partitions, also those that begin, from moving anything until Resume. Neither waits for anything.
	Suspend()
	Resume()
}

// Deps are what a Model needs of others.
type Deps struct {
	Partitions Partitions
	Events     *events.Log
	Log        hclog.Logger
	Now        func() time.Time // nil: time.Now
}

// Model is the states of all partitions of a worker.
type Model struct {
	cfg  Config
	deps Deps

	mu        sync.Mutex // guards what follows; a leaf
	entries   map[route.Partition]*entry
	suspended time.Time // since when; zero: not
	failures  Failures
}

// Failures counts the steps that have led to ERROR, since the beginning.
type Failures struct {
	Online  int64
	Offline int64 // and DROPPED
}

// entry is one partition.
type entry struct {
	turn chan struct{} // held by the one who changes it

	// Guarded by Model.mu.
	state State
	users int // who hold or want the turn
}

// New makes a Model without partitions.
func New(cfg Config, deps Deps) *Model {
	if deps.Now == nil {
		deps.Now = time.Now
	}
	return &Model{cfg: cfg, deps: deps, entries: map[route.Partition]*entry{}}
}

// StepError is a step that the model does not have. Whoever asks for it has another idea of the protocol.
type StepError struct {
	Partition route.Partition
	From, To  State
}

func (e *StepError) Error() string {
	return fmt.Sprintf("%s: there is no step from %s to %s", e.Partition, e.From, e.To)
}

// Transition brings a partition to a state, and returns when it is there. An error means that it is in ERROR now, unless it is the context's.
// Errors: *StepError, and those of Partitions.
func (m *Model) Transition(ctx context.Context, p route.Partition, from, to State) error {
	e, err := m.take(ctx, p)
	if err != nil {
		return err
	}
	defer m.give(p, e)
	switch {
	case !isStep(from, to):
		err = &StepError{p, from, to}
	case to == Online && m.state(e) == Online:
		return nil
	case to == Online:
		err = m.deps.Partitions.Online(ctx, p)
	default: // whatever it was: an ERROR may have left it running
		err = m.deps.Partitions.Offline(ctx, p)
	}
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%s to %s: %w", p, to, ctx.Err()) // the state is as it was
	}
	m.reached(e, to, err)
	if err != nil {
		m.deps.Log.Error("partition comes into error", "partition", p.String(), "from", string(from), "to", string(to), "err", err)
		return fmt.Errorf("%s from %s to %s: %w", p, from, to, err)
	}
	return nil
}

// isStep says which steps the model has.
func isStep(from, to State) bool {
	switch from {
	case Offline:
		return to == Online || to == Dropped
	case Online:
		return to == Offline
	case Error:
		return to == Offline || to == Dropped
	case Dropped:
	}
	return false
}

// Reset brings partitions to OFFLINE, all at once, because the worker is no member of its cluster any more. When none has been drained for
// ResetPatience, the rest is left to itself, since a broker is down for example, and leaves when it can. Others may have it meanwhile, as they
// may after a crash: they find out what arrived.
func (m *Model) Reset(ctx context.Context, parts []route.Partition) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	patience := time.AfterFunc(m.cfg.ResetPatience, cancel)
	defer patience.Stop()
	var left atomic.Int64
	var wg sync.WaitGroup
	for _, p := range parts {
		wg.Go(func() {
			if m.reset(ctx, p) {
				patience.Reset(m.cfg.ResetPatience)
			} else {
				left.Add(1)
			}
		})
	}
	wg.Wait()
	if n := left.Load(); n > 0 {
		m.deps.Events.Emit(events.Event{
			Type: events.DrainIncomplete, Severity: events.Warning,
			Message: fmt.Sprintf("%d of %d partitions are still being drained and may be given to other workers: these find out what arrived", n, len(parts)),
			Reason:  "none was drained for " + m.cfg.ResetPatience.String(),
		})
	}
}

// reset gives false for a partition that was not drained in time.
func (m *Model) reset(ctx context.Context, p route.Partition) bool {
	e, err := m.take(ctx, p)
	if err != nil {
		return false
	}
	defer m.give(p, e)
	err = m.deps.Partitions.Offline(ctx, p)
	m.reached(e, Offline, nil)
	if err != nil && ctx.Err() == nil {
		m.deps.Log.Warn("partition could not be brought offline", "partition", p.String(), "err", err)
	}
	return err == nil || ctx.Err() == nil
}

// take waits for a partition's turn.
func (m *Model) take(ctx context.Context, p route.Partition) (*entry, error) {
	m.mu.Lock()
	e := m.entries[p]
	if e == nil {
		e = &entry{turn: make(chan struct{}, 1), state: Offline}
		m.entries[p] = e
	}
	e.users++
	m.mu.Unlock()
	select {
	case e.turn <- struct{}{}:
		return e, nil
	case <-ctx.Done():
		m.leave(p, e)
		return nil, ctx.Err()
	}
}

// give ends a turn.
func (m *Model) give(p route.Partition, e *entry) {
	<-e.turn
	m.leave(p, e)
}

// leave forgets a partition of which there is nothing to know.
func (m *Model) leave(p route.Partition, e *entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.users--; e.users == 0 && e.state == Dropped {
		delete(m.entries, p)
	}
}

func (m *Model) state(e *entry) State {
	m.mu.Lock()
	defer m.mu.Unlock()
	return e.state
}

// reached notes where a partition stands after a step.
func (m *Model) reached(e *entry, to State, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil {
		e.state = to
		return
	}
	if to == Online {
		m.failures.Online++
	} else {
		m.failures.Offline++
	}
	e.state = Error
}

// Failures are those up to now.
func (m *Model) Failures() Failures {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.failures
}

// States is a copy of where every known partition stands.
func (m *Model) States() map[route.Partition]State {
	m.mu.Lock()
	defer m.mu.Unlock()
	states := make(map[route.Partition]State, len(m.entries))
	for p, e := range m.entries {
		states[p] = e.state
	}
	return states
}
