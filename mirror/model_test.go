package mirror

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/batch"
	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/internal/testkit"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

const (
	oursID    = 7
	foreignID = 99
)

// world is a source, a target, a store and some processes that all copy the same partition.
type world struct {
	t       testing.TB
	rng     *rand.Rand
	clock   time.Time
	target  *cluster
	source  []segment
	visible int // segments that the source has by now
	gone    int // of which it has deleted the first ones
	filter  func(*batch.Record) (batch.Verdict, error)
	want    []int // what must be on the target in the end
	store   *store
	owners  []*owner
	conns   []*conn
	variant variant
	calm    bool                                  // no faults any more
	visits  int                                   // of the foreign writer
	told    map[events.Type]map[route.Offset]bool // what owners have told of offsets
}

// violation is how the model says that a promise was broken; errStuck marks those by which nothing is lost, doubled or out of order.
type violation struct{ error }

var errStuck = errors.New("does not come to the end")

func broken(format string, args ...any) { panic(violation{fmt.Errorf(format, args...)}) }

func newWorld(t testing.TB, seed uint64, v variant) *world {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	w := &world{t: t, rng: rng, clock: time.Unix(1_700_000_000, 0), variant: v}
	w.target = newCluster(rng, func() time.Time { return w.clock })
	w.target.broken, w.target.aged = broken, seed%3 == 1
	w.target.answer = answered
	if v.refusals {
		w.target.refuses = func(n int) bool { return n%23 == 4 || n%31 > 28 }
	}
	if rng.IntN(2) == 0 && !v.truncates { // else nobody could tell how many records of a gap are on the target
		w.filter = func(r *batch.Record) (batch.Verdict, error) {
			if numberOf(t, r)%5 == 3 {
				return batch.Drop, nil
			}
			return batch.Keep, nil
		}
	}
	w.grow(30 + rng.IntN(90))
	w.visible = rng.IntN(len(w.source))
	first := offsets.Checkpoint{Partition: route.Partition{Topic: "t"}, ProducerID: oursID, LeaderEpoch: w.source[0].epoch}
	if seed%4 == 0 {
		first.LeaderEpoch = -1 // all that is stored behind it is looked at
	}
	if rng.IntN(3) == 0 {
		w.foreign()
		w.target.settle()
		first.TargetOffset = w.target.leader.end()
	}
	w.store = &store{now: first, history: []offsets.Checkpoint{first}, check: w.check, fails: func() bool { return !w.calm && rng.IntN(20) == 0 }}
	owners := 2 + rng.IntN(2)
	if w.target.aged && seed%2 == 0 {
		owners = 1 // at a time; then ids may be forgotten at any moment
	}
	for range owners {
		w.start(first)
	}
	return w
}

// grow appends segments to the source's log.
func (w *world) grow(n int) {
	next, number := route.Offset(0), 0
	if len(w.source) > 0 {
		next = w.source[len(w.source)-1].next
		for _, s := range w.source {
			number += len(s.made.numbers)
		}
	}
	for range n {
		s := segment{first: next, epoch: int32(len(w.source) / 4)}
		if w.rng.IntN(6) == 0 && !w.variant.truncates {
			s.next = next + 1 + route.Offset(w.rng.IntN(3))
		} else {
			m := made{base: next, epoch: s.epoch}
			if w.rng.IntN(6) == 0 && !w.variant.truncates {
				m.base += 2 // a hole that compaction left
			}
			for range 1 + w.rng.IntN(6) {
				m.numbers = append(m.numbers, number)
				if w.forwards(number) {
					w.want = append(w.want, number)
				}
				number++
			}
			s.made, s.next = m, m.base+route.Offset(len(m.numbers))
		}
		w.source, next = append(w.source, s), s.next
	}
}

// forwards says that a record is to be on the target in the end.
func (w *world) forwards(number int) bool {
	return (w.filter == nil || number%5 != 3) && (w.target.refuses == nil || !w.target.refuses(number))
}

