package helix

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
)

// lead is a controller that runs, and its terms.
type lead struct {
	*Controller
	reg   *prometheus.Registry
	terms chan *Term
	stop  func()
}

// controller starts a controller that ends with the test, or with stop.
func (r *rig) controller(name string, change ...func(*ControllerConfig)) *lead {
	r.t.Helper()
	cfg := DefaultControllerConfig()
	cfg.Config, cfg.Name, cfg.Debounce, cfg.ViewInterval = r.cfg, name, 2*time.Millisecond, 5*time.Millisecond
	for _, f := range change {
		f(&cfg)
	}
	require.NoError(r.t, cfg.Validate())
	l := &lead{reg: prometheus.NewRegistry(), terms: make(chan *Term, 100)}
	l.Controller = NewController(cfg, ControllerDeps{Log: testLog(r.t).Named(name), Registerer: l.reg, Lead: func(ctx context.Context, t *Term) error {
		l.terms <- t
		<-ctx.Done()
		return nil
	}})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	l.stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			require.NoError(r.t, err)
		case <-time.After(patience):
			require.Fail(r.t, "controller does not end")
		}
	})
	r.t.Cleanup(l.stop)
	return l
}

// term waits for the next term.
func (l *lead) term(t *testing.T) *Term {
	t.Helper()
	select {
	case term := <-l.terms:
		return term
	case <-time.After(patience):
		require.Fail(t, "not elected")
		return nil
	}
}

// stage is what participants of a test do together.
type stage struct {
	mu      sync.Mutex
	owners  map[Partition]map[string]bool // guarded by mu
	twice   []string                      // guarded by mu; partitions that had two owners
	happens []string                      // guarded by mu; transitions in order of their ends
}

func (s *stage) log() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.happens...)
}

// actor is a participant's handler that keeps book.
type actor struct {
	*stage

	name string
	act  func(context.Context, Transition) error // nil: at once
}

func (a *actor) Transition(ctx context.Context, t Transition) error {
	if a.act != nil {
		if err := a.act(ctx, t); err != nil {
			return err
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.happens = append(a.happens, fmt.Sprintf("%s %v %s>%s", a.name, t.Partition, t.From, t.To))
	a.ownLocked(t.Partition, t.To == Online)
	return nil
}

func (a *actor) ownLocked(p Partition, owns bool) {
	if a.owners[p] == nil {
		a.owners[p] = map[string]bool{}
	}
	delete(a.owners[p], a.name)
	if !owns {
		return
	}
	if a.owners[p][a.name] = true; len(a.owners[p]) > 1 {
		a.twice = append(a.twice, p.String())
	}
}

func (a *actor) Reset(_ context.Context, partitions []Partition) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range partitions {
		a.ownLocked(p, false)
	}
}

func (*actor) Suspend() {}
func (*actor) Resume()  {}

func newStage() *stage { return &stage{owners: map[Partition]map[string]bool{}} }

// enter starts a participant on the stage that ends with the test, or with the function that is returned.
func (r *rig) enter(s *stage, name string, act func(context.Context, Transition) error, change ...func(*ParticipantConfig)) (leave func()) {
	r.t.Helper()
	cfg := DefaultParticipantConfig()
	cfg.Config, cfg.Instance, cfg.RetryLeast = r.cfg, name, 0
	for _, f := range change {
		f(&cfg)
	}
	p := NewParticipant(cfg, ParticipantDeps{
		Handler: &actor{stage: s, name: name, act: act}, Log: testLog(r.t), Registerer: prometheus.NewRegistry(),
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	leave = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			require.NoError(r.t, err)
		case <-time.After(patience):
			require.Fail(r.t, "participant does not end")
		}
	})
	r.t.Cleanup(leave)
	return leave
}

// puppet is an instance that is alive and does nothing by itself.
type puppet struct {
	r       *rig
	name    string
	session *Session
}

func (r *rig) puppet(name string) *puppet {
	r.t.Helper()
	ctx := r.t.Context()
	if err := r.admin.AddInstance(ctx, newInstance(name)); err != nil {
		require.ErrorIs(r.t, err, ErrExists)
	}
	p := &puppet{r: r, name: name, session: r.open(r.cfg)}
	live := NewRecord(name)
	live.Simple[keySessionID], live.Simple[keyHelixVersion] = p.session.ID(), PublishedVersion
	require.NoError(r.t, p.session.CreateEphemeral(ctx, r.cfg.Cluster.liveInstance(name), encoded(r.t, live)))
	return p
}

func encoded(t *testing.T, r *Record) []byte {
	t.Helper()
	data, err := r.Encode()
	require.NoError(t, err)
	return data
}

