package helix_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/helix"
	"github.com/causeway-mirror/causeway/test/helix/peers"
)

// script is what a participant of ours does when it is told to change a state, and what it did.
type script struct {
	mu    sync.Mutex
	fails map[string]bool          // guarded by mu; by "partition from-to"
	gates map[string]chan struct{} // guarded by mu; closed when the transition may go on
	lines []string                 // guarded by mu; "begin 0 OFFLINE-ONLINE", "end …", "failed …", in the order in which it happened
}

func newScript() *script { return &script{fails: map[string]bool{}, gates: map[string]chan struct{}{}} }

// run is one transition.
func (s *script) run(ctx context.Context, partition, from, to string) error {
	key := partition + " " + from + "-" + to
	s.mu.Lock()
	s.lines = append(s.lines, "begin "+key)
	gate := s.gates[key]
	s.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails[key] {
		s.lines = append(s.lines, "failed "+key)
		return errors.New("told to fail")
	}
	s.lines = append(s.lines, "end "+key)
	return nil
}

// hold lets a transition of one partition wait until succeed or fail is called for it.
func (s *script) hold(partition, from, to string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gates[partition+" "+from+"-"+to] = make(chan struct{})
}

// fail lets a transition of one partition fail.
func (s *script) fail(partition, from, to string) { s.set(partition+" "+from+"-"+to, true) }

// succeed ends what hold or fail began.
func (s *script) succeed(partition, from, to string) { s.set(partition+" "+from+"-"+to, false) }

func (s *script) set(key string, fails bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails[key] = fails
	if gate := s.gates[key]; gate != nil {
		close(gate)
		delete(s.gates, key)
	}
}

// note adds a line to the log.
func (s *script) note(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, line)
}

// log is what happened so far.
func (s *script) log() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.lines)
}

// ran is the transitions of one partition that were begun, like "OFFLINE-ONLINE".
func (s *script) ran(partition string) []string {
	var ran []string
	for _, line := range s.log() {
		if rest, ok := strings.CutPrefix(line, "begin "+partition+" "); ok {
			ran = append(ran, rest)
		}
	}
	return ran
}

// Transition is the handler's.
func (s *script) Transition(ctx context.Context, t helix.Transition) error {
	return s.run(ctx, t.Name, string(t.From), string(t.To))
}

// Reset is the handler's.
func (s *script) Reset(_ context.Context, partitions []helix.Partition) {
	for _, p := range partitions {
		s.note("reset " + p.Name)
	}
}

// Suspend is the handler's.
func (*script) Suspend() {}

// Resume is the handler's.
func (*script) Resume() {}

// worker is a participant of ours.
type worker struct {
	*script

	l      *lab
	cancel context.CancelFunc
	done   chan error // closed after the error of Run
}

// worker lets an instance of ours join the cluster, and leave it at the end of the test.
func (l *lab) worker(instance string) *worker {
	l.Helper()
	return l.workerVia(l.addr, instance, 20*time.Second)
}

// workerVia is worker for another way to ZooKeeper and another session timeout.
func (l *lab) workerVia(addr, instance string, session time.Duration) *worker {
	l.Helper()
	cfg := helix.DefaultParticipantConfig()
	cfg.Config, cfg.Instance, cfg.RetryLeast = l.config(addr, session), instance, 0 // who resets what, is for the tests to say
	require.NoError(l, cfg.Validate())
	w := &worker{script: newScript(), l: l, done: make(chan error, 1)}
	p := helix.NewParticipant(cfg, helix.ParticipantDeps{Handler: w.script, Log: hclog.NewNullLogger(), Registerer: prometheus.NewRegistry()})
	ctx, cancel := context.WithCancel(context.WithoutCancel(l.Context()))
	w.cancel = cancel
	go func() {
		w.done <- p.Run(ctx)
		close(w.done)
	}()
	l.Cleanup(w.stop)
	l.Cleanup(func() {
		if l.Failed() {
			l.Logf("%s of ours: %q", instance, w.log())
		}
	})
	wait(l.T, true, func() bool { return p.Session() != nil }, "our participant joins")
	return w
}

// stop ends the participant, as a process does that is told to. It may be called again.
func (w *worker) stop() {
	w.l.Helper()
	w.cancel()
	require.NoError(w.l, <-w.done)
}

// until waits for a line in the log.
func (w *worker) until(line string) {
	w.l.Helper()
	wait(w.l.T, true, func() bool { return slices.Contains(w.log(), line) }, line)
}

// happened is a Java participant's log in the same form.
func happened(p *peers.Participant) []string {
	var lines []string
	for _, tr := range p.Transitions() {
		lines = append(lines, tr.Phase+" "+tr.Partition+" "+tr.From+"-"+tr.To)
	}
	return lines
}
