package helix

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sync/errgroup"
)

// errNameLost: the live node is gone or another's although the session lives. Only somebody who meddles by hand does that.
var errNameLost = errors.New("the instance's live node was removed")

const (
	// rescanAfter is how often the queue is listed without a reason, should a notice ever be lost.
	rescanAfter = 30 * time.Second
	// looksPerLimit is how often per silence limit a suspended participant looks whether ZooKeeper answers again.
	looksPerLimit = 50
)

// tenure is one session of a participant. Three goroutines of run work for it: one follows the queue, one reports what transitions have
// reached, one watches the silence; transitions have their own.
type tenure struct {
	p        *Participant
	session  *Session
	cluster  Cluster
	instance string
	log      hclog.Logger
	began    time.Time
	former   []string           // earlier sessions found by join
	reports  map[string]*report // by resource; of join, then of the reporting goroutine
	synced   time.Time          // when the controller was last told to look again; of the following goroutine

	slots chan struct{}  // one for each running transition
	ready chan struct{}  // something is in finished
	fails chan struct{}  // something has come into ERROR
	work  sync.WaitGroup // transitions

	mu       sync.Mutex
	states   map[Partition]State    // guarded by mu; what the handler has reached
	jobs     map[Partition]*job     // guarded by mu; transitions that have not ended
	failures map[Partition]*failure // guarded by mu; of those that have not been ONLINE since
	known    map[string]bool        // guarded by mu; messages in the queue that were read
	finished []outcome              // guarded by mu; to be reported
}

// failure is that of a partition which is or was in ERROR.
type failure struct {
	times   int // in a row
	retryAt time.Time
}

func newTenure(p *Participant, s *Session) *tenure {
	return &tenure{
		p: p, session: s, cluster: p.cfg.Cluster, instance: p.cfg.Instance, log: p.log, began: time.Now(), reports: map[string]*report{},
		slots: make(chan struct{}, p.cfg.Concurrency), ready: make(chan struct{}, 1), fails: make(chan struct{}, 1),
		states: map[Partition]State{}, jobs: map[Partition]*job{}, known: map[string]bool{}, failures: map[Partition]*failure{},
	}
}

// run returns when the session is over, the context ends or the name is lost, and no transition runs any more.
func (t *tenure) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return t.follow(ctx) })
	group.Go(func() error { return t.reportAll(ctx) })
	group.Go(func() error { return t.watchSilence(ctx) })
	group.Go(func() error {
		select {
		case <-t.session.Done():
			return t.session.Err()
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if t.p.deps.Joined != nil {
		group.Go(func() error {
			t.p.deps.Joined(ctx, t.session)
			return nil
		})
	}
	err := group.Wait()
	t.work.Wait()
	return err
}

// touched lists the partitions that the handler may hold in another state than OFFLINE.
func (t *tenure) touched() []Partition {
	t.mu.Lock()
	defer t.mu.Unlock()
	var touched []Partition
	for p, state := range t.states {
		if state != Offline && t.jobs[p] == nil {
			touched = append(touched, p)
		}
	}
	for p := range t.jobs { // interrupted
		touched = append(touched, p)
	}
	slices.SortFunc(touched, Partition.compare)
	return touched
}

func (p Partition) compare(o Partition) int {
	if c := strings.Compare(p.Resource, o.Resource); c != 0 {
		return c
	}
	return strings.Compare(p.Name, o.Name)
}

// ring signals without waiting; a signal that is there already suffices.
func ring(bell chan<- struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}

// follow reads the queue and watches the live node whenever ZooKeeper says that they changed.
func (t *tenure) follow(ctx context.Context) error {
	queue, live := make(chan struct{}, 1), make(chan struct{}, 1)
	ring(queue)
	ring(live)
	ticker := time.NewTicker(rescanAfter)
	defer ticker.Stop()
	retry := time.NewTimer(neverDue)
	defer retry.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-live:
			err = t.watchName(ctx, func(Event) { ring(live) })
		case <-queue:
			err = t.scan(ctx, func(Event) { ring(queue) })
			if errors.Is(err, ErrNotFound) {
				t.log.Warn("queue of messages was removed, creating it again", "err", err)
				err = t.createFolders(ctx, t.cluster.instanceFolders(t.instance))
				ring(queue)
			}
		case <-t.fails:
			retry.Reset(t.retry(ctx, time.Now()))
		case now := <-retry.C:
			retry.Reset(t.retry(ctx, now))
		case <-ticker.C:
			if err = t.scan(ctx, nil); errors.Is(err, ErrNotFound) { // the watch tells it too
				err = nil
			}
		}
		if err != nil {
			return err
		}
	}
}

func (t *tenure) watchName(ctx context.Context, notify Notify) error {
	found, stat, err := t.session.Exists(ctx, t.cluster.liveInstance(t.instance), notify)
	if err == nil && (!found || stat.Owner != t.session.ID()) {
		err = errNameLost
	}
	return err
}

// watchSilence suspends the handler's partitions before another instance can have them, and resumes them if the session turns out to live.
func (t *tenure) watchSilence(ctx context.Context) error {
	limit := t.session.SilenceLimit()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
		silence := t.session.Silence()
		switch {
		case silence >= limit && !t.p.suspended:
			t.p.suspend()
		case silence < limit && t.p.suspended:
			mine, err := t.isMine(ctx)
			if err != nil {
				return err
			}
			if !mine {
				return errNameLost
			}
			t.p.resume()
		}
		if t.p.suspended {
			timer.Reset(limit / looksPerLimit)
		} else {
			timer.Reset(max(limit-silence, time.Millisecond))
		}
	}
}

