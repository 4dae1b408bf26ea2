package mirror

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/internal/slab"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

// Saver stores checkpoints; offsets.Store satisfies it. Those that another owner has overtaken are named by an *offsets.ConflictError, the
// others are stored.
type Saver interface {
	Save(ctx context.Context, checkpoints []offsets.Checkpoint) error
}

// Deps are what a Mirror needs of others.
type Deps struct {
	Saver      Saver
	Events     *events.Log
	Pool       *slab.Pool // rewritten batches are charged to its budget
	Log        hclog.Logger
	Registerer prometheus.Registerer
	Route      string // label of all metrics
	// Waiting counts the partitions that have no lane yet by state, for the metrics; nil: there are none.
	Waiting func() map[State]int
	// Moved is told whose acked position has moved on. It is called with the lane's lock held, so it must neither block nor call back into the lane;
	// nil: nobody wants to know.
	Moved  func(source route.Partition)
	Worker string // written into checkpoints
	Now    func() time.Time
	Jitter func(most time.Duration) time.Duration // a random time below most; nil: math/rand
}

// Mirror is all streams of one route on one worker.
type Mirror struct {
	streams []*Stream
	limits  *limits
	metrics *metrics
}

// New builds the streams. Run must be called once.
func New(cfg Config, deps Deps) *Mirror {
	if deps.Now == nil {
		deps.Now = time.Now
	}
	if deps.Jitter == nil {
		deps.Jitter = rand.N[time.Duration]
	}
	if deps.Moved == nil {
		deps.Moved = func(route.Partition) {}
	}
	m := &Mirror{limits: newLimits()}
	backlogs := &atomic.Int32{}
	m.metrics = newMetrics(deps.Registerer, deps.Route, m.Lanes, deps.Waiting)
	for range cfg.Streams {
		s := &Stream{
			cfg: cfg, deps: deps, now: deps.Now, metrics: m.metrics, wake: make(chan struct{}, 1), backlogs: backlogs, limits: m.limits,
			lanes: map[route.Partition]*Lane{}, restless: map[*Lane]struct{}{},
		}
		s.hand.budget = deps.Pool.Budget()
		m.streams = append(m.streams, s)
	}
	return m
}

// Run drives all streams until ctx ends or the store fails, which is the only failure that is the process's own.
func (m *Mirror) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, s := range m.streams {
		g.Go(func() error { return s.run(ctx) })
	}
	return g.Wait()
}

// Add starts a lane at a checkpoint that is in the store already.
func (m *Mirror) Add(plan Plan, at offsets.Checkpoint, wake Wakers) *Lane {
	s := m.stream(plan.Source)
	l := newLane(s, plan, at, wake)
	l.pos.note = plan.Left.note()
	m.metrics.begin(plan.Source.Topic, func(c *counts) {
		s.mu.Lock()
		defer s.mu.Unlock()
		l.counts = c
		s.lanes[plan.Source] = l
		s.restless[l] = struct{}{}
		switch plan.Left.Cause {
		case LeftOut:
			m.metrics.skipped.WithLabelValues(plan.Source.Topic, plan.Left.Kind).Inc()
		case Gone:
			c.truncated.Add(float64(plan.Left.Lost))
		case Recreated, Uncounted, Parted, Again, Lost, Resent: // nothing is left out
		}
	})
	l.pace(m.limits) // with the lane among the others, so that a limit which is set now reaches it too
	return l
}

// Close stops sending and fetching for a lane; Drain waits for what is unanswered.
func (*Mirror) Close(l *Lane) { l.close() }

// Drain stops sending and fetching for a lane, waits until nothing is unanswered or ctx ends, and commits. If ctx has ended, the commit has
// until late ends; who drains many lanes gives all of them the same. The error says what was left.
func (*Mirror) Drain(ctx, late context.Context, l *Lane) error {
	drained := l.close()
	select {
	case <-drained:
	case <-ctx.Done():
	}
	if ctx.Err() == nil {
		return l.stream.commitLane(ctx, l)
	}
	var unanswered error
	select {
	case <-drained: // both may have been ready
	default:
		unanswered = errors.New("drain: not everything was answered in time")
	}
	return errors.Join(unanswered, l.stream.commitLane(late, l))
}

// Remove forgets a lane that was drained, and whose source and sink have let go of it.
func (m *Mirror) Remove(l *Lane) {
	m.Forget(l)
	l.discard()
}

// Commit stores every changed checkpoint now.
func (m *Mirror) Commit(ctx context.Context) error {
	var faults []error
	for _, s := range m.streams {
		faults = append(faults, s.commit(ctx))
	}
	return errors.Join(faults...)
}

// Len counts the lanes.
func (m *Mirror) Len() (n int) {
	for _, s := range m.streams {
		s.mu.Lock()
		n += len(s.lanes)
		s.mu.Unlock()
	}
	return n
}

// Lanes lists all lanes, in no order.
func (m *Mirror) Lanes() []*Lane {
	var all []*Lane
	for _, s := range m.streams {
		all = append(all, s.list()...)
	}
	return all
}

func (m *Mirror) stream(p route.Partition) *Stream {
	h := uint32(2166136261)
	for _, c := range []byte(p.Topic) {
		h = (h ^ uint32(c)) * 16777619
	}
	return m.streams[(h+uint32(p.Partition))%uint32(len(m.streams))]
}