// queue reads the puppet's messages.
func (p *puppet) queue() []*Message {
	p.r.t.Helper()
	ids, err := p.session.Children(p.r.t.Context(), p.r.cfg.Cluster.messages(p.name), nil)
	require.NoError(p.r.t, err)
	var all []*Message
	for _, id := range ids {
		record, _, err := p.session.GetRecord(p.r.t.Context(), p.r.cfg.Cluster.message(p.name, id), nil)
		if errors.Is(err, ErrNotFound) {
			continue // the controller has removed it
		}
		require.NoError(p.r.t, err)
		all = append(all, parseMessage(id, record))
	}
	return all
}

// awaitQueue waits until there are n messages.
func (p *puppet) awaitQueue(n int) []*Message {
	p.r.t.Helper()
	var all []*Message
	eventually(p.r.t, func() error {
		if all = p.queue(); len(all) != n {
			return fmt.Errorf("%d messages, want %d", len(all), n)
		}
		return nil
	})
	return all
}

// report writes what the puppet has of a resource.
func (p *puppet) report(resource string, states map[string]State) {
	p.r.t.Helper()
	record := NewRecord(resource)
	record.Simple[keySessionID], record.Simple[keyStateModel] = p.session.ID(), OnlineOffline
	for partition, state := range states {
		record.Map[partition] = map[string]string{keyCurrentState: string(state)}
	}
	require.NoError(p.r.t, p.session.Put(p.r.t.Context(), p.r.cfg.Cluster.currentState(p.name, p.session.ID(), resource), encoded(p.r.t, record)))
}

// finish removes a message.
func (p *puppet) finish(m *Message) {
	p.r.t.Helper()
	require.NoError(p.r.t, p.session.Delete(p.r.t.Context(), p.r.cfg.Cluster.message(p.name, m.ID), AnyVersion))
}

// add creates a resource whose partitions are assigned as given: instance of partition 0, 1, ….
func (r *rig) add(resource string, owners ...string) {
	r.t.Helper()
	is := NewIdealState(resource, len(owners), 1)
	for i, owner := range owners {
		is.Assign(strconv.Itoa(i), owner, Online)
	}
	require.NoError(r.t, r.admin.AddResource(r.t.Context(), is))
}

// assign changes a resource's assignment.
func (r *rig) assign(resource string, owners ...string) {
	r.t.Helper()
	require.NoError(r.t, r.admin.UpdateIdealState(r.t.Context(), resource, func(is *IdealState) error {
		clear(is.Record.Map)
		for i, owner := range owners {
			if owner != "" {
				is.Assign(strconv.Itoa(i), owner, Online)
			}
		}
		return nil
	}))
}

// view reads an external view: partition → instance → state; nil if there is none.
func (r *rig) view(resource string) map[string]map[string]string {
	r.t.Helper()
	record, _, err := r.session().GetRecord(r.t.Context(), r.cfg.Cluster.externalView(resource), nil)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	require.NoError(r.t, err)
	return record.Map
}

// awaitView waits until the view says who has partitions 0, 1, … ONLINE and nothing else.
func (r *rig) awaitView(resource string, owners ...string) {
	r.t.Helper()
	want := map[string]map[string]string{}
	for i, owner := range owners {
		if owner != "" {
			want[strconv.Itoa(i)] = map[string]string{owner: string(Online)}
		}
	}
	r.awaitStates(resource, want)
}

func (r *rig) awaitStates(resource string, want map[string]map[string]string) {
	r.t.Helper()
	eventually(r.t, func() error {
		got := r.view(resource)
		if fmt.Sprint(got) != fmt.Sprint(want) || (got == nil) != (want == nil) {
			return fmt.Errorf("view of %s is %v, want %v", resource, got, want)
		}
		return nil
	})
}

// quiet waits until nothing is in the queues of the instances.
func (r *rig) quiet(instances ...string) {
	r.t.Helper()
	eventually(r.t, func() error {
		for _, instance := range instances {
			ids, err := r.session().Children(r.t.Context(), r.cfg.Cluster.messages(instance), nil)
			if err != nil {
				return err
			}
			if len(ids) > 0 {
				return fmt.Errorf("%s has %d messages", instance, len(ids))
			}
		}
		return nil
	})
}

func (l *lead) count(t *testing.T, name string) float64 {
	t.Helper()
	families, err := l.reg.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() == name {
			m := f.GetMetric()[0]
			return m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	require.Fail(t, "no metric "+name)
	return 0
}

func TestControllerMetricsAreClean(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	newControllerMetrics(reg)
	faults, err := testutil.GatherAndLint(reg)
	require.NoError(t, err)
	require.Empty(t, faults)
}
