package purgatory

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Outcome is how an operation has ended.
type Outcome string

// The outcomes; the empty one means that it has not ended.
const (
	Completed Outcome = "completed" // Ready said so
	Expired   Outcome = "expired"   // its time was up, or the purgatory was closed
	Cancelled Outcome = "cancelled"
)

// Operation is something that is done as soon as it can be.
type Operation struct {
	// Limit is how long it waits; 0 = until something else ends it.
	Limit time.Duration
	// Ready says whether it can complete. It must only look: it may be asked at any time, as often as one likes, and must not block.
	Ready func() bool
	// Done is told the outcome. It must not block.
	Done func(Outcome)
}

// Purgatory holds operations that watch keys of one kind.
type Purgatory[K comparable] struct {
	metrics *metrics
	wake    chan struct{}  // to the owner of the timers
	owner   sync.WaitGroup // one goroutine, while owned
	pending atomic.Int64   // operations that wait; changed with mu held

	mu     sync.Mutex // guards what follows and all entries; a leaf: nothing is called while it is held
	lines  map[K]*line[K]
	timers timers[K] // of all operations
	fired  []K       // signalled, and not looked at yet
	owned  bool
	closed bool
}

// New returns an empty purgatory. It is called name in the metrics of a route.
func New[K comparable](name, route string, reg prometheus.Registerer) *Purgatory[K] {
	p := &Purgatory[K]{wake: make(chan struct{}, 1), lines: map[K]*line[K]{}}
	p.metrics = newMetrics(name, route, reg, func() float64 { return float64(p.pending.Load()) })
	return p
}

// entry is an operation that waits.
type entry[K comparable] struct {
	op      Operation
	watches []watch[K] // none when it waits no longer
	due     time.Time  // zero: never
	slot    int        // in the timers
	waiting bool
	asked   bool    // somebody is asking Ready, and will call Done if it has ended meanwhile
	again   bool    // something was signalled since Ready was asked
	verdict Outcome // reached while it was being asked
}

// TryCompleteElseWatch completes an operation at once if it is ready; if not, it waits for a signal of one of the keys. It says whether the operation
// has completed already. In a purgatory that was closed nothing waits: what is not ready expires.
func (p *Purgatory[K]) TryCompleteElseWatch(op Operation, keys ...K) bool {
	_, completed := p.add(op, keys)
	return completed
}

func (p *Purgatory[K]) add(op Operation, keys []K) (e *entry[K], completed bool) {
	e = &entry[K]{op: op}
	if op.Ready() {
		p.done(e, Completed)
		return e, true
	}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		p.done(e, Expired)
		return e, false
	}
	p.enterLocked(e, keys)
	p.mu.Unlock()
	// Once more: what was signalled before it stood in the lines has told nobody.
	return e, p.attempt(e)
}

// Wait waits until ready says so, for at most limit (0 = for ever) and no longer than ctx lasts, which counts as Cancelled.
func (p *Purgatory[K]) Wait(ctx context.Context, limit time.Duration, ready func() bool, keys ...K) Outcome {
	done := make(chan Outcome, 1)
	e, _ := p.add(Operation{Limit: limit, Ready: ready, Done: func(o Outcome) { done <- o }}, keys)
	select {
	case o := <-done:
		return o
	case <-ctx.Done():
		p.end(e, Cancelled)
		return <-done
	}
}

// Signal says that something has changed for a key: the purgatory's own goroutine asks the operations that watch it. It never blocks, costs little
// when nobody waits, and may be called with locks held that Ready takes.
func (p *Purgatory[K]) Signal(key K) {
	if p.pending.Load() == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.lines[key]; l != nil && !l.fired {
		l.fired = true
		p.fired = append(p.fired, key)
		p.wakeLocked()
	}
}

// CheckAndComplete asks the operations that watch a key, in the order in which they came, and returns how many this call has completed.
func (p *Purgatory[K]) CheckAndComplete(key K) (completed int) {
	for _, e := range p.watching(key) {
		if p.attempt(e) {
			completed++
		}
	}
	return completed
}

