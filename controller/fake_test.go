package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/helix"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/operator"
	"github.com/causeway-mirror/causeway/route"
)

// fakeCluster keeps ideal states in memory; its live workers do at once what these say. It elects whoever asks.
type fakeCluster struct {
	mu      sync.Mutex
	state   *State
	changed chan struct{}
	writes  int    // topics written, creations included
	rival   func() // called once before the next write, as another writer that is faster
	resets  []route.Partition
	calls   int                      // of Reset
	hold    chan struct{}            // if set, Reset waits until it is closed
	refused bool                     // by Reset: nothing is in ERROR any more
	failing map[route.Partition]bool // partitions that workers report as ERROR
	orders  map[route.Partition]operator.Command
}

func newFakeCluster(workers ...string) *fakeCluster {
	c := &fakeCluster{changed: make(chan struct{}), failing: map[route.Partition]bool{}, orders: map[route.Partition]operator.Command{}, state: &State{
		Topics: map[string]Topic{}, Workers: map[string]Worker{}, Views: map[string]Assignment{}, Balancing: true,
		Excluded: map[string]bool{}, Pins: map[route.Partition]string{}, Settings: map[string]operator.Topic{},
	}}
	for _, id := range workers {
		c.live(id, true)
	}
	return c
}

// edit changes a copy of the state.
func (c *fakeCluster) edit(change func(s *State)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := *c.state
	s.Topics, s.Workers, s.Excluded, s.Pins = maps.Clone(s.Topics), maps.Clone(s.Workers), maps.Clone(s.Excluded), maps.Clone(s.Pins)
	s.Settings = maps.Clone(s.Settings)
	change(&s)
	s.Views = map[string]Assignment{}
	for name, topic := range s.Topics {
		view := Assignment{}
		for p, workers := range topic.Assigned {
			for id, state := range workers {
				if !s.Workers[id].Live {
					continue
				}
				if c.failing[route.Partition{Topic: name, Partition: p}] {
					state = Failed
				}
				view[p] = map[string]string{id: state}
			}
		}
		s.Views[name] = view
	}
	c.state = &s
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *fakeCluster) live(id string, on bool) {
	c.edit(func(s *State) {
		w := s.Workers[id]
		w.ID, w.Live = id, on
		s.Workers[id] = w
	})
}

func (c *fakeCluster) State() *State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

func (c *fakeCluster) Changed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

// overtake lets the rival write.
func (c *fakeCluster) overtake() {
	c.mu.Lock()
	rival := c.rival
	c.rival = nil
	c.mu.Unlock()
	if rival != nil {
		rival()
	}
}

func (c *fakeCluster) Create(_ context.Context, topics ...Topic) error {
	c.overtake()
	for _, topic := range topics {
		if _, ok := c.State().Topics[topic.Name]; ok {
			return &ExistsError{Topic: topic.Name}
		}
		c.edit(func(s *State) { c.writes++; s.Topics[topic.Name] = topic.Clone() })
	}
	return nil
}

func (c *fakeCluster) Write(_ context.Context, topics []Topic) error {
	c.overtake()
	for _, topic := range topics {
		was, ok := c.State().Topics[topic.Name]
		if !ok || was.Version != topic.Version {
			return ErrConflict
		}
		topic = topic.Clone()
		topic.Version++
		c.edit(func(s *State) { c.writes++; s.Topics[topic.Name] = topic })
	}
	return nil
}

func (c *fakeCluster) Drop(_ context.Context, topic string) error {
	c.edit(func(s *State) { delete(s.Topics, topic); delete(s.Settings, topic) })
	return nil
}

func (c *fakeCluster) Drain(_ context.Context, worker string, on bool) error {
	w, ok := c.State().Workers[worker]
	if !ok {
		return &NotFoundError{What: "worker", Name: worker}
	}
	w.Draining = on
	c.edit(func(s *State) { s.Workers[worker] = w })
	return nil
}

func (c *fakeCluster) SetBalancing(_ context.Context, on bool) error {
	c.edit(func(s *State) { s.Balancing = on })
	return nil
}

func (c *fakeCluster) Exclude(_ context.Context, topic string, on bool) error {
	c.edit(func(s *State) {
		delete(s.Excluded, topic)
		if on {
			s.Excluded[topic] = true
		}
	})
	return nil
}

func (c *fakeCluster) Pin(_ context.Context, p route.Partition, worker string) error {
	c.edit(func(s *State) {
		delete(s.Pins, p)
		if worker != "" {
			s.Pins[p] = worker
		}
	})
	return nil
}

func (c *fakeCluster) Configure(_ context.Context, topic string, change func(*operator.Topic)) error {
	c.edit(func(s *State) {
		now := s.Settings[topic].Clone()
		change(&now)
		s.Settings[topic] = now
	})
	return nil
}

func (c *fakeCluster) Command(_ context.Context, p route.Partition, command operator.Command) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.orders[p] = command
	return nil
}

// ordered is the last command for a partition.
func (c *fakeCluster) ordered(p route.Partition) (operator.Command, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	command, ok := c.orders[p]
	return command, ok
}

func (c *fakeCluster) Reset(_ context.Context, _, topic string, partitions ...int32) error {
	c.mu.Lock()
	hold := c.hold
	c.mu.Unlock()
	if hold != nil {
		<-hold
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
	if c.refused {
		return fmt.Errorf("reset: %w: not in state ERROR", helix.ErrRefused)
	}
	for _, p := range partitions {
		c.resets = append(c.resets, route.Partition{Topic: topic, Partition: p})
	}
	return nil
}

func (c *fakeCluster) Campaign(ctx context.Context, lead func(ctx context.Context, c Cluster) error) error {
	return lead(ctx, c)
}

func (*fakeCluster) Leader(context.Context) (Leader, error) {
	return Leader{ID: "c1", Address: "http://c1"}, nil
}

// written counts the topics that were written.
func (c *fakeCluster) written() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writes
}