// Stream is a set of lanes served by one mirror loop.
type Stream struct {
	cfg     Config
	deps    Deps
	now     func() time.Time
	metrics *metrics
	hand    hand // used by the loop alone
	wake    chan struct{}
	// backlogs is how many lanes of the whole route have more to send than they get away.
	backlogs *atomic.Int32
	limits   *limits     // of the whole worker
	urgent   atomic.Bool // a lane waits for its checkpoint to be stored

	mu       sync.Mutex // guards lanes, restless and pending; a leaf: nothing is called while it is held
	lanes    map[route.Partition]*Lane
	restless map[*Lane]struct{}
	pending  []*Lane
	spare    []*Lane

	saving   sync.Mutex   // one commit at a time
	unstored atomic.Int64 // checkpoints that commits have failed to store, ever
	records  atomic.Int64 // acknowledged, ever
}

func (s *Stream) budget() *slab.Budget { return s.deps.Pool.Budget() }

// notify puts a lane on the list of those with something to handle. The caller holds the lane's lock.
func (s *Stream) notify(l *Lane) {
	s.mu.Lock()
	s.pending = append(s.pending, l)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *Stream) run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { s.loop(ctx); return nil })
	g.Go(func() error { return s.commitLoop(ctx) })
	return g.Wait()
}

// loop is the mirror loop: take → handle → ready, lane after lane.
func (s *Stream) loop(ctx context.Context) {
	for {
		s.mu.Lock()
		lanes := s.pending
		s.pending = s.spare[:0]
		s.mu.Unlock()
		for _, l := range lanes {
			l.handle(&s.hand)
		}
		clear(lanes)
		s.spare = lanes
		if len(lanes) > 0 {
			continue
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			return
		}
	}
}

// tickEvery is how often lanes are looked at for what no event tells: a window that has become quiet, a halt whose retry time has come.
const tickEvery = 50 * time.Millisecond

func (s *Stream) commitLoop(ctx context.Context) error {
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	next, retry := s.now().Add(s.cfg.CommitInterval), s.now().Add(s.cfg.RetryInterval)
	unavailable := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now := s.now()
		if s.cfg.AckWindow > 1 {
			each(s.listRestless(), (*Lane).closeWindow)
		}
		if s.limits.any.Load() {
			each(s.listRestless(), (*Lane).paced)
		}
		if now.After(retry) {
			retry = now.Add(s.cfg.RetryInterval)
			each(s.listRestless(), (*Lane).retryByTime)
		}
		if !s.urgent.Swap(false) && now.Before(next) {
			continue
		}
		switch err := s.commit(ctx); {
		case err == nil, ctx.Err() != nil:
			unavailable = false
		case !errors.Is(err, offsets.ErrUnavailable):
			return err
		case !unavailable: // the same is not logged at each interval
			unavailable = true
			s.deps.Log.Warn("positions can't be stored at the moment; they are stored when the store is back", "err", err)
		}
		next = s.now().Add(s.cfg.commitPause(s.now().Sub(now)))
	}
}

func each(lanes []*Lane, f func(*Lane)) {
	for _, l := range lanes {
		f(l)
	}
}

func (s *Stream) list() []*Lane {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*Lane, 0, len(s.lanes))
	for _, l := range s.lanes {
		all = append(all, l)
	}
	return all
}

// closeWindow lets the sink send the last batch again if the lane has run dry inside an acknowledgement window.
func (l *Lane) closeWindow() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.out.phase == open && l.out.window > 0 {
		l.wake.Sink()
	}
}

// commitLane returns when the lane's checkpoint is stored. Many lanes that end at once share the commits: while one is under way, the others
// wait, and the next one is for all of them.
func (s *Stream) commitLane(ctx context.Context, l *Lane) error {
	s.saving.Lock()
	defer s.saving.Unlock()
	l.mu.Lock()
	changed := l.pos.dirty
	l.mu.Unlock()
	if !changed {
		return nil
	}
	return s.commitLocked(ctx)
}

// commit stores the checkpoints that changed.
func (s *Stream) commit(ctx context.Context) error {
	s.saving.Lock()
	defer s.saving.Unlock()
	return s.commitLocked(ctx)
}

// commitLocked is the only place where positions are committed. The caller holds saving.
func (s *Stream) commitLocked(ctx context.Context) error {
	var checkpoints []offsets.Checkpoint
	var lanes []*Lane
	for _, l := range s.listRestless() {
		if c, changed := l.takeCheckpoint(); changed {
			checkpoints, lanes = append(checkpoints, c), append(lanes, l)
		}
	}
	if len(checkpoints) == 0 {
		return nil
	}
	err := s.deps.Events.Flush(ctx) // what excuses an offset is stored before it
	if err == nil {
		err = s.deps.Saver.Save(ctx, checkpoints)
	}
	var conflict *offsets.ConflictError
	if errors.As(err, &conflict) {
		// Another owner is further, or began a newer epoch. What we wanted to write is true and older: it does no harm that it is not written.
		err = nil
	}
	if err != nil {
		s.unstored.Add(int64(len(lanes)))
	}
	surprise := false
	for i, l := range lanes {
		c := checkpoints[i]
		overtaken := conflict != nil && slices.ContainsFunc(conflict.Refused, func(r offsets.Refused) bool { return r.Checkpoint.Partition == c.Partition })
		surprise = surprise || overtaken && l.plan.Company == Alone
		l.stored(c, overtaken, err)
	}
	if surprise {
		s.deps.Log.Warn("checkpoints overtaken by another owner", "err", conflict)
	}
	return err
}