// scan reads the messages that are new in the queue and acts on them.
func (t *tenure) scan(ctx context.Context, notify Notify) error {
	names, err := t.session.Children(ctx, t.cluster.messages(t.instance), notify)
	if err != nil {
		return err
	}
	fresh := t.fresh(names)
	found := make([]*Message, len(fresh))
	err = t.session.Each(ctx, len(fresh), func(ctx context.Context, i int) error {
		path := t.cluster.message(t.instance, fresh[i])
		record, _, err := t.session.GetRecord(ctx, path, nil)
		switch {
		case err == nil:
			found[i] = parseMessage(fresh[i], record)
		case isUnreadable(err):
			t.p.metrics.messages.WithLabelValues(leave.String()).Inc()
			t.log.Warn("malformed message skipped", "path", path, "err", err)
		case !errors.Is(err, ErrNotFound):
			return err
		}
		return nil
	})
	if err != nil {
		return err
	}
	found = slices.DeleteFunc(found, func(m *Message) bool { return m == nil })
	slices.SortStableFunc(found, func(a, b *Message) int { return a.Created.Compare(b.Created) })
	return t.take(ctx, found)
}

// fresh gives the names that were not there before, and forgets those that are gone.
func (t *tenure) fresh(names []string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	known, fresh := make(map[string]bool, len(names)), []string{}
	for _, name := range names {
		if known[name] = true; !t.known[name] {
			fresh = append(fresh, name)
		}
	}
	t.known = known
	return fresh
}

// take acts on messages, cancellations first: so they reach what came with them.
func (t *tenure) take(ctx context.Context, messages []*Message) error {
	now, newer := time.Now(), false
	var rest, cancels []*Message
	t.mu.Lock()
	sight := t.beholderLocked(now)
	for _, m := range messages {
		if sight.decide(m).verdict == cancel {
			cancels = append(cancels, m)
		} else {
			rest = append(rest, m)
		}
	}
	for _, m := range cancels {
		rest = t.cancelLocked(m, rest)
	}
	for _, m := range rest {
		d := sight.decide(m)
		t.p.metrics.messages.WithLabelValues(d.verdict.String()).Inc()
		t.logDecision(m, d)
		switch d.verdict {
		case run:
			t.beginLocked(ctx, m, d)
		case stale:
			newer = newer || m.Created.After(t.began)
			t.finishLocked(outcome{message: m})
		case discard:
			t.finishLocked(outcome{message: m, restate: d.restate})
		case leave, cancel:
		}
	}
	t.mu.Unlock()
	if newer && now.Sub(t.synced) >= syncAfter {
		t.synced = now
		return t.askForSync(ctx)
	}
	return nil
}

func (t *tenure) logDecision(m *Message, d decision) {
	if d.expected() {
		t.log.Debug("message", "id", m.ID, "type", m.Type, "resource", m.Resource, "from", string(m.From), "to", string(m.To), "verdict", d.verdict.String(),
			"reason", d.reason)
		return
	}
	t.log.Warn("unexpected message", "id", m.ID, "type", m.Type, "resource", m.Resource, "verdict", d.verdict.String(), "reason", d.reason,
		"missing", strings.Join(m.faults(), ","))
}

func (t *tenure) beholderLocked(now time.Time) beholder {
	return beholder{
		instance: t.instance, session: t.session.ID(), now: now,
		state: func(p Partition) State {
			if state := t.states[p]; state != "" {
				return state
			}
			return Offline
		},
		busy: func(p Partition) bool { return t.jobs[p] != nil },
	}
}

// cancelLocked takes back transitions that have not begun, among those waiting and those that came with the cancellation; both messages are
// deleted. One that runs goes on: it may be half done.
func (t *tenure) cancelLocked(m *Message, messages []*Message) []*Message {
	t.finishLocked(outcome{message: m})
	same := func(o *Message) bool { return o.From == m.From && o.To == m.To && o.Resource == m.Resource }
	for _, name := range m.Partitions {
		if j := t.jobs[Partition{m.Resource, name}]; j != nil && !j.started && same(j.unit.message) {
			j.cancelled = true
		}
	}
	return slices.DeleteFunc(messages, func(o *Message) bool {
		hit := o.Type == msgTransition && o.TargetSession == t.session.ID() && same(o) && slices.Equal(o.Partitions, m.Partitions)
		if hit {
			t.finishLocked(outcome{message: o})
		}
		return hit
	})
}

// syncAfter is how often a controller is asked to look again, at most.
const syncAfter = 2 * time.Second

// askForSync tells the controller that it sends to a session that is over.
func (t *tenure) askForSync(ctx context.Context) error {
	r := NewRecord(sessionSync)
	r.Simple = map[string]string{
		keyMsgID: sessionSync, keyMsgType: msgSessionChange, keyMsgState: msgNew, keySource: t.instance, keySourceType: "PARTICIPANT",
		keyTarget: controllerName, keyTargetSession: anySession, keyRetryCount: "0", keyTimeout: "-1",
		keyCreated: strconv.FormatInt(time.Now().UnixMilli(), 10),
	}
	data, err := r.Encode()
	if err != nil {
		return err
	}
	err = t.session.Create(ctx, t.cluster.controllerMessage(sessionSync), data)
	if errors.Is(err, ErrExists) || errors.Is(err, ErrLost) || errors.Is(err, ErrNotFound) { // it is only a hint
		return nil
	}
	return err
}
