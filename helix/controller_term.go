package helix

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// Term is the time in which a controller leads. What it says of the cluster comes from memory and is as old as the last watch event.
// Its methods are safe for concurrent use; records that they give must not be changed.
type Term struct {
	c        *Controller
	log      hclog.Logger
	admin    *Admin
	guard    Guard
	session  *Session
	changed  chan struct{}
	follow   *follower
	dispatch dispatcher
	views    viewWriter

	mu   sync.RWMutex
	snap *snapshot // guarded by mu; changed by run alone
}

func newTerm(c *Controller, s *Session, guard Guard) *Term {
	t := &Term{
		c: c, log: c.deps.Log, admin: NewAdmin(s, c.cfg.Cluster).Guarded(guard), guard: guard, session: s, changed: make(chan struct{}, 1),
		follow: newFollower(s, c.deps.Log), snap: newSnapshot(),
	}
	t.follow.unwatched = t.readOnce
	t.follow.awaited = func(p point) bool { return p.path == t.cluster().pause() || p.path == t.cluster().maintenance() }
	t.follow.malformed = c.metrics.malformed.Inc
	t.follow.reads = func(n int) { c.metrics.reads.Add(float64(n)) }
	t.dispatch = dispatcher{t: t, deferred: map[string]map[string]bool{}, stale: map[string]time.Time{}}
	t.dispatch.reliefs = reliefs{begun: c.cfg.Begun, since: map[string]map[string]time.Time{}}
	t.views = viewWriter{t: t, written: map[string]*Record{}, due: map[string]struct{}{}}
	return t
}

// Epoch grows with each election. It is the version of the znode that guards the writes.
func (t *Term) Epoch() int32 { return t.guard.Version }

// Admin changes the cluster as this term's leader: its writes fail with ErrDeposed once another one is elected.
func (t *Term) Admin() *Admin { return t.admin }

// Guard is the condition on the leader's writes.
func (t *Term) Guard() Guard { return t.guard }

// Session is the one that leads. It is not the caller's to close.
func (t *Term) Session() *Session { return t.session }

// Changed has a value when anything of the cluster may have changed since it was last received. It is for one receiver.
func (t *Term) Changed() <-chan struct{} { return t.changed }

// LiveInstance is an instance that is alive or has a configuration, or both.
type LiveInstance struct {
	Instance
	Session string // empty: not alive
}

// Live says that the instance has a session.
func (i LiveInstance) Live() bool { return i.Session != "" }

// Instances are all that are alive or configured, by name.
func (t *Term) Instances() []LiveInstance {
	t.mu.RLock()
	defer t.mu.RUnlock()
	names := map[string]bool{}
	for name := range t.snap.configs {
		names[name] = true
	}
	for name := range t.snap.live {
		names[name] = true
	}
	all := make([]LiveInstance, 0, len(names))
	for _, name := range slices.Sorted(maps.Keys(names)) {
		i := LiveInstance{Instance: newInstance(name)}
		if config := t.snap.configs[name]; config != nil {
			i.Instance = config.Instance
		}
		if live := t.snap.live[name]; live != nil {
			i.Session = live.session
		}
		all = append(all, i)
	}
	return all
}

// Resource is an ideal state beside what live instances say.
type Resource struct {
	Name string
	// Ideal is nil when the resource is gone and some instance still has partitions of it.
	Ideal *IdealState
	// States is partition → instance → state, of live instances.
	States map[string]map[string]State
	// Underway is the number of messages for it that wait in queues.
	Underway int
}

// Resources are all with an ideal state or with partitions at a live instance, by name.
func (t *Term) Resources() []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.snap.resources()
}

// Resource gives one; false if there is none.
func (t *Term) Resource(name string) (Resource, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	ideal, held := t.snap.ideals[name], t.snap.held[name]
	if ideal == nil && held == nil {
		return Resource{}, false
	}
	r := Resource{Name: name, States: map[string]map[string]State{}}
	if ideal != nil {
		r.Ideal = &IdealState{Record: ideal.record, Version: ideal.version}
	}
	for instance, h := range held {
		for partition, state := range h.states {
			if r.States[partition] == nil {
				r.States[partition] = map[string]State{}
			}
			r.States[partition][instance] = state
		}
	}
	for _, ids := range t.snap.pending[name] {
		r.Underway += len(ids)
	}
	return r, true
}

// Paused says that nothing is sent to instances at the moment.
func (t *Term) Paused() bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.snap.paused
}

// Maintenance says that somebody asks for assignments to stay as they are. It is the caller's to respect; what is assigned is carried out.
func (t *Term) Maintenance() bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.snap.upkeep
}

func (t *Term) cluster() Cluster { return t.c.cfg.Cluster }

// readOnce are points that nobody else changes (external views) or that never change (messages).
func (t *Term) readOnce(p point) bool {
	return strings.HasPrefix(p.path, t.cluster().externalViews()) || !p.folder && strings.Contains(p.path, "/MESSAGES/")
}

