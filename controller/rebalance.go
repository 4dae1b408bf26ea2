package controller

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/causeway-mirror/causeway/controller/assign"
	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/route"
)

// settle is how long the watch waits for more of the same before it moves partitions: workers often come and go together.
const settle = 100 * time.Millisecond

// retryRebalance is the wait after a rebalance that failed.
const retryRebalance = time.Second

// watch moves partitions when workers come, go or drain, until ctx ends.
func (t *Term) watch(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		changed := t.cluster.Changed()
		now := time.Now()
		s := t.cluster.State()
		t.tell(t.crew.observe(s, now))
		if t.crew.due(now) {
			if _, err := t.rebalance(ctx, false); err != nil {
				t.deps.Log.Warn("rebalance failed and is tried again", "error", err)
				t.crew.again(now.Add(retryRebalance))
			}
		}
		timer.Reset(t.crew.wait(time.Now()))
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-timer.C:
		case <-t.kick:
		}
	}
}

// tell reports workers that came and went.
func (t *Term) tell(joined, lost []string) {
	for _, id := range joined {
		t.deps.Events.Emit(events.Event{Type: events.WorkerJoined, Severity: events.Info, Message: "worker " + id + " joined"})
	}
	for _, id := range lost {
		t.deps.Events.Emit(events.Event{Type: events.WorkerLost, Severity: events.Warning, Message: "worker " + id + " left or was lost"})
	}
	live := 0
	for _, w := range t.cluster.State().Workers {
		if w.Live {
			live++
		}
	}
	t.metrics.workers.Set(float64(live))
}

// Rebalance decides anew at once, whoever is waited for, and gives the number of partitions that moved.
func (t *Term) Rebalance(ctx context.Context) (int, error) {
	t.takePulse(ctx)
	return t.rebalance(ctx, true)
}

// takePulse finds out which workers answer. Before a move that nobody needs: a worker that was just killed lives for its session's timeout.
func (t *Term) takePulse(ctx context.Context) {
	if t.deps.Pulse == nil {
		return
	}
	if err := t.deps.Pulse.Take(ctx); err != nil && ctx.Err() == nil {
		t.deps.Log.Warn("the workers can't be asked whether they answer", "error", err)
	}
}

// silent are the workers that used to answer and don't, with when they last did.
func (t *Term) silent() map[string]time.Time {
	if t.deps.Pulse == nil {
		return nil
	}
	return t.deps.Pulse.Silent()
}

// rebalance decides and writes what differs. While an operator has turned balancing off it does nothing.
func (t *Term) rebalance(ctx context.Context, atOnce bool) (int, error) {
	moved := 0
	began := time.Now()
	err := t.change(ctx, func(s *State) error {
		if !s.moves() {
			return nil
		}
		var standbys map[string]Topic // whose standbys change
		if t.cfg.Replicas != nil {
			s, standbys = s.promoted(t.cfg.Replicas, func(worker string) bool { return !atOnce && t.crew.waits(worker, time.Now()) })
		}
		workers, options := t.workers(s, atOnce)
		parts := t.weighed(s)
		if !atOnce {
			parts = t.held(s, parts)
		}
		t.pin(s, parts)
		plan := assign.Decide(workers, parts, options)
		if len(plan.Moves) == 0 {
			return t.writeStandbys(ctx, standbys)
		}
		t.deps.Events.Emit(events.Event{
			Type: events.RebalanceStarted, Severity: events.Info, Message: fmt.Sprintf("%d partitions get another owner", len(plan.Moves)),
			Reason: summary(plan.Moves),
		})
		if err := t.cluster.Write(ctx, applied(s, plan.Moves)); err != nil {
			return err
		}
		moved = len(plan.Moves)
		t.note(plan.Moves)
		for _, m := range plan.Moves { // written with the move
			delete(standbys, m.Partition.Topic)
		}
		return t.writeStandbys(ctx, standbys)
	})
	if err != nil {
		return 0, fmt.Errorf("rebalance: %w", err)
	}
	if moved > 0 {
		t.tallies.rebalances.Add(1)
		t.metrics.rebalanceSeconds.Observe(time.Since(began).Seconds())
		t.deps.Events.Emit(events.Event{Type: events.RebalanceFinished, Severity: events.Info, Message: fmt.Sprintf("%d partitions got another owner", moved)})
	}
	return moved, nil
}