// reset lists the partitions that were reset, in order.
func (c *fakeCluster) reset() []route.Partition {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.resets)
}

func (c *fakeCluster) resetCalls() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls
}

// fakeWorkload is what workers tell of their load.
type fakeWorkload struct {
	mu    sync.Mutex
	rates map[route.Partition]Rate
	err   error
}

func (w *fakeWorkload) Rates(context.Context) (map[route.Partition]Rate, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.rates), w.err
}

// leave lets topics with a prefix go untold.
func (w *fakeWorkload) leave(prefix string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.rates, func(p route.Partition, _ Rate) bool { return strings.HasPrefix(p.Topic, prefix) })
}

func (w *fakeWorkload) set(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rates, w.err = nil, err
}

// fakePulse is which workers answer: those that are asked do not, once they are silent.
type fakePulse struct {
	mu      sync.Mutex
	quiet   map[string]time.Time // not noticed before they are asked
	noticed map[string]time.Time
	spilled map[string][]route.Partition
}

func (p *fakePulse) Spilled() map[string][]route.Partition {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.spilled
}

func (p *fakePulse) spill(worker string, of ...route.Partition) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spilled = map[string][]route.Partition{worker: of}
}

func (p *fakePulse) Take(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.noticed = maps.Clone(p.quiet)
	return nil
}

func (p *fakePulse) Silent() map[string]time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.noticed
}

// silence lets workers answer no more; all others do again.
func (p *fakePulse) silence(ids ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.quiet = map[string]time.Time{}
	for _, id := range ids {
		p.quiet[id] = time.Now()
	}
}

// owners counts the partitions of each worker in the ideal states.
func (c *fakeCluster) owners() map[string]int {
	out := map[string]int{}
	s := c.State()
	for _, p := range s.partitions() {
		out[s.Topics[p.Topic].Owner(p.Partition)]++
	}
	return out
}

// fakeKafka is a cluster of topics with counts, and with ends of partitions.
type fakeKafka struct {
	mu     sync.Mutex
	counts map[string]int32
	ends   map[route.Partition]route.Offset
	err    error
	asked  int // topics that counts were given of
}

var errFake = errors.New("the cluster does not answer")

func (k *fakeKafka) Counts(_ context.Context, topics ...string) (map[string]int32, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err != nil {
		return nil, k.err
	}
	out := map[string]int32{}
	for name, n := range k.counts {
		if len(topics) == 0 {
			out[name] = n
		}
	}
	for _, name := range topics {
		if n, ok := k.counts[name]; ok {
			out[name] = n
		}
	}
	k.asked += len(out)
	return out, nil
}

func (k *fakeKafka) Ends(_ context.Context, parts []route.Partition) (map[route.Partition]route.Offset, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := map[route.Partition]route.Offset{}
	for _, p := range parts {
		if end, ok := k.ends[p]; ok {
			out[p] = end
		}
	}
	return out, k.err
}

// set changes the fake while it is in use.
func (k *fakeKafka) set(change func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	change()
}

// fakePositions are committed positions.
type fakePositions struct {
	mu    sync.Mutex
	at    map[route.Partition]route.Offset
	reads map[route.Partition]int
}

func (f *fakePositions) Load(_ context.Context, parts []route.Partition) (map[route.Partition]offsets.Checkpoint, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := map[route.Partition]offsets.Checkpoint{}
	for _, p := range parts {
		f.reads[p]++
		if at, ok := f.at[p]; ok {
			out[p] = offsets.Checkpoint{Partition: p, SourceOffset: at}
		}
	}
	return out, nil
}

// readsOf counts how often a position was read.
func (f *fakePositions) readsOf(p route.Partition) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reads[p]
}

func (f *fakePositions) set(p route.Partition, at route.Offset) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at[p] = at
}

// rig is a controller that leads.
type rig struct {
	*Controller

	cluster   *fakeCluster
	source    *fakeKafka
	target    *fakeKafka
	positions *fakePositions
	registry  *prometheus.Registry
	events    *events.Log
}

func newRig(t *testing.T, cfg Config, workers ...string) *rig {
	t.Helper()
	r := &rig{
		cluster: newFakeCluster(workers...), source: &fakeKafka{counts: map[string]int32{}, ends: map[route.Partition]route.Offset{}},
		target: &fakeKafka{counts: map[string]int32{}}, positions: &fakePositions{at: map[route.Partition]route.Offset{}, reads: map[route.Partition]int{}},
		registry: prometheus.NewRegistry(),
	}
	who := route.Route{Source: "a", Target: "b", ID: "1"}
	r.events = events.NewLog(who, "c1", 1000, hclog.NewNullLogger(), r.registry)
	var err error
	r.Controller, err = New(cfg, Deps{
		Log: hclog.NewNullLogger(), Registerer: r.registry, Route: who, ID: "c1", Coordinator: r.cluster,
		Source: r.source, Target: r.target, Positions: r.positions, Events: r.events,
	})
	require.NoError(t, err)
	return r
}

// lead runs the controller until the test ends and gives its term. In a bubble of synctest.
func (r *rig) lead(t *testing.T) *Term {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }() // owned by the test: its cleanup waits for it
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	return r.await(t)
}

func part(topic string, p int32) route.Partition { return route.Partition{Topic: topic, Partition: p} }