// start begins a process at a copy of a checkpoint.
func (w *world) start(at offsets.Checkpoint) {
	cfg := DefaultConfig()
	cfg.Streams, cfg.AckWindow = 1, []int{1, 3, 8}[w.rng.IntN(3)]
	plan := Plan{Source: at.Partition, Target: route.Partition{Topic: "u"}, Records: w.filter, On: Policies{Refused: Skip}, IDExpiration: expiration, KeepAppendTime: w.target.aged}
	if w.variant.trails {
		plan.Company = []Company{FormerOwner, Standby}[w.rng.IntN(2)]
	}
	if w.rng.IntN(3) == 0 {
		plan.MaxBatchBytes = batch.HeaderSize + 40
	} else if w.rng.IntN(2) == 0 {
		plan.Merge, plan.Replicated = 4<<10, true
	}
	o := newOwner(w, cfg, plan, at)
	o.broker = w.believed()
	w.owners = append(w.owners, o)
}

// check holds a commit against what is replicated.
func (w *world) check(c offsets.Checkpoint) {
	if w.variant.truncates {
		w.checkGaps(c)
		return
	}
	before := 0
	for _, s := range w.source {
		for i, n := range s.made.numbers {
			if s.made.base+route.Offset(i) < c.SourceOffset && w.forwards(n) {
				before++
			}
		}
	}
	if want := epochAt(w.source, c.SourceOffset); c.LeaderEpoch != want && c.SourceOffset > 0 && (!w.variant.renews() || c.LeaderEpoch >= 0) {
		broken("committed %d with leader epoch %d, the source has %d there", c.SourceOffset, c.LeaderEpoch, want)
	}
	if got := len(w.target.forwarded(foreignID)); got < before {
		broken("committed %d records, %d are replicated: %v, want %v", before, got, w.target.forwarded(foreignID), w.want[:before])
	}
}

// believed is a broker that says that it leads: mostly the one that does.
func (w *world) believed() *replica {
	for _, r := range w.target.replicas {
		if r.leads && !w.calm && w.rng.IntN(4) == 0 {
			return r
		}
	}
	return w.target.leader
}

// answered takes a broker's answer to the connection that it belongs to.
func answered(q *request, base route.Offset, f *route.Fault) {
	if q.conn == nil {
		return // the foreign writer's
	}
	q.conn.busy = false
	if q.conn.alive {
		q.conn.answers = append(q.conn.answers, answer{q.all, base, f})
	}
}

// foreign lets someone else write to the partition.
func (w *world) foreign() {
	w.visits++
	w.target.produce(w.target.leader, &request{stored: stored{id: foreignID, seq: int32(w.rng.IntN(1 << 30)), numbers: []int{-1}}})
}

// serve lets a broker work off one request.
func (w *world) serve() {
	w.conns = slices.DeleteFunc(w.conns, func(c *conn) bool { return !c.alive && len(c.pending) == 0 })
	if len(w.conns) == 0 {
		return
	}
	c := w.conns[w.rng.IntN(len(w.conns))]
	if c.busy || len(c.pending) == 0 {
		return
	}
	q := c.pending[0]
	c.pending = c.pending[1:]
	c.busy = true
	w.target.produce(c.to, q)
}

// work lets an owner do one thing.
func (w *world) work(o *owner) {
	if o.paused {
		o.paused = !w.calm && w.rng.IntN(4) > 0
		return
	}
	switch w.rng.IntN(6) {
	case 0:
		if !w.passed(o) {
			o.fetch(w.source[:w.visible])
		}
	case 1:
		if o.fetched != nil {
			o.receive()
		}
	case 2:
		o.handle()
	case 3:
		if o.asked != nil {
			w.hint(o)
			return
		}
		if c := o.take(); c != nil {
			w.conns = append(w.conns, c)
		}
	case 4:
		for range 1 + w.rng.IntN(4) {
			o.deliver()
		}
	case 5:
		if w.rng.IntN(4) == 0 {
			_ = o.stream.commit(w.t.Context())
		}
		w.ends(o)
	}
}

