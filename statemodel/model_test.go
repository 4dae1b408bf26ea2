package statemodel

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/route"
)

// recorder is Partitions that writes down what it is told.
type recorder struct {
	mu      sync.Mutex
	calls   []string
	running map[route.Partition]bool
	busy    map[route.Partition]bool
	overlap bool
	fail    error
	hold    func(ctx context.Context) error // called in the middle of a step
}

func (r *recorder) step(ctx context.Context, p route.Partition, name string, on bool) error {
	r.mu.Lock()
	r.overlap = r.overlap || r.busy[p]
	r.busy[p] = true
	fail, hold := r.fail, r.hold
	r.mu.Unlock()
	err := fail
	if hold != nil {
		err = errors.Join(err, hold(ctx))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy[p] = false
	r.calls = append(r.calls, name+" "+p.String())
	if err == nil {
		r.running[p] = on
	}
	return err
}

func (r *recorder) Online(ctx context.Context, p route.Partition) error {
	return r.step(ctx, p, "online", true)
}

func (r *recorder) Offline(ctx context.Context, p route.Partition) error {
	return r.step(ctx, p, "offline", false)
}

func (r *recorder) Suspend() { r.note("suspend") }
func (r *recorder) Resume()  { r.note("resume") }

func (r *recorder) note(call string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, call)
}

func (r *recorder) told() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	calls := r.calls
	r.calls = nil
	return calls
}

func (r *recorder) failing(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fail = err
}

func newModel() (*Model, *recorder, *events.Log) {
	r := &recorder{running: map[route.Partition]bool{}, busy: map[route.Partition]bool{}}
	log := events.NewLog(route.Route{Source: "a", Target: "b", ID: "1"}, "w1", 10, hclog.NewNullLogger(), prometheus.NewRegistry())
	return New(DefaultConfig(), Deps{Partitions: r, Events: log, Log: hclog.NewNullLogger()}), r, log
}

var orders = route.Partition{Topic: "orders", Partition: 3}

var errBroken = errors.New("broken")

func TestStepsDriveThePartition(t *testing.T) {
	t.Parallel()
	m, r, _ := newModel()
	for _, step := range []struct {
		from, to State
		calls    []string
	}{
		{Offline, Online, []string{"online orders-3"}},
		{Offline, Online, nil}, // its end was not heard
		{Online, Offline, []string{"offline orders-3"}},
		{Online, Offline, []string{"offline orders-3"}},
		{Offline, Online, []string{"online orders-3"}},
		{Online, Offline, []string{"offline orders-3"}},
		{Offline, Dropped, []string{"offline orders-3"}},
	} {
		require.NoError(t, m.Transition(t.Context(), orders, step.from, step.to))
		require.Equal(t, step.calls, r.told(), "%s to %s", step.from, step.to)
	}
	require.Empty(t, m.States(), "a dropped partition is forgotten")
}

func TestUnknownStepIsRefused(t *testing.T) {
	t.Parallel()
	m, r, _ := newModel()
	var wrong *StepError
	require.ErrorAs(t, m.Transition(t.Context(), orders, Online, Dropped), &wrong)
	require.Empty(t, r.told())
	require.Equal(t, Error, m.States()[orders])
}

func TestInterruptedStepLeavesTheState(t *testing.T) {
	t.Parallel()
	m, r, _ := newModel()
	ctx, cancel := context.WithCancel(t.Context())
	r.hold = func(ctx context.Context) error { cancel(); <-ctx.Done(); return ctx.Err() }
	require.ErrorIs(t, m.Transition(ctx, orders, Offline, Online), context.Canceled)
	require.Equal(t, Offline, m.States()[orders])
	require.ErrorIs(t, m.Transition(ctx, orders, Offline, Online), context.Canceled, "it was over before it began")
}

func TestErrorIsLeftByTheStepToOffline(t *testing.T) {
	t.Parallel()
	m, r, _ := newModel()
	r.failing(errBroken)
	require.ErrorIs(t, m.Transition(t.Context(), orders, Offline, Online), errBroken)
	require.Equal(t, Error, m.States()[orders])
	require.ErrorIs(t, m.Transition(t.Context(), orders, Error, Offline), errBroken)
	require.Equal(t, Error, m.States()[orders])
	require.Equal(t, Failures{Online: 1, Offline: 1}, m.Failures())
	r.failing(nil)
	require.NoError(t, m.Transition(t.Context(), orders, Error, Offline))
	require.Equal(t, Offline, m.States()[orders])
	require.ErrorContains(t, Config{}.Validate(), "reset_patience")
	require.NoError(t, DefaultConfig().Validate())
}

