package purgatory

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
)

func newPurgatory() *Purgatory[int] { return New[int]("test", "@a@b@1", prometheus.NewRegistry()) }

// requireEmpty checks that nothing is held any more.
func requireEmpty(t *testing.T, p *Purgatory[int]) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	require.Zero(t, p.Pending())
	require.Empty(t, p.lines)
	require.Empty(t, p.timers)
	require.False(t, slices.ContainsFunc(p.timers[:cap(p.timers)], func(e *entry[int]) bool { return e != nil }), "the timers hold what has ended")
}

// probe is an operation that notes what happens to it.
type probe struct {
	open    atomic.Bool // it is ready
	began   time.Time
	asking  atomic.Int32
	outcome atomic.Pointer[Outcome]
	took    time.Duration
	faults  atomic.Int32 // asked by two at once or after its end, or ended twice
}

func (o *probe) operation(limit time.Duration) Operation {
	o.began = time.Now()
	return Operation{Limit: limit, Ready: o.ready, Done: o.done}
}

func (o *probe) ready() bool {
	if o.asking.Add(1) > 1 || o.outcome.Load() != nil {
		o.faults.Add(1)
	}
	defer o.asking.Add(-1)
	return o.open.Load()
}

func (o *probe) done(got Outcome) {
	o.took = time.Since(o.began)
	if o.asking.Load() > 0 || !o.outcome.CompareAndSwap(nil, &got) {
		o.faults.Add(1)
	}
}

func (o *probe) ended() Outcome {
	if got := o.outcome.Load(); got != nil {
		return *got
	}
	return ""
}

func TestWhatIsReadyCompletesAtOnce(t *testing.T) {
	t.Parallel()
	p := newPurgatory()
	var o probe
	o.open.Store(true)
	require.True(t, p.TryCompleteElseWatch(o.operation(time.Hour), 1, 2))
	require.Equal(t, Completed, o.ended())
	requireEmpty(t, p)
}

func TestAnEventOfAnyKeyCompletesAndLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	for _, key := range []int{1, 2, 3} {
		p := newPurgatory()
		var o probe
		require.False(t, p.TryCompleteElseWatch(o.operation(time.Hour), 1, 2, 3))
		require.Zero(t, p.CheckAndComplete(key), "it is not ready")
		o.open.Store(true)
		require.Zero(t, p.CheckAndComplete(4), "nobody watches that")
		require.Equal(t, 1, p.CheckAndComplete(key))
		require.Equal(t, Completed, o.ended())
		require.Zero(t, p.CheckAndComplete(key))
		requireEmpty(t, p)
	}
}

func TestOperationsAreAskedInTheOrderInWhichTheyCame(t *testing.T) {
	t.Parallel()
	p := newPurgatory()
	var got []int
	open := false
	for i := range 5 {
		p.TryCompleteElseWatch(Operation{Ready: func() bool { return open }, Done: func(Outcome) { got = append(got, i) }}, 7, i)
	}
	require.Equal(t, 1, p.Cancel(2))
	open = true
	require.Equal(t, 4, p.CheckAndComplete(7))
	require.Equal(t, []int{2, 0, 1, 3, 4}, got)
	requireEmpty(t, p)
}

func TestOperationsExpireAtTheirTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPurgatory()
		limits := []time.Duration{5 * time.Second, time.Millisecond, time.Hour, 5 * time.Second, 3 * time.Hour, 1}
		probes := make([]probe, len(limits))
		for i, limit := range limits {
			p.TryCompleteElseWatch(probes[i].operation(limit), i)
		}
		var forever probe
		p.TryCompleteElseWatch(forever.operation(0))
		time.Sleep(4 * time.Hour)
		for i := range probes {
			require.Equal(t, Expired, probes[i].ended())
			require.Equal(t, limits[i], probes[i].took)
		}
		require.Empty(t, forever.ended())
		p.Close()
		requireEmpty(t, p)
	})
}

// TestOperationsExpireWhileSignalsKeepComing, on a real clock: that of a bubble stands still while anything runs.
func TestOperationsExpireWhileSignalsKeepComing(t *testing.T) {
	t.Parallel()
	p := newPurgatory()
	ended := make(chan Outcome, 1)
	p.TryCompleteElseWatch(Operation{Ready: func() bool { p.Signal(1); return false }, Done: ignore}, 1) // wants to be asked again each time
	p.TryCompleteElseWatch(Operation{Limit: 10 * time.Millisecond, Ready: no, Done: func(o Outcome) { ended <- o }}, 2)
	require.Equal(t, Expired, <-ended)
	p.Close()
	requireEmpty(t, p)
}

func TestWhatCanCompleteInTheMomentOfItsTimeDoesNotExpire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPurgatory()
		var o probe
		p.TryCompleteElseWatch(o.operation(time.Second), 1)
		time.AfterFunc(time.Second-1, func() { o.open.Store(true); p.Signal(1) })
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, Completed, o.ended())
		requireEmpty(t, p)
	})
}

func TestCloseLetsAllExpire(t *testing.T) {
	t.Parallel()
	p := newPurgatory()
	probes := make([]probe, 100)
	for i := range probes {
		p.TryCompleteElseWatch(probes[i].operation(time.Duration(i%2)*time.Hour), i%3)
	}
	p.Close()
	for i := range probes {
		require.Equal(t, Expired, probes[i].ended())
	}
	requireEmpty(t, p)
	var late, ready probe
	require.False(t, p.TryCompleteElseWatch(late.operation(0), 1))
	require.Equal(t, Expired, late.ended())
	ready.open.Store(true)
	require.True(t, p.TryCompleteElseWatch(ready.operation(0), 1))
	requireEmpty(t, p)
	p.Close()
}

func TestWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPurgatory()
		no := func() bool { return false }
		began := time.Now()
		require.Equal(t, Expired, p.Wait(t.Context(), time.Minute, no, 1))
		require.Equal(t, time.Minute, time.Since(began))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.Equal(t, Cancelled, p.Wait(ctx, 0, no, 1))
		require.Equal(t, time.Minute+time.Second, time.Since(began))
		var open atomic.Bool
		time.AfterFunc(time.Minute, func() { open.Store(true); p.Signal(1) })
		require.Equal(t, Completed, p.Wait(t.Context(), time.Hour, open.Load, 1))
		require.Equal(t, 2*time.Minute+time.Second, time.Since(began))
		require.Equal(t, Completed, p.Wait(ctx, 0, open.Load, 1), "what is ready needs no time")
		requireEmpty(t, p)
	})
}

// TestSignalWorksWithLocksThatReadyTakes: data paths tell of what they did while they hold their locks.
func TestSignalWorksWithLocksThatReadyTakes(t *testing.T) {
	t.Parallel()
	p := newPurgatory()
	var mu sync.Mutex
	n := 0
	ended := make(chan Outcome, 1)
	p.TryCompleteElseWatch(Operation{
		Ready: func() bool {
			mu.Lock()
			defer mu.Unlock()
			return n == 1000
		},
		Done: func(o Outcome) { ended <- o },
	}, 1)
	for range 1000 {
		mu.Lock()
		n++
		p.Signal(1)
		mu.Unlock()
	}
	require.Equal(t, Completed, <-ended)
	p.Close()
	requireEmpty(t, p)
}

// TestAnEventWhileAnOperationIsAskedIsNotLost: it is asked again by whoever asks it, and not by two at once.
func TestAnEventWhileAnOperationIsAskedIsNotLost(t *testing.T) {
	t.Parallel()
	p := newPurgatory()
	var open atomic.Bool
	asked, ended := 0, Outcome("")
	p.TryCompleteElseWatch(Operation{
		Ready: func() bool {
			asked++
			ready := open.Load()
			if asked == 3 {
				open.Store(true) // it was looked at already
				require.Zero(t, p.CheckAndComplete(1))
			}
			return ready
		},
		Done: func(o Outcome) { ended = o },
	}, 1)
	require.Equal(t, 2, asked)
	require.Equal(t, 1, p.CheckAndComplete(1))
	require.Equal(t, 4, asked)
	require.Equal(t, Completed, ended)
	p.Close()
}

func TestWhoAsksTellsTheEndThatCameMeanwhile(t *testing.T) {
	t.Parallel()
	p := newPurgatory()
	asked, ended := 0, Outcome("")
	p.TryCompleteElseWatch(Operation{
		Ready: func() bool {
			if asked++; asked == 3 {
				require.Equal(t, 1, p.Cancel(1))
				require.Zero(t, p.Cancel(1))
				require.Empty(t, ended, "not while it is being asked")
			}
			return asked == 3
		},
		Done: func(o Outcome) { ended = o },
	}, 1)
	require.Zero(t, p.CheckAndComplete(1))
	require.Equal(t, Cancelled, ended)
	p.Close()
	requireEmpty(t, p)
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewPedanticRegistry()
	p := New[string]("test", "@a@b@1", reg)
	New[string]("other", "@a@b@1", reg)
	var done, ended, waits probe
	done.open.Store(true)
	p.TryCompleteElseWatch(done.operation(0), "a")
	p.TryCompleteElseWatch(ended.operation(0), "b")
	p.Cancel("b")
	p.TryCompleteElseWatch(waits.operation(0), "c")
	found, err := testutil.GatherAndLint(reg)
	require.NoError(t, err)
	require.Empty(t, found)
	gathered := func() map[string]float64 {
		families, err := reg.Gather()
		require.NoError(t, err)
		values := map[string]float64{}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				name := []string{f.GetName()}
				for _, l := range m.GetLabel() {
					name = append(name, l.GetValue())
				}
				values[strings.Join(name, " ")] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
		return values
	}
	got := gathered()
	require.InDelta(t, 1, got["causeway_purgatory_operations test @a@b@1"], 0)
	require.InDelta(t, 1, got["causeway_purgatory_ended_total completed test @a@b@1"], 0)
	require.InDelta(t, 1, got["causeway_purgatory_ended_total cancelled test @a@b@1"], 0)
	require.InDelta(t, 0, got["causeway_purgatory_ended_total expired test @a@b@1"], 0)
	p.Close()
	require.InDelta(t, 0, gathered()["causeway_purgatory_operations test @a@b@1"], 0)
	require.InDelta(t, 1, gathered()["causeway_purgatory_ended_total expired test @a@b@1"], 0)
}

// heapInUse is what is reachable, in bytes.
func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestAHundredThousandOperationsFitInto60MB, with their closures, and nothing is left of them. It measures the whole process, so it is not parallel.
func TestAHundredThousandOperationsFitInto60MB(t *testing.T) {
	const n, most = 100_000, 60 << 20
	p := newPurgatory()
	before := heapInUse()
	open := make([]bool, n)
	left := n
	for i := range n {
		p.TryCompleteElseWatch(Operation{
			Limit: time.Hour, Ready: func() bool { return open[i] }, Done: func(Outcome) { left-- },
		}, i, n+i%1000)
	}
	full := heapInUse() - before
	t.Logf("%d operations: %.1f MB, %d bytes each", n, float64(full)/(1<<20), full/n)
	require.Less(t, full, int64(most))
	for i := range n {
		open[i] = true
		if i%2 == 0 {
			require.Equal(t, 1, p.CheckAndComplete(i))
		}
	}
	p.Close()
	require.Zero(t, left)
	requireEmpty(t, p)
}