// ends tells an owner where the source ends that has not found there what the target holds. It is always there.
func (w *world) ends(o *owner) {
	if w.visible > 0 && o.lane.Short() {
		o.lane.Ends(w.source[w.visible-1].next)
	}
	if a := o.lane.Stale(); a.Cause != 0 && !w.renewed(a) || w.lostSource(o) {
		broken("the source is said to have less than was stored")
	}
}

// rest says that nothing is left to be done for a lane that is not looked after any more.
func (*world) rest(o *owner) {
	if _, restless := o.stream.restless[o.lane]; restless {
		return
	}
	_, _, refused := o.lane.Refused()
	_, doubted := o.lane.Doubted()
	if o.lane.Stale().Cause != 0 || refused || doubted || o.lane.Short() || o.lane.pos.dirty || o.lane.in.fault != nil || o.lane.out.phase == halted {
		broken("a lane came to rest too early: %+v", o.lane.Status())
	}
}

func (*world) lostSource(o *owner) bool {
	f := o.lane.out.fault
	return f != nil && f.Code == codeDiverged
}

func (w *world) hint(o *owner) {
	to := w.believed()
	from := to
	if !w.calm && w.rng.IntN(3) == 0 {
		from = w.target.replicas[w.rng.IntN(3)]
	}
	if !w.calm && w.rng.IntN(10) == 0 {
		o.hint(offsets.Hint{}, fault(route.Unreachable, "UNREACHABLE"), to)
		return
	}
	h, f := w.target.ask(from, *o.asked)
	o.hint(h, f, to)
}

// torment does something that must not matter.
func (w *world) torment() {
	if w.variant.truncates && w.rng.IntN(6) == 0 {
		w.truncate()
		return
	}
	c := w.target
	r := c.replicas[w.rng.IntN(3)]
	i := w.rng.IntN(len(w.owners))
	switch w.rng.IntN(17) {
	case 0:
		w.kill(i)
		at := w.store.now
		if w.rng.IntN(3) == 0 {
			at = w.store.history[w.rng.IntN(len(w.store.history))]
		}
		w.start(at)
	case 1:
		w.owners[i].paused = true
	case 2, 3:
		w.owners[i].cut()
	case 4, 5:
		c.elect()
	case 6:
		c.learn(r)
	case 7:
		w.shut(r)
		c.restart(r)
	case 8:
		c.timeout(r)
	case 9:
		if r != c.leader && c.leader.leads {
			r.inISR = false
			c.advance()
		}
	case 10:
		w.foreign()
	case 11:
		switch {
		case w.target.aged && len(w.owners) == 1:
			w.forget()
		case w.target.aged:
			w.expire()
		case w.rng.IntN(10) == 0:
			w.nextDay()
		}
	case 12:
		w.behead()
	case 13:
		w.owners[i].lane.Retry()
	case 14:
		w.clock = w.clock.Add(time.Duration(w.rng.IntN(3000)) * time.Millisecond)
	case 15:
		refuse(w.owners[i])
	case 16:
		w.owners[i].lane.Pause(w.rng.IntN(2) == 0)
	}
}

// behead lets the leader append what nobody replicates, and elects another, perhaps twice.
func (w *world) behead() {
	for range 20 {
		w.serve()
		w.work(w.owners[w.rng.IntN(len(w.owners))])
	}
	w.target.elect()
	if w.rng.IntN(2) == 0 {
		for _, r := range w.target.replicas {
			w.target.replicate(r, 100)
		}
	}
	if w.rng.IntN(2) == 0 {
		w.target.elect()
	}
}