// Cancel ends the operations that watch a key and returns how many it has ended.
func (p *Purgatory[K]) Cancel(key K) (cancelled int) {
	for _, e := range p.watching(key) {
		if p.end(e, Cancelled) {
			cancelled++
		}
	}
	return cancelled
}

// Close lets all operations expire, and those that come later. It returns when the purgatory's goroutine has ended; it may be repeated.
func (p *Purgatory[K]) Close() {
	p.mu.Lock()
	p.closed = true
	all := append([]*entry[K](nil), p.timers...)
	p.wakeLocked()
	p.mu.Unlock()
	for _, e := range all {
		p.end(e, Expired)
	}
	p.owner.Wait()
}

// Pending is how many operations wait.
func (p *Purgatory[K]) Pending() int { return int(p.pending.Load()) }

// attempt asks an operation and says whether this call has completed it. If another one is asking, that one asks again.
func (p *Purgatory[K]) attempt(e *entry[K]) bool {
	p.mu.Lock()
	if e.asked {
		e.again = true
	}
	if e.asked || !e.waiting {
		p.mu.Unlock()
		return false
	}
	e.asked, e.again = true, true
	for e.again && e.waiting {
		e.again = false
		p.mu.Unlock()
		ready := e.op.Ready()
		p.mu.Lock()
		if ready && e.waiting {
			e.verdict = Completed
			p.leaveLocked(e)
		}
	}
	e.asked = false
	verdict := e.verdict
	p.mu.Unlock()
	if verdict != "" {
		p.done(e, verdict)
	}
	return verdict == Completed
}

// end ends an operation that waits, and says whether it did. If somebody is asking it, that one tells it.
func (p *Purgatory[K]) end(e *entry[K], o Outcome) bool {
	p.mu.Lock()
	if !e.waiting {
		p.mu.Unlock()
		return false
	}
	p.leaveLocked(e)
	if e.asked {
		e.verdict = o
		p.mu.Unlock()
		return true
	}
	p.mu.Unlock()
	p.done(e, o)
	return true
}

// done tells an operation its outcome. Who calls it is the only one to do so.
func (p *Purgatory[K]) done(e *entry[K], o Outcome) {
	p.metrics.count(o)
	e.op.Done(o)
}

// enterLocked puts an operation into the lines of its keys and among the timers.
func (p *Purgatory[K]) enterLocked(e *entry[K], keys []K) {
	e.waiting = true
	if e.op.Limit > 0 {
		e.due = time.Now().Add(e.op.Limit)
	}
	e.watches = make([]watch[K], len(keys))
	for i, key := range keys {
		l := p.lines[key]
		if l == nil {
			l = &line[K]{key: key}
			p.lines[key] = l
		}
		l.push(&e.watches[i], e)
	}
	first := p.timers.push(e)
	p.pending.Add(1)
	if !p.owned {
		p.owned = true
		p.owner.Go(p.own)
	} else if first {
		p.wakeLocked()
	}
}

// leaveLocked takes an operation that waits out again.
func (p *Purgatory[K]) leaveLocked(e *entry[K]) {
	e.waiting = false
	for i := range e.watches {
		w := &e.watches[i]
		w.line.remove(w)
		if w.line.first == nil {
			delete(p.lines, w.line.key)
		}
	}
	e.watches = nil
	p.timers.remove(e)
	if p.pending.Add(-1) == 0 {
		p.wakeLocked() // the owner of the timers ends
	}
}

func (p *Purgatory[K]) wakeLocked() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// watching lists the operations that watch a key.
func (p *Purgatory[K]) watching(key K) (found []*entry[K]) {
	if p.pending.Load() == 0 {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.lines[key]
	if l == nil {
		return nil
	}
	l.fired = false // whoever asks now sees what was signalled until now
	found = make([]*entry[K], 0, l.len)
	for w := l.first; w != nil; w = w.next {
		found = append(found, w.entry)
	}
	return found
}
