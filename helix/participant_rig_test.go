package helix

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

// model is a handler that keeps what it is told and insists on the rules.
type model struct {
	t *testing.T
	// hook, if set, is asked within each transition.
	hook func(ctx context.Context, tr Transition) error

	mu        sync.Mutex
	states    map[Partition]State // guarded by mu; what is really so
	busy      map[Partition]bool  // guarded by mu
	log       []Transition        // guarded by mu; begun, in order
	resets    [][]Partition       // guarded by mu
	suspended int                 // guarded by mu
	resumed   int                 // guarded by mu
}

func newModel(t *testing.T) *model {
	t.Helper()
	return &model{t: t, states: map[Partition]State{}, busy: map[Partition]bool{}}
}

func (m *model) Transition(ctx context.Context, tr Transition) error {
	m.mu.Lock()
	now := m.states[tr.Partition]
	if now == "" {
		now = Offline
	}
	if m.busy[tr.Partition] || now != tr.From {
		m.t.Errorf("%s told to go from %s to %s while busy %t in %s", tr.Partition, tr.From, tr.To, m.busy[tr.Partition], now)
	}
	m.busy[tr.Partition] = true
	m.log = append(m.log, tr)
	m.mu.Unlock()
	var err error
	if m.hook != nil {
		err = m.hook(ctx, tr)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.busy[tr.Partition] = false
	switch {
	case err != nil:
		m.states[tr.Partition] = Error
	case tr.To == Dropped:
		delete(m.states, tr.Partition)
	default:
		m.states[tr.Partition] = tr.To
	}
	return err
}

func (m *model) Reset(_ context.Context, partitions []Partition) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range partitions {
		if m.busy[p] {
			m.t.Errorf("%s reset in the middle of a transition", p)
		}
		m.states[p] = Offline
	}
	m.resets = append(m.resets, partitions)
}

func (m *model) Suspend() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.suspended++
}

func (m *model) Resume() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.resumed++
}

func (m *model) transitions() []Transition {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.log)
}

func (m *model) suspensions() (suspended, resumed int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.suspended, m.resumed
}

func (m *model) resetCount() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.resets)
}

// member is a running participant of a test.
type member struct {
	*rig

	name  string
	model *model
	p     *Participant
	stop  func() error // ends Run and gives its error; may be called again
	done  chan struct{}
}

// prepare makes a participant that joins through the rig's proxy, and does not start it.
func (r *rig) prepare(name string, change ...func(*ParticipantConfig, *ParticipantDeps)) *member {
	r.t.Helper()
	m := &member{rig: r, name: name, model: newModel(r.t), done: make(chan struct{})}
	cfg := DefaultParticipantConfig()
	cfg.Config, cfg.Instance, cfg.TakeoverGrace = r.through(), name, 500*time.Millisecond
	cfg.SessionTimeout, cfg.RetryLeast = 6*time.Second, 0
	deps := ParticipantDeps{Handler: m.model, Log: testLog(r.t), Registerer: prometheus.NewRegistry()}
	for _, c := range change {
		c(&cfg, &deps)
	}
	require.NoError(r.t, cfg.Validate())
	m.p = NewParticipant(cfg, deps)
	return m
}

// run starts Run and leaves it running.
func (m *member) run() {
	ctx, cancel := context.WithCancel(m.t.Context())
	var err error
	go func() {
		defer close(m.done)
		err = m.p.Run(ctx)
	}()
	m.stop = func() error {
		cancel()
		<-m.done
		return err
	}
	m.t.Cleanup(func() { _ = m.stop() })
}

// join starts a participant and waits until it is a member.
func (r *rig) join(name string, change ...func(*ParticipantConfig, *ParticipantDeps)) *member {
	r.t.Helper()
	m := r.prepare(name, change...)
	m.run()
	m.awaitMember("")
	return m
}

// awaitMember waits until the instance is a member in another session than that one.
func (m *member) awaitMember(former string) {
	m.t.Helper()
	eventually(m.t, func() error {
		s := m.p.Session()
		if s == nil || s.ID() == former {
			return fmt.Errorf("%s is no member", m.name)
		}
		return nil
	})
}

// send puts a transition into the member's queue as a controller would.
func (m *member) send(resource string, from, to State, partitions ...string) *Message {
	m.t.Helper()
	msg := newTransition(Message{Source: "test", Target: m.name, TargetSession: m.p.Session().ID(), Resource: resource, From: from, To: to, Created: time.Now()}, partitions...)
	m.post(msg)
	return msg
}

func (m *member) post(messages ...*Message) {
	m.t.Helper()
	var ops []Op
	for _, msg := range messages {
		data, err := msg.record().Encode()
		require.NoError(m.t, err)
		ops = append(ops, CreateOp(m.cfg.Cluster.message(m.name, msg.ID), data))
	}
	for _, chunk := range Chunks(ops, opsPerCommit) {
		require.NoError(m.t, m.session().Multi(m.t.Context(), chunk...))
	}
}

// messages lists the queue.
func (m *member) queue() []string {
	m.t.Helper()
	names, err := m.session().Children(m.t.Context(), m.cfg.Cluster.messages(m.name), nil)
	require.NoError(m.t, err)
	return names
}

// idle waits until the queue is empty.
func (m *member) idle() {
	m.t.Helper()
	eventually(m.t, func() error {
		if queue := m.queue(); len(queue) > 0 {
			return fmt.Errorf("%d messages wait", len(queue))
		}
		return nil
	})
}

// reported is what the member's current states say.
func (m *member) reported(resource string) map[string]State {
	m.t.Helper()
	states, err := m.admin.CurrentStates(m.t.Context(), m.name, resource)
	require.NoError(m.t, err)
	return states
}

// bring sends a transition and waits until it is done with.
func (m *member) bring(resource string, from, to State, partitions ...string) {
	m.t.Helper()
	for _, p := range partitions {
		m.send(resource, from, to, p)
	}
	m.idle()
}

// all gives partition → state.
func all(n int, state State) map[string]State {
	states := map[string]State{}
	for i := range n {
		states[strconv.Itoa(i)] = state
	}
	return states
}

func numbers(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = strconv.Itoa(i)
	}
	return names
}
