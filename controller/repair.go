package controller

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/causeway-mirror/causeway/helix"
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

// repairAll resets partitions that live workers report as ERROR, less and less often, until ctx ends. A worker leaves ERROR by itself too; the
// reset is for those that do not. It is a job of its own, since each reset reads a worker's whole queue: no take-over waits for it.
func (t *Term) repairAll(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		changed := t.cluster.Changed()
		timer.Reset(t.repair(ctx, t.cluster.State()))
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-timer.C:
		}
	}
}

// repair resets what is due and says when to look again.
func (t *Term) repair(ctx context.Context, s *State) time.Duration {
	failed := map[route.Partition]string{}
	for topic := range s.Topics {
		for p, worker := range inState(s.Views[topic], topic, Failed) {
			if s.Workers[worker].Live {
				failed[p] = worker
			}
		}
	}
	due, wait := t.repairs.due(failed, time.Now())
	type share struct{ worker, topic string }
	shares := map[share][]int32{}
	for _, p := range due {
		at := share{failed[p], p.Topic}
		shares[at] = append(shares[at], p.Partition)
	}
	for at, partitions := range shares {
		if ctx.Err() != nil {
			return wait
		}
		slices.Sort(partitions)
		t.reset(ctx, at.worker, at.topic, partitions)
	}
	return wait
}

// reset resets partitions of a topic together, or, if that is refused, one by one: some are out of ERROR by then.
func (t *Term) reset(ctx context.Context, worker, topic string, partitions []int32) {
	err := t.cluster.Reset(ctx, worker, topic, partitions...)
	switch {
	case err == nil:
		t.deps.Log.Warn("partitions in ERROR were reset", "topic", topic, "partitions", partitions, "worker", worker)
	case errors.Is(err, helix.ErrRefused) && len(partitions) > 1:
		for _, p := range partitions {
			t.reset(ctx, worker, topic, []int32{p})
		}
	case ctx.Err() == nil:
		t.deps.Log.Warn("partitions in ERROR could not be reset", "topic", topic, "partitions", partitions, "worker", worker, "error", err)
	}
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
