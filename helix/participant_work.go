package helix

import (
	"context"
	"errors"
	"time"
)

// errNoStep: a message asks for a transition that the model does not have.
var errNoStep = errors.New("the state model has no such transition")

// job is one partition's transition.
type job struct {
	Transition

	unit      *unit
	broken    bool // there is no such transition
	started   bool // guarded by tenure.mu
	cancelled bool // guarded by tenure.mu; before it started
}

// unit is a message at work: its partitions are reported together, when the last has ended.
type unit struct {
	message *Message
	open    int      // guarded by tenure.mu; jobs that have not ended
	changes []change // guarded by tenure.mu
}

// change is what became of a partition.
type change struct {
	Transition

	reached      State
	info         string
	began, ended time.Time
}

// outcome is a message that is done with, and what it changed.
type outcome struct {
	message *Message
	changes []change
	// restate has the resource's states written again: the sender does not know them.
	restate bool
}

// beginLocked starts a goroutine for each partition of a message.
func (t *tenure) beginLocked(ctx context.Context, m *Message, d decision) {
	u := &unit{message: m, open: len(d.parts) + len(d.broken)}
	for i, p := range append(d.parts, d.broken...) {
		j := &job{Transition: Transition{Partition: p, From: m.From, To: m.To}, unit: u, broken: i >= len(d.parts)}
		t.jobs[p] = j
		t.work.Go(func() { t.do(ctx, j) })
	}
}

// do runs a job when there is room. What the end of the context interrupts stays in jobs, so that the handler is told to reset it.
func (t *tenure) do(ctx context.Context, j *job) {
	select {
	case t.slots <- struct{}{}:
	case <-ctx.Done():
		return
	}
	defer func() { <-t.slots }()
	if !t.start(j) {
		t.end(j, nil)
		return
	}
	c := change{Transition: j.Transition, reached: j.To, began: time.Now()}
	err := t.call(ctx, j)
	if ctx.Err() != nil {
		t.p.metrics.transitions.WithLabelValues(string(j.From), string(j.To), "forgotten").Inc()
		return
	}
	c.ended = time.Now()
	result := "ok"
	if err != nil {
		result, c.reached, c.info = "error", Error, shorten(err.Error())
		t.log.Error("transition failed", "resource", j.Resource, "partition", j.Name, "from", string(j.From), "to", string(j.To), "err", err)
	}
	t.p.metrics.transitions.WithLabelValues(string(j.From), string(j.To), result).Inc()
	t.end(j, &c)
}

// maxInfoBytes bounds the reason that a current state carries: there may be thousands in a znode.
const maxInfoBytes = 200

func shorten(text string) string { return text[:min(len(text), maxInfoBytes)] }

func (t *tenure) call(ctx context.Context, j *job) error {
	if j.broken { // whatever it is in now, it must not go on under the name of ERROR
		t.p.deps.Handler.Reset(ctx, []Partition{j.Partition})
		return errNoStep
	}
	if timeout := j.unit.message.Timeout; timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	return t.p.deps.Handler.Transition(ctx, j.Transition)
}

// start says whether the job may run; from then on it can't be taken back.
func (t *tenure) start(j *job) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	j.started = !j.cancelled
	return j.started
}

// end notes what became of a job; nil for one that was taken back.
func (t *tenure) end(j *job, c *change) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.jobs, j.Partition)
	if c != nil {
		j.unit.changes = append(j.unit.changes, *c)
		if t.states[j.Partition] = c.reached; c.reached == Dropped {
			delete(t.states, j.Partition)
		}
		t.judgeLocked(j.Partition, c)
	}
	if j.unit.open--; j.unit.open == 0 {
		t.finishLocked(outcome{message: j.unit.message, changes: j.unit.changes})
	}
}

// finishLocked hands an outcome to the reporting goroutine.
func (t *tenure) finishLocked(o outcome) {
	t.finished = append(t.finished, o)
	ring(t.ready)
}

// judgeLocked notes whether a partition has failed. OFFLINE says nothing: it is how ERROR is left.
func (t *tenure) judgeLocked(p Partition, c *change) {
	switch c.reached {
	case Online, Dropped:
		delete(t.failures, p)
	case Error:
		if t.p.cfg.RetryLeast == 0 {
			return
		}
		f := t.failures[p]
		if f == nil {
			f = &failure{}
			t.failures[p] = f
		}
		f.retryAt = c.ended.Add(t.p.cfg.retryPause(f.times))
		f.times++
		ring(t.fails)
	case Offline:
	}
}

// retry begins to bring those to OFFLINE that have been in ERROR for long enough, and says how long the next one has. No message asked for it, so
// none is deleted.
func (t *tenure) retry(ctx context.Context, now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	next := neverDue
	for p, f := range t.failures {
		if t.states[p] != Error || t.jobs[p] != nil {
			continue
		}
		if wait := f.retryAt.Sub(now); wait > 0 {
			next = min(next, wait)
			continue
		}
		t.log.Info("partition leaves the state ERROR", "resource", p.Resource, "partition", p.Name)
		t.beginLocked(ctx, &Message{Resource: p.Resource, Partitions: []string{p.Name}, From: Error, To: Offline}, decision{parts: []Partition{p}})
	}
	return next
}
