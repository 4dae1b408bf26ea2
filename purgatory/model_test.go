package purgatory

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/internal/testkit"
)

// simple is what a purgatory does, by looking at everything each time.
type simple struct {
	waiting []*simpleOperation // in the order of arrival
	now     time.Duration
}

type simpleOperation struct {
	keys    map[int]bool
	due     time.Duration // 0: never
	open    bool
	outcome Outcome
	at      time.Duration
}

func (s *simple) end(o *simpleOperation, outcome Outcome, at time.Duration) {
	o.outcome, o.at = outcome, at
	for i := range s.waiting {
		if s.waiting[i] == o {
			s.waiting = append(s.waiting[:i:i], s.waiting[i+1:]...)
			return
		}
	}
}

// each gives those that watch a key.
func (s *simple) each(key int, do func(*simpleOperation)) (n int) {
	for _, o := range append([]*simpleOperation(nil), s.waiting...) {
		if o.keys[key] {
			before := len(s.waiting)
			do(o)
			n += before - len(s.waiting)
		}
	}
	return n
}

func (s *simple) check(key int) int {
	return s.each(key, func(o *simpleOperation) {
		if o.open {
			s.end(o, Completed, s.now)
		}
	})
}

func (s *simple) cancel(key int) int {
	return s.each(key, func(o *simpleOperation) { s.end(o, Cancelled, s.now) })
}

func (s *simple) sleep(d time.Duration) {
	s.now += d
	for _, o := range append([]*simpleOperation(nil), s.waiting...) {
		if o.due > 0 && o.due <= s.now {
			s.end(o, Expired, o.due)
		}
	}
}

func TestPurgatoryDoesWhatTheSimpleOneDoes(t *testing.T) {
	t.Parallel()
	seeds := uint64(30)
	if testkit.Long() {
		seeds = 1000
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) { compare(t, rand.New(rand.NewPCG(seed, 0))) })
	}
}

// compare does the same to both, one thing after the other.
func compare(t *testing.T, random *rand.Rand) {
	t.Helper()
	const keys = 5
	p, s := newPurgatory(), &simple{}
	var probes []*probe
	var twins []*simpleOperation
	for range 300 {
		key := random.IntN(keys)
		switch random.IntN(6) {
		case 0, 1:
			o, twin := &probe{}, &simpleOperation{keys: map[int]bool{}}
			limit := time.Duration(random.IntN(4)) * time.Second
			if limit > 0 {
				twin.due = s.now + limit
			}
			var watched []int
			for k := range keys {
				if random.IntN(3) == 0 {
					watched, twin.keys[k] = append(watched, k), true
				}
			}
			if random.IntN(10) == 0 {
				o.open.Store(true)
				twin.outcome, twin.at, twin.open = Completed, s.now, true
			} else {
				s.waiting = append(s.waiting, twin)
			}
			probes, twins = append(probes, o), append(twins, twin)
			require.Equal(t, twin.open, p.TryCompleteElseWatch(o.operation(limit), watched...))
		case 2:
			if len(probes) > 0 {
				i := random.IntN(len(probes))
				probes[i].open.Store(true)
				twins[i].open = true
			}
		case 3:
			require.Equal(t, s.check(key), p.CheckAndComplete(key))
		case 4:
			p.Signal(key)
			synctest.Wait()
			s.check(key)
		case 5:
			if random.IntN(4) == 0 {
				require.Equal(t, s.cancel(key), p.Cancel(key))
				continue
			}
			d := time.Duration(random.IntN(1500)) * time.Millisecond
			time.Sleep(d)
			synctest.Wait()
			s.sleep(d)
		}
		require.Equal(t, len(s.waiting), p.Pending())
	}
	for i := range probes {
		require.Equal(t, twins[i].outcome, probes[i].ended())
		require.Zero(t, probes[i].faults.Load())
		if twins[i].outcome != "" {
			require.Equal(t, twins[i].at, probes[i].began.Add(probes[i].took).Sub(start()))
		}
	}
	p.Close()
	requireEmpty(t, p)
}

// start is the time at which the clock of every bubble begins.
func start() time.Time { return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) }

// TestEachOperationEndsExactlyOnce lets everything happen at once: adding, events, signals, cancels and expiry. What became ready and was signalled
// must have completed, if nothing else may have ended it.
func TestEachOperationEndsExactlyOnce(t *testing.T) {
	t.Parallel()
	const keys, adders = 8, 4
	each := 500
	if testkit.Long() {
		each = 10_000 // each event looks at all that wait: what this takes grows with the square
	}
	p := newPurgatory()
	probes := make([][]probe, adders)
	var added [adders]atomic.Int64 // how many of each row may be looked at
	var wg, meddlers sync.WaitGroup
	for a := range adders {
		probes[a] = make([]probe, each)
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(a), 1))
			for i := range each {
				limit := time.Duration(0) // every second one: no end but by an event
				if i%2 == 1 {
					limit = time.Duration(1 + random.IntN(int(5*time.Millisecond)))
				}
				added[a].Store(int64(i + 1)) // may be opened before it is added, while, and after
				p.TryCompleteElseWatch(probes[a][i].operation(limit), keys+i%2, random.IntN(keys))
			}
		})
		wg.Go(func() { // opens each of a row in turn, and says so in one of two ways
			for i := 0; i < each; {
				if int64(i) >= added[a].Load() {
					runtime.Gosched()
					continue
				}
				probes[a][i].open.Store(true)
				if i%3 == 0 {
					p.CheckAndComplete(keys + i%2)
				} else {
					p.Signal(keys + i%2)
				}
				i++
			}
		})
	}
	stop := make(chan struct{})
	meddlers.Go(func() { // ends some that may be ended: those with a limit alone watch the key
		for {
			select {
			case <-stop:
				return
			default:
				p.Cancel(keys + 1)
				runtime.Gosched()
			}
		}
	})
	wg.Wait()
	deadline := time.Now().Add(20 * time.Second)
	for p.Pending() > 0 && time.Now().Before(deadline) {
		<-time.After(time.Millisecond)
	}
	close(stop)
	meddlers.Wait()
	require.Zero(t, p.Pending(), "what was ready and signalled waits for ever: a lost event")
	p.Close()
	counts := map[Outcome]int{}
	for a := range probes {
		for i := range probes[a] {
			o := &probes[a][i]
			counts[o.ended()]++
			require.Zero(t, o.faults.Load())
			if i%2 == 0 {
				require.Equal(t, Completed, o.ended())
			}
		}
	}
	t.Log(counts)
	require.Zero(t, counts[""])
	requireEmpty(t, p)
}