// prepare reads the whole cluster.
func (t *Term) prepare(ctx context.Context) error {
	if err := t.install(ctx); err != nil {
		return err
	}
	c := t.cluster()
	for _, folder := range []string{c.liveInstances(), c.configParticipants(), c.idealStates(), c.externalViews(), c.controllerMessages()} {
		t.follow.mark(point{folder, true})
	}
	t.follow.mark(point{c.pause(), false}, point{c.maintenance(), false})
	return t.follow.refresh(ctx, t.apply)
}

// run keeps the cluster known and does what is to be done, until the context ends or something fails for good.
func (t *Term) run(ctx context.Context) error {
	tick := time.NewTicker(t.c.cfg.StaleAfter / staleChecks)
	defer tick.Stop()
	for {
		if err := t.act(ctx); err != nil {
			return err
		}
		later := time.NewTimer(t.rest())
		select {
		case <-t.follow.woken:
			t.collect(ctx)
		case <-later.C:
		case <-tick.C:
			if err := t.dispatch.sweep(ctx); err != nil {
				return err
			}
		case <-ctx.Done():
		}
		later.Stop()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := t.follow.refresh(ctx, t.apply); err != nil {
			return err
		}
	}
}

// rest is how long there is nothing to do unless something happens.
func (t *Term) rest() time.Duration {
	if t.snap.paused {
		return neverDue
	}
	if len(t.dispatch.reliefs.since) > 0 {
		return min(reliefEvery, t.views.wait())
	}
	return t.views.wait()
}