// writeStandbys writes topics whose standbys change; which they get is found when they are written.
func (t *Term) writeStandbys(ctx context.Context, topics map[string]Topic) error {
	if len(topics) == 0 {
		return nil
	}
	t.deps.Log.Info("hot standbys change", "topics", len(topics))
	return t.cluster.Write(ctx, slices.Collect(maps.Values(topics)))
}

// mostKinds bounds a summary.
const mostKinds = 10

// summary says in one line how many partitions go from where to where and why, most first; a single one is named.
func summary(moves []assign.Move) string {
	kinds := map[assign.Move][]route.Partition{} // by move without partition
	for _, m := range moves {
		kind := assign.Move{From: cmp.Or(m.From, "nobody"), To: cmp.Or(m.To, "nobody"), Reason: m.Reason}
		kinds[kind] = append(kinds[kind], m.Partition)
	}
	order := slices.SortedFunc(maps.Keys(kinds), func(a, b assign.Move) int {
		return cmp.Or(len(kinds[b])-len(kinds[a]), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Reason, b.Reason))
	})
	var parts []string
	for i, kind := range order {
		if i == mostKinds {
			parts = append(parts, fmt.Sprintf("and %d other kinds of moves", len(order)-i))
			break
		}
		what := strconv.Itoa(len(kinds[kind]))
		if len(kinds[kind]) == 1 {
			what = kinds[kind][0].String()
		}
		parts = append(parts, fmt.Sprintf("%s from %s to %s (%s)", what, kind.From, kind.To, kind.Reason))
	}
	return strings.Join(parts, "; ")
}

// note counts what moved and remembers what was moved for lack of progress.
func (t *Term) note(moves []assign.Move) {
	now := time.Now()
	for _, m := range moves {
		t.metrics.moves.WithLabelValues(string(m.Reason)).Inc()
		t.deps.Log.Info("partition gets another owner", "partition", m.Partition, "from", m.From, "to", m.To, "reason", m.Reason)
		if m.Reason == assign.Stuck {
			t.lag.moved(m.Partition, now)
		}
	}
}

// applied gives the topics that the moves change.
func applied(s *State, moves []assign.Move) []Topic {
	changed := map[string]Topic{}
	for _, m := range moves {
		topic, ok := changed[m.Partition.Topic]
		if !ok {
			topic = s.Topics[m.Partition.Topic].Clone()
			changed[topic.Name] = topic
		}
		p := m.Partition.Partition
		state := Online
		if topic.Off(p) {
			state = Offline
		}
		if m.To != "" {
			topic.Assigned[p] = map[string]string{m.To: state}
		}
	}
	out := make([]Topic, 0, len(changed))
	for _, name := range slices.Sorted(maps.Keys(changed)) {
		out = append(out, changed[name])
	}
	return out
}

// workers gives the workers as assign counts them, and the rules. Unless atOnce, one that has just come is left out until its delay has
// passed, if it owns nothing.
func (t *Term) workers(s *State, atOnce bool) ([]assign.Worker, assign.Options) {
	owners := map[string]bool{}
	for _, topic := range s.Topics {
		for p := range topic.Assigned {
			owners[topic.Owner(p)] = true
		}
	}
	now, silent := time.Now(), t.silent()
	var out []assign.Worker
	usable := 0
	for _, id := range slices.Sorted(maps.Keys(s.Workers)) {
		w := s.Workers[id]
		if !atOnce && !owners[id] && t.crew.waits(id, now) {
			continue
		}
		if w.usable() {
			usable++
		}
		_, quiet := silent[id]
		out = append(out, assign.Worker{ID: id, Live: w.Live, Enabled: !w.Disabled, Draining: w.Draining, Silent: quiet})
	}
	o := assign.Options{Threshold: t.cfg.Rebalance.Threshold, CatchUp: t.cfg.Lag.MinTime, MaxActive: t.cfg.Rebalance.MaxActive}
	if t.cfg.Rebalance.Standbys > 0 && o.MaxActive == 0 {
		o.MaxActive = max(1, usable-t.cfg.Rebalance.Standbys)
	}
	return out, o
}

