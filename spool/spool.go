package spool

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/internal/slab"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/spill"
)

// Config is where lines spill to and when.
type Config struct {
	Spill spill.Config
	Retry time.Duration // after which a source or a disk that failed is tried again
}

// Deps are what a Spool needs of others.
type Deps struct {
	Events     *events.Log
	Pool       *slab.Pool // what is read from disk is counted against its budget
	Log        hclog.Logger
	Registerer prometheus.Registerer
	Route      string // label of all metrics
}

// Spool is the lines of one route on one worker.
type Spool struct {
	cfg   Config
	deps  Deps
	store *spill.Store
	wake  chan struct{}
	every time.Duration // between looks at all lines

	mu      sync.Mutex // guards what follows and the lines' turn; a leaf: nothing is called while it is held
	lines   map[route.Partition]*Line
	pending []*Line
	full    bool // the disk has no room, and an event told so
}

// workers do the lines' IO: enough that one partition's slow file holds up no other for long.
const workers = 4

// lookEvery is how often lines are looked at for what nothing tells: a target that has taken nothing for a while, a checkpoint that was stored.
const lookEvery = 250 * time.Millisecond

// Open opens the folder. It fails if another process uses it. Run must be called once, and Close after it.
func Open(cfg Config, d Deps) (*Spool, error) {
	s := &Spool{cfg: cfg, deps: d, wake: make(chan struct{}, workers), every: lookEvery, lines: map[route.Partition]*Line{}}
	disk := cfg.Spill
	disk.Limits.MemoryCapacity = 0  // a lane is the memory, and what it holds is patched
	disk.Limits.OverflowTimeout = 0 // was waited for by the line
	if most := disk.MaxBytes / segmentsLeast; disk.SegmentBytes > most {
		disk.SegmentBytes = max(most, 1) // space comes back by whole files
	}
	var err error
	s.store, err = spill.Open(disk, spill.Deps{
		Registerer: d.Registerer, Route: d.Route, Notify: s.tell, Settle: s.settle,
		Alloc: func(n int) ([]byte, spill.Holder) {
			held := d.Pool.Get(n, 0)
			b := held.Bytes()
			return b, held
		},
	})
	if err != nil {
		return nil, fmt.Errorf("open spill folder: %w", err)
	}
	return s, nil
}

// segmentsLeast is how many files the space is for at least.
const segmentsLeast = 16

// Run works until ctx ends.
func (s *Spool) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.store.Run(ctx) })
	for range workers {
		g.Go(func() error { s.work(ctx); return nil })
	}
	g.Go(func() error { s.look(ctx); return nil })
	return g.Wait()
}

// Close closes what lines are left and the folder. What is on disk stays there.
func (s *Spool) Close() error {
	var faults []error
	for _, l := range s.list() {
		faults = append(faults, l.Close())
	}
	return errors.Join(append(faults, s.store.Close())...)
}

// look has each line looked after from time to time.
func (s *Spool) look(ctx context.Context) {
	tick := time.NewTicker(s.every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		for _, l := range s.list() {
			s.enqueue(l)
		}
	}
}

// work takes one line after the other. No line is with two workers at once.
func (s *Spool) work(ctx context.Context) {
	for ctx.Err() == nil {
		s.mu.Lock()
		if len(s.pending) == 0 {
			s.mu.Unlock()
			select {
			case <-s.wake:
			case <-ctx.Done():
			}
			continue
		}
		l := s.pending[0]
		s.pending = s.pending[1:]
		l.turn = running
		s.mu.Unlock()
		l.step(ctx)
		s.mu.Lock()
		again := l.turn == runningAgain
		l.turn = idle
		s.mu.Unlock()
		if again {
			s.enqueue(l)
		}
	}
}

// turn is where a line stands with the workers.
type turn int8

const (
	idle turn = iota
	queued
	running
	runningAgain
)

// enqueue has a line looked after soon. It neither blocks nor calls anything.
func (s *Spool) enqueue(l *Line) {
	s.mu.Lock()
	switch l.turn {
	case idle:
		l.turn = queued
		s.pending = append(s.pending, l)
	case running:
		l.turn = runningAgain
	case queued, runningAgain:
	}
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *Spool) list() []*Line {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*Line, 0, len(s.lines))
	for _, l := range s.lines {
		all = append(all, l)
	}
	return all
}

// settle stores the checkpoint of a partition that begins to spill.
func (s *Spool) settle(ctx context.Context, p route.Partition, at route.Offset) error {
	s.mu.Lock()
	l := s.lines[p]
	s.mu.Unlock()
	if l == nil {
		return nil
	}
	return l.settle(ctx, at)
}

// room tells of a disk that is full, once, until something was written again.
func (s *Spool) room(full bool, why string) {
	s.mu.Lock()
	changed := s.full != full
	s.full = full
	s.mu.Unlock()
	if changed && full {
		s.deps.Events.Emit(events.Event{
			Type: events.DiskFull, Severity: events.Warning, Reason: why,
			Message: "there is no more room to spill to: partitions whose target takes nothing are not read on",
		})
	}
}

// admitWait is how long a worker waits for memory. It must not be long: what the others wait to write holds memory, too.
const admitWait = 20 * time.Millisecond

// admit says whether there is memory for what a lane is to be given. If not, the line's turn comes again.
func (s *Spool) admit(ctx context.Context, bytes int64) bool {
	ctx, cancel := context.WithTimeout(ctx, admitWait)
	defer cancel()
	budget := s.deps.Pool.Budget()
	if budget.Reserve(ctx, bytes) != nil {
		return false
	}
	budget.Return(bytes) // what is read takes it
	return true
}

// tell raises what the queues tell.
func (s *Spool) tell(n spill.Notice) {
	var e events.Event
	switch n.Kind {
	case spill.Started:
		e = events.Of(n.Partition, events.SpillStarted, events.Warning, "the target takes nothing: what is fetched goes to disk")
	case spill.Drained:
		e = events.Of(n.Partition, events.SpillDrained, events.Info, "everything that was on disk is on the target")
	case spill.SetAside:
		e = events.Of(n.Partition, events.SpillSetAside, events.Error, "what is on disk can't be gone on with, and was moved to "+n.Path)
	case spill.Corrupt:
		e = events.Of(n.Partition, events.SpillCorrupt, events.Error, "what is on disk is damaged, and is fetched again: "+n.Path)
	}
	first, next := n.First, n.Next
	if first < 0 {
		first = next
	}
	last := first
	if next > first {
		last = next - 1
	}
	if n.Reason != "" {
		e = e.Because(n.Reason)
	}
	s.deps.Events.Emit(e.Range(first, last))
}