func TestSuspendedOnceAndResumedOnce(t *testing.T) {
	t.Parallel()
	m, r, log := newModel()
	m.Resume()
	require.Empty(t, r.told())
	m.Suspend()
	m.Suspend()
	_, suspended := m.Suspended()
	require.True(t, suspended)
	m.Resume()
	m.Resume()
	_, suspended = m.Suspended()
	require.False(t, suspended)
	require.Equal(t, []string{"suspend", "resume"}, r.told())
	told := log.Since(0)
	require.Len(t, told, 1)
	require.Equal(t, events.LeaseLost, told[0].Type)
}

func TestResetBringsAllOfflineAtOnce(t *testing.T) {
	t.Parallel()
	m, r, _ := newModel()
	var parts []route.Partition
	for i := range int32(50) {
		p := route.Partition{Topic: "t", Partition: i}
		parts = append(parts, p)
		require.NoError(t, m.Transition(t.Context(), p, Offline, Online))
	}
	r.told()
	var together sync.WaitGroup
	together.Add(len(parts)) // hangs unless all are in the middle of their step at once
	r.hold = func(context.Context) error { together.Done(); together.Wait(); return errBroken }
	m.Reset(t.Context(), parts)
	require.Len(t, r.told(), len(parts))
	for p, state := range m.States() {
		require.Equal(t, Offline, state, p.String())
	}
}

// A worker that was told to end waited for the partitions of a broker that was down, 26 seconds with the default bounds, before it gave its
// place in the cluster up: until then nobody mirrored those that were drained.
func TestPartitionThatCanNotBeDrainedHoldsNoOtherUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, r, log := newModel()
		parts := []route.Partition{orders, {Topic: "orders", Partition: 4}, {Topic: "orders", Partition: 5}}
		for _, p := range parts {
			require.NoError(t, m.Transition(t.Context(), p, Offline, Online))
		}
		r.told()
		var first atomic.Bool
		r.hold = func(ctx context.Context) error {
			if first.Swap(true) {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}
		began := time.Now()
		m.Reset(t.Context(), parts)
		require.Equal(t, DefaultConfig().ResetPatience, time.Since(began))
		require.Len(t, r.told(), len(parts), "each was told to go")
		told := log.Since(0)
		require.Len(t, told, 1)
		require.Equal(t, events.DrainIncomplete, told[0].Type)
		require.Contains(t, told[0].Message, "1 of 3 partitions")
		for _, p := range parts {
			require.Equal(t, Offline, m.States()[p])
			require.NoError(t, m.Transition(t.Context(), p, Offline, Online), "it may come back")
		}
	})
}

// Whatever steps come from wherever, those of one partition never overlap, and what runs is what the model says.
func TestStepsOfOnePartitionNeverOverlap(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m, r, _ := newModel()
		states := []State{Offline, Online, Dropped, Error}
		steps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) [3]int {
			return [3]int{rapid.IntRange(0, 2).Draw(t, "partition"), rapid.IntRange(0, 3).Draw(t, "from"), rapid.IntRange(0, 4).Draw(t, "to")}
		}), 1, 60).Draw(t, "steps")
		fail := rapid.Bool().Draw(t, "fail")
		var wg sync.WaitGroup
		for i, step := range steps {
			p := route.Partition{Topic: "t", Partition: int32(step[0])}
			if fail && i == len(steps)/2 {
				r.failing(errBroken)
			}
			wg.Go(func() {
				if step[2] == 4 {
					m.Reset(context.Background(), []route.Partition{p})
					return
				}
				_ = m.Transition(context.Background(), p, states[step[1]], states[step[2]]) // whatever comes of it
			})
		}
		wg.Wait()
		r.mu.Lock()
		defer r.mu.Unlock()
		require.False(t, r.overlap)
		known := m.States()
		for p, running := range r.running {
			if state := known[p]; state != Error && !fail {
				require.Equal(t, running, state == Online, "%s is %s", p, state)
			}
		}
		for p, state := range known {
			require.NotEqual(t, Dropped, state, "%s is kept although it was dropped", p)
		}
	})
}