// held keeps partitions with owners that are gone, but not for long enough to give them up.
func (t *Term) held(s *State, parts []assign.Partition) []assign.Partition {
	now := time.Now()
	for i := range parts {
		owner := parts[i].Owner
		parts[i].Held = owner != "" && !s.Workers[owner].Live && t.crew.waits(owner, now)
	}
	return parts
}

// pin keeps partitions with owners that have records of them on disk: the source may not have these any more, and only that worker can send them. Also
// one that drains sends them first. Of an owner that is gone they come too late.
func (t *Term) pin(s *State, parts []assign.Partition) {
	if t.deps.Pulse == nil {
		return
	}
	spilled := map[route.Partition]string{}
	for worker, of := range t.deps.Pulse.Spilled() {
		for _, p := range of {
			spilled[p] = worker
		}
	}
	for i := range parts {
		if owner := parts[i].Owner; owner != "" && s.Workers[owner].Live && spilled[parts[i].Partition] == owner {
			parts[i].Held = true
		}
	}
}

// weighed gives all partitions as assign counts them.
func (t *Term) weighed(s *State) []assign.Partition {
	now := time.Now()
	rate := t.rates.Load()
	parts := s.partitions()
	out := make([]assign.Partition, 0, len(parts))
	for _, p := range parts {
		topic := s.Topics[p.Topic]
		part := assign.Partition{
			Partition: p, Weight: assign.UnknownWeight, Owner: topic.Owner(p.Partition), Pin: s.Pins[p],
			Blacklisted: topic.Off(p.Partition), Stuck: !s.Paused(p.Topic) && t.lag.stuck(p, now),
		}
		if known, ok := rate.of(p); ok {
			part.Weight = known.Bytes
		}
		if lag, ok := t.lag.lagging(p, now); ok {
			part.Lag = lag.Time
		}
		out = append(out, part)
	}
	return out
}

// balanceLoad is the periodic look at the balance of load and at partitions that are stuck.
func (t *Term) balanceLoad(ctx context.Context) error {
	last := time.Unix(0, t.lastRun.Load())
	if time.Since(last) < t.cfg.Rebalance.MinInterval {
		return nil
	}
	t.takePulse(ctx)
	moved, err := t.rebalance(ctx, false)
	if moved > 0 {
		t.lastRun.Store(time.Now().UnixNano())
	}
	return err
}

// rates are measured loads.
type rates map[route.Partition]measuredRate

type measuredRate struct {
	Rate

	at time.Time
}

func (r rates) of(p route.Partition) (Rate, bool) {
	rate, ok := r[p]
	return rate.Rate, ok
}

// renewed gives the rates with new measurements. Of partitions without one the last holds until it is too old to decide by: a worker that does not
// answer once is no reason to weigh its partitions otherwise.
func (r rates) renewed(parts map[route.Partition]Rate, now time.Time, valid time.Duration) rates {
	next := make(rates, max(len(r), len(parts)))
	for p, last := range r {
		if now.Sub(last.at) <= valid {
			next[p] = last
		}
	}
	for p, rate := range parts {
		next[p] = measuredRate{Rate: rate, at: now}
	}
	return next
}

// weigh takes new measurements of load.
func (t *Term) weigh(ctx context.Context) error {
	parts, err := t.deps.Workload.Rates(ctx)
	next := t.rates.Load().renewed(parts, time.Now(), t.cfg.Lag.Valid)
	t.rates.Store(&next)
	if err != nil {
		return fmt.Errorf("measure the load: %w", err)
	}
	return nil
}
