package controller

import (
	"context"
	"sync"
	"time"

	"github.com/causeway-mirror/causeway/route"
)

// Bounds of the time between two resets of a partition that a worker reports as ERROR.
const (
	firstReset = time.Second
	lastReset  = time.Minute
)

// repairs remembers how often partitions in ERROR were reset.
type repairs struct {
	mu    sync.Mutex
	tries map[route.Partition]*reset
}

type reset struct {
	worker string
	times  int
	next   time.Time
}

func newRepairs() *repairs { return &repairs{tries: map[route.Partition]*reset{}} }

// repair resets partitions that live workers report as ERROR, less and less often, and says when to look again. A worker leaves ERROR by
// itself too; the reset is for those that do not.
func (t *Term) repair(ctx context.Context, s *State) time.Duration {
	now := time.Now()
	failed := map[route.Partition]string{}
	for topic, view := range s.Views {
		for p, worker := range inState(view, topic, Failed) {
			if s.Workers[worker].Live {
				failed[p] = worker
			}
		}
	}
	due, wait := t.repairs.due(failed, now)
	for _, p := range due {
		if err := t.cluster.Reset(ctx, failed[p], p); err != nil {
			t.deps.Log.Warn("a partition in ERROR could not be reset", "partition", p, "worker", failed[p], "error", err)
			continue
		}
		t.deps.Log.Warn("a partition in ERROR was reset", "partition", p, "worker", failed[p])
	}
	return wait
}

// due gives the partitions to reset now and the time until the next one.
func (r *repairs) due(failed map[route.Partition]string, now time.Time) ([]route.Partition, time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for p, try := range r.tries {
		// One that has just been reset is not in ERROR for a moment; what counts is that it stays out of it.
		if _, ok := failed[p]; !ok && now.Sub(try.next) > lastReset {
			delete(r.tries, p)
		}
	}
	wait := time.Hour
	var out []route.Partition
	for p, worker := range failed {
		try := r.tries[p]
		if try == nil || try.worker != worker {
			try = &reset{worker: worker, next: now.Add(firstReset)}
			r.tries[p] = try
		}
		if !now.Before(try.next) {
			out = append(out, p)
			try.times++
			try.next = now.Add(min(lastReset, firstReset<<min(try.times, 10)))
		}
		wait = min(wait, try.next.Sub(now))
	}
	return out, wait
}