// refuse answers everything that an owner has sent and the broker has not read with a refusal that leaves nothing behind.
func refuse(o *owner) {
	if o.conn == nil || o.conn.busy {
		return
	}
	for _, q := range o.conn.pending {
		o.conn.answers = append(o.conn.answers, answer{q.all, route.NoOffset, fault(route.Busy, "NOT_ENOUGH_REPLICAS")})
	}
	o.conn.pending = nil
}

// shut ends all connections to a broker that goes down; what it has not read is lost.
func (w *world) shut(r *replica) {
	for _, c := range w.conns {
		if c.to == r {
			c.pending = nil
			if c.alive {
				c.owner.cut()
			}
		}
	}
}

// nextDay lets so much time pass that brokers forget producers. Nothing on its way survives it, but processes may have been asleep.
func (w *world) nextDay() {
	for _, r := range w.target.replicas {
		w.shut(r)
	}
	w.target.settle()
	w.clock = w.clock.Add(expiration + time.Hour)
}

// expire lets the brokers look for ids whose last records are old, in a silence that is as long as another owner needs to take over.
func (w *world) expire() {
	for _, r := range w.target.replicas {
		w.shut(r)
	}
	w.target.settle()
	w.clock = w.clock.Add(agedAfter + time.Second)
	for _, r := range w.target.replicas {
		r.expired = len(r.log)
	}
}

// forget lets the brokers look for ids whose last records are old while the owner is not sure what they hold: also between two arrivals of one batch, of
// which the first came over a connection that is long gone. In the middle of a pipeline an id that is forgotten and a batch that is refused at that
// moment make a gap, which docs/adr/010 tells.
func (w *world) forget() {
	if w.owners[0].lane.out.phase == open || slices.ContainsFunc(w.conns, func(c *conn) bool { return len(c.pending) > 1 || c.busy && len(c.pending) > 0 }) {
		return
	}
	for _, r := range w.target.replicas {
		r.expired = len(r.log)
	}
}

// linger ends what connections that are gone have left behind, when its time is over.
func (w *world) linger() {
	for _, c := range w.conns {
		if !c.alive && w.clock.Sub(c.died) >= lingersFor {
			c.pending = nil
		}
	}
}

func (w *world) kill(i int) {
	w.listen(w.owners[i])
	w.owners[i].kill()
	w.owners = slices.Delete(w.owners, i, i+1)
}

func (w *world) step() {
	w.clock = w.clock.Add(time.Duration(w.rng.IntN(5000)) * time.Microsecond)
	w.linger()
	o := w.owners[w.rng.IntN(len(w.owners))]
	w.work(o)
	w.rest(o)
	require.Equal(w.t, o.lane.pos.checkpoint.SourceOffset, o.told, "the acked position moved, and nobody was told")
	if w.variant.renews() {
		w.restart(o)
	}
	if w.variant.trails && w.rng.IntN(50) == 0 {
		o.lane.Follow(w.store.now)
		o.told = o.lane.pos.checkpoint.SourceOffset
	}
	w.serve()
	if w.rng.IntN(2) == 0 {
		w.target.replicate(w.target.replicas[w.rng.IntN(3)], w.rng.IntN(4))
	}
	if w.rng.IntN(10) == 0 && w.visible < len(w.source) {
		w.visible++
	}
	if w.calm {
		for _, r := range w.target.replicas {
			w.target.replicate(r, 100)
		}
	} else if w.rng.IntN(15) == 0 {
		w.torment()
	}
}