// collect waits for the changes that come with the first one.
func (t *Term) collect(ctx context.Context) {
	timer := time.NewTimer(t.c.cfg.Debounce)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// act sends the transitions and writes the views that the dirty resources need.
func (t *Term) act(ctx context.Context) error {
	if t.snap.paused {
		return nil // what is dirty stays so
	}
	t.dispatch.revive()
	t.dispatch.relieve()
	dirty := slices.Sorted(maps.Keys(t.snap.dirty))
	t.mu.Lock()
	clear(t.snap.dirty)
	t.mu.Unlock()
	if err := t.dispatch.send(ctx, dirty); err != nil {
		return err
	}
	t.views.add(dirty)
	return t.views.write(ctx)
}

// apply notes what was read and says what else must be.
func (t *Term) apply(readings []reading) []point {
	t.mu.Lock()
	defer t.mu.Unlock()
	var more []point
	for _, r := range readings {
		more = append(more, t.note(r)...)
	}
	select {
	case t.changed <- struct{}{}:
	default:
	}
	return more
}

// note sorts a reading by where it comes from. Paths are those of the cluster's tree: /<cluster>/<folder>/….
func (t *Term) note(r reading) []point {
	parts := strings.Split(strings.TrimPrefix(r.path, t.cluster().Root()+"/"), "/")
	at := func(i int) string {
		if i < len(parts) {
			return parts[i]
		}
		return ""
	}
	switch at(0) {
	case "LIVEINSTANCES":
		return t.noteLive(r, at(1))
	case "CONFIGS":
		return t.noteConfig(r, at(2))
	case "IDEALSTATES":
		return t.noteIdeal(r, at(1))
	case "EXTERNALVIEW":
		return t.noteView(r, at(1))
	case "CONTROLLER":
		return t.noteController(r, at(1), at(2))
	case "INSTANCES":
		if at(2) == "MESSAGES" {
			return t.noteMessage(r, at(1), at(3))
		}
		return t.noteState(r, at(1), at(3), at(4))
	}
	panic("BUG: nobody follows " + r.path)
}

// children handles a folder whose children are followed: gone gets the names of those that went.
func (t *Term) children(r reading, gone func(name string)) []point {
	came, went := t.follow.fresh(r)
	for _, name := range went {
		gone(name)
	}
	points := make([]point, len(came))
	for i, name := range came {
		points[i] = r.child(name)
	}
	return points
}

func (t *Term) noteLive(r reading, name string) []point {
	if r.folder {
		return t.children(r, func(name string) { t.setLive(name, nil) })
	}
	var n *liveNode
	if r.record != nil {
		n = newLive(r.record, r.stat)
		if checkName("session", n.session) != nil {
			t.log.Warn("live instance has no session and is skipped", "instance", name)
			n = nil
		}
	}
	return t.setLive(name, n)
}

// setLive follows what belongs to a live session, and no longer what belonged to the one before.
func (t *Term) setLive(name string, n *liveNode) []point {
	c := t.cluster()
	before := t.snap.live[name]
	if before != nil && n != nil && before.session == n.session {
		t.snap.setLive(name, n)
		return nil
	}
	if before != nil {
		t.follow.forget(point{c.sessionStates(name, before.session), true})
		t.follow.forget(point{c.messages(name), true})
		t.log.Info("instance is gone", "instance", name, "session", before.session)
	}
	t.snap.setLive(name, n)
	if n == nil {
		return nil
	}
	t.log.Info("instance is alive", "instance", name, "session", n.session)
	return []point{{c.sessionStates(name, n.session), true}, {c.messages(name), true}}
}

func (t *Term) noteConfig(r reading, name string) []point {
	if r.folder {
		return t.children(r, func(name string) { t.snap.setConfig(name, nil) })
	}
	if r.record == nil {
		t.snap.setConfig(name, nil)
		return nil
	}
	t.snap.setConfig(name, newInstanceNode(name, r.record))
	return nil
}

func (t *Term) noteIdeal(r reading, name string) []point {
	switch {
	case r.folder:
		return t.children(r, func(name string) { t.snap.setIdeal(name, nil) })
	case r.exists && r.record == nil:
		// Nothing is done for it until it can be read; to take it for dropped would end its partitions.
		if t.snap.ideals[name] == nil {
			t.snap.setIdeal(name, &idealNode{record: NewRecord(name), version: r.stat.Version})
		}
		return nil
	case !r.exists:
		t.snap.setIdeal(name, nil)
		return nil
	}
	ideal := newIdeal(r.record, r.stat.Version)
	if !ideal.usable {
		t.log.Warn("ideal state is not CUSTOMIZED with OnlineOffline and is skipped", "resource", name)
	}
	t.snap.setIdeal(name, ideal)
	return nil
}

// noteView is called while the term is prepared: from then on nobody else writes views.
func (t *Term) noteView(r reading, name string) []point {
	if r.folder {
		return t.children(r, func(string) {})
	}
	if r.exists {
		if r.record == nil {
			r.record = NewRecord("") // as good as another one: it is written anew
		}
		t.views.written[name] = r.record
		t.snap.touch(name)
	}
	return nil
}

func (t *Term) noteController(r reading, name, message string) []point {
	switch {
	case name == "PAUSE":
		paused := r.record != nil // an empty node is no pause
		if t.snap.paused && !paused {
			t.snap.touchAll()
		}
		if t.snap.paused != paused {
			t.log.Info("pause changed", "paused", paused)
		}
		t.snap.paused = paused
	case name == "MAINTENANCE":
		t.snap.upkeep = r.exists
	case r.folder:
		return t.children(r, func(string) {})
	case r.record != nil:
		return t.noteSync(r, message)
	}
	return nil
}

// noteSync looks at all live instances again when a participant asks for it, since it was sent something in a session that it has lost.
func (t *Term) noteSync(r reading, id string) []point {
	m := parseMessage(id, r.record)
	if m.Type != msgSessionChange && m.Type != msgNoOp {
		return nil
	}
	t.dispatch.done = append(t.dispatch.done, t.cluster().controllerMessage(id))
	var points []point
	if m.Type == msgSessionChange {
		for name := range t.snap.live {
			points = append(points, point{t.cluster().liveInstance(name), false})
		}
	}
	return points
}

func (t *Term) noteState(r reading, instance, session, resource string) []point {
	if live := t.snap.live[instance]; live == nil || live.session != session {
		return nil
	}
	switch {
	case r.folder:
		return t.children(r, func(name string) { t.snap.setHeld(name, instance, nil) })
	case r.record != nil:
		held := newHeld(r.record, session)
		if held == nil {
			t.log.Warn("current state is of another session or model and is skipped", "instance", instance, "resource", resource)
		}
		t.snap.setHeld(resource, instance, held)
	case !r.exists:
		t.snap.setHeld(resource, instance, nil)
	}
	return nil
}

func (t *Term) noteMessage(r reading, instance, id string) []point {
	if t.snap.live[instance] == nil {
		return nil
	}
	switch {
	case r.folder:
		var left []point
		points := t.children(r, func(id string) { left = append(left, t.leave(instance, id)...) })
		return append(points, distinct(left)...)
	case !r.exists:
		return t.leave(instance, id)
	}
	var m *Message
	if r.record != nil {
		m = parseMessage(id, r.record)
		if m.Type != msgTransition || m.Target != instance || checkName("resource", m.Resource) != nil || len(m.Partitions) == 0 {
			m = nil
		}
	}
	t.snap.setQueued(instance, id, m, false)
	return nil
}

// leave notes that a message is gone, and has read what came of it: what was read before may be older, if a connection was lost in between, and
// to take the partition for OFFLINE would give it a second owner.
func (t *Term) leave(instance, id string) []point {
	m, live := t.snap.queues[instance][id], t.snap.live[instance]
	t.snap.setQueued(instance, id, nil, true)
	if m == nil || m.TargetSession != live.session {
		return nil
	}
	return []point{{t.cluster().currentState(instance, live.session, m.Resource), false}}
}

func distinct(points []point) []point {
	slices.SortFunc(points, func(a, b point) int { return strings.Compare(a.path, b.path) })
	return slices.Compact(points)
}

// spoils says that a transaction failed because of one of its operations, and not because of the guard: the others may be carried out.
func spoils(err error) bool {
	return errors.Is(err, ErrNotFound) || errors.Is(err, ErrExists) || errors.Is(err, ErrNotEmpty) || errors.Is(err, ErrDenied)
}