// drain lets every owner come to the end, without faults, and holds the target against the source.
func (w *world) drain() {
	w.calm = true
	for _, o := range w.owners {
		o.lane.Pause(false)
	}
	end := route.Offset(0)
	steps := 40_000
	if w.variant.renews() {
		steps *= 5 // each record that is left out costs its owner a start
	}
	for i := range steps {
		if i == 20_000 && slices.ContainsFunc(w.owners, (*owner).waits) {
			w.grow(3)
		}
		w.visible = len(w.source)
		end = w.source[len(w.source)-1].next
		w.step()
		if !slices.ContainsFunc(w.owners, func(o *owner) bool { return o.lane.Status().Acked < end }) {
			break
		}
		if w.rng.IntN(500) == 0 {
			w.clock = w.clock.Add(time.Second)
			for _, o := range w.owners {
				o.lane.Retry()
			}
		}
	}
	for _, o := range w.owners {
		if s := o.lane.Status(); s.Acked < end {
			broken("%w: %+v phase %d walk to %d ready %d", errStuck, s, o.lane.out.phase, o.lane.out.walkTo, o.lane.out.ready)
		}
		if err := o.stream.commit(w.t.Context()); err != nil {
			broken("commit: %v", err)
		}
	}
	if w.variant.truncates {
		w.checkGaps(w.store.now)
	} else if got := w.target.forwarded(foreignID); !slices.Equal(got, w.want) {
		broken("the target has\n%v, not\n%v", got, w.want)
	}
	if w.store.now.SourceOffset != end {
		broken("committed %d of %d", w.store.now.SourceOffset, end)
	}
}

// run lives through one seed and returns the promise that was broken.
func run(t testing.TB, seed uint64, v variant) (err error) {
	t.Helper()
	defer func() {
		if r := recover(); r != nil {
			broken, ok := r.(violation)
			if !ok {
				panic(r)
			}
			err = broken.error
		}
	}()
	w := newWorld(t, seed, v)
	for range 300 + w.rng.IntN(1500) {
		w.step()
	}
	w.drain()
	if w.rng.IntN(2) == 0 && !v.renews() {
		w.newEpoch()
	}
	for len(w.owners) > 0 {
		w.kill(0)
	}
	return nil
}

// newEpoch begins the next epoch, as after a change of the handler, when nothing is in flight. Owners that start from older copies must be
// shut out.
func (w *world) newEpoch() {
	for len(w.owners) > 0 {
		w.kill(0)
	}
	w.nextDay()
	w.clock = w.clock.Add(-expiration) // only the silence was wanted
	old := w.store.history[w.rng.IntN(len(w.store.history))]
	next := w.store.now
	next.ProducerEpoch++
	next.Sequence, next.Opened = 0, false
	w.store.now, w.store.history = next, []offsets.Checkpoint{next}
	w.grow(20)
	w.calm = false
	for range 2 {
		w.start(next)
	}
	for range 300 {
		w.step()
	}
	w.drain()
	w.grow(5)
	w.visible = len(w.source)
	w.start(old)
	zombie := w.owners[len(w.owners)-1]
	for range 1000 {
		w.step()
	}
	if zombie.lane.meter.records > 0 {
		broken("an owner of the old epoch got through")
	}
	w.kill(len(w.owners) - 1)
	w.drain()
}

func TestTargetHoldsEveryRecordOnceInOrder(t *testing.T) {
	t.Parallel()
	seeds := uint64(150)
	if testkit.Long() {
		seeds = 20_000
	}
	for seed := range seeds {
		if err := run(t, seed, variant{}); err != nil {
			require.NoError(t, fmt.Errorf("seed %d: %w", seed, err))
		}
	}
}

// A model that finds nothing wrong proves something only if it finds what is wrong.
func TestModelNoticesWrongWays(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]variant{
		"acks=1 taken for acks=all":         {countAcksOne: true},
		"pipeline before certified":         {openAtOnce: true},
		"hint about an unopened id trusted": {trustUnopened: true, from: 5700},
		"repeat to who may have forgotten":  {forgetForgotten: true, from: 60},
		"repeat while the first lingers":    {hasty: true},
		"left out within an epoch":          {refusals: true, sameEpoch: true},
		"gone on from within an epoch":      {truncates: true, sameEpoch: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(2000) {
				seed += v.from // where the search has been short
				if err := run(t, seed, v); err != nil && !errors.Is(err, errStuck) {
					t.Logf("seed %d: %v", seed, err)
					return
				}
			}
			require.Fail(t, "not noticed")
		})
	}
}
