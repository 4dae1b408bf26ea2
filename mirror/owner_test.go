package mirror

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/batch"
	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/internal/slab"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

// variant is a wrong way to drive a lane, by which the model test shows that it would notice.
type variant struct {
	countAcksOne  bool // an answer to acks=1 is taken for one to acks=all
	openAtOnce    bool // the lane pipelines without having certified anything
	trustUnopened bool // the checkpoint says that the id is known to the target, though nothing was ever acknowledged
	// forgetForgotten: that a broker remembers nothing of the id, so that a repeat would be stored again, is not told.
	forgetForgotten bool
	hasty           bool // what may linger over connections that are gone is not waited for
	refusals        bool // no wrong way: the target refuses some records, and they are left out
	truncates       bool // no wrong way: the source deletes what it has had for long, also what nobody has read yet
	sameEpoch       bool // what follows records that were left out, or are gone, is sent in the epoch of what came before
	trails          bool // no wrong way: owners stand by for each other
	from            uint64
}

// renews says that partitions are started anew, so that the source's leader epoch at a checkpoint may not be known.
func (v variant) renews() bool { return v.refusals || v.truncates }

// conn is a connection of an owner to a broker. What was sent over it is worked off in order even when the owner has given it up.
type conn struct {
	owner   *owner
	to      *replica
	pending []*request
	busy    bool
	alive   bool
	died    time.Time // when it was given up
	answers []answer
}

type answer struct {
	all  bool
	base route.Offset
	f    *route.Fault
}

// flight is a batch that a lane handed out: its memory must not change before it was answered.
type flight struct {
	handed batch.Batch
	copied []byte
}

// fetch is an answer of the source on its way.
type fetch struct {
	generation uint32
	segments   []segment
}

// segment is a batch of the source's log, or a range in which nothing is.
type segment struct {
	epoch       int32
	first, next route.Offset
	made        made
}

// owner is one process that copies the partition.
type owner struct {
	t      testing.TB
	rng    *rand.Rand
	v      variant
	mirror *Mirror
	stream *Stream
	lane   *Lane
	pool   *slab.Pool
	events *events.Log

	paused  bool
	broker  *replica
	conn    *conn
	flying  []flight
	fetched *fetch
	asked   *offsets.Inquiry
	told    route.Offset // acked, as it was when the lane told last that it had moved
}

func newOwner(w *world, cfg Config, plan Plan, at offsets.Checkpoint) *owner {
	now := func() time.Time { return w.clock }
	o := &owner{t: w.t, rng: w.rng, v: w.variant, told: at.SourceOffset, pool: slab.NewPool(slab.NewBudget(1<<30), 1<<20).Poison()}
	reg := prometheus.NewRegistry()
	log := hclog.NewNullLogger()
	r := route.Route{Source: "a", Target: "b", ID: "1"}
	o.events = events.NewLog(r, "w", 1000, log, reg)
	o.mirror = New(cfg, Deps{
		Saver: w.store, Events: o.events, Pool: o.pool, Log: log, Registerer: reg, Route: r.String(), Worker: "w", Now: now,
		Jitter: func(most time.Duration) time.Duration { return time.Duration(w.rng.Int64N(int64(most))) },
		Moved:  func(route.Partition) { o.told = o.lane.pos.checkpoint.SourceOffset },
	})
	if w.variant.trustUnopened && !at.Opened {
		at.Opened, at.AckedAt = true, now()
	}
	o.lane = o.mirror.Add(plan, at, Wakers{Source: func() {}, Sink: func() {}})
	o.hurry()
	o.stream = o.lane.stream
	return o
}

// handle runs the stream's loop until nothing is left.
func (o *owner) handle() {
	for len(o.stream.pending) > 0 {
		lanes := o.stream.pending
		o.stream.pending = nil
		for _, l := range lanes {
			l.handle(&o.stream.hand)
		}
	}
}

// fetch asks the lane what it wants and lets the source begin to answer.
func (o *owner) fetch(source []segment) {
	at, generation, room := o.lane.Want()
	if room == 0 || o.fetched != nil {
		return
	}
	if want := epochAt(source, at.Offset); at.LeaderEpoch != want && at.Offset > 0 && (!o.v.renews() || at.LeaderEpoch >= 0) {
		broken("wants %d with leader epoch %d, the source has %d there", at.Offset, at.LeaderEpoch, want)
	}
	f := &fetch{generation: generation}
	most := 1 + o.rng.IntN(12)
	for _, s := range source {
		if s.next > at.Offset && len(f.segments) < most {
			f.segments = append(f.segments, s)
		}
	}
	if len(f.segments) > 0 {
		o.fetched = f
	}
}

// epochAt is the leader epoch of what stands right before an offset.
func epochAt(source []segment, at route.Offset) int32 {
	for _, s := range source {
		if s.first < at && at <= s.next {
			return s.epoch
		}
	}
	return -1
}

// receive hands what was fetched to the lane.
func (o *owner) receive() {
	f := o.fetched
	o.fetched = nil
	size := 0
	for _, s := range f.segments {
		if s.made.numbers != nil {
			size += len(s.made.bytes())
		}
	}
	buffer := o.pool.Get(size, 0)
	rest := buffer.Bytes()
	var batches []batch.Batch
	for _, s := range f.segments {
		if s.made.numbers != nil {
			n := copy(rest, s.made.bytes())
			batches = append(batches, batch.Batch(rest[:n:n]))
			rest = rest[n:]
		}
	}
	last := f.segments[len(f.segments)-1]
	next := last.next
	o.lane.Append(f.generation, buffer, batches, route.Position{Offset: next, LeaderEpoch: last.epoch}, route.Extent{Start: 0, LastStable: next, End: next})
	buffer.Release()
}

// take sends the lane's next batch, or notes what it wants to ask.
func (o *owner) take() *conn {
	n := o.lane.Next()
	if n < 0 && o.asked == nil {
		if q, _ := o.lane.Inquiry(); q.Question != offsets.NoQuestion {
			o.asked = &q
		}
	}
	if n <= 0 {
		return nil
	}
	b, all := o.lane.Take()
	require.Len(o.t, b, n)
	if !all && o.rng.IntN(8) == 0 {
		o.lane.SentAll()
		all = true
	}
	var opened *conn
	if o.conn == nil {
		opened = &conn{owner: o, to: o.broker, alive: true}
		o.conn = opened
	}
	require.Equal(o.t, route.Offset(0), b.BaseOffset())
	o.flying = append(o.flying, flight{b, bytes.Clone(b)})
	o.conn.pending = append(o.conn.pending, &request{conn: o.conn, all: all, stored: stored{
		id: b.ProducerID(), epoch: b.ProducerEpoch(), seq: b.BaseSequence(), numbers: numbersOf(o.t, b),
	}})
	return opened
}

// deliver hands the oldest answer to the lane.
func (o *owner) deliver() {
	if o.conn == nil || len(o.conn.answers) == 0 {
		return
	}
	a := o.conn.answers[0]
	o.conn.answers = o.conn.answers[1:]
	o.answer(a)
}

func (o *owner) answer(a answer) {
	f := o.flying[0]
	o.flying = o.flying[1:]
	require.Equal(o.t, f.copied, []byte(f.handed), "an unanswered batch was overwritten")
	if o.v.countAcksOne && a.f == nil {
		a.all = true
	}
	o.lane.Answer(a.all, a.base, a.f)
	o.hurry()
}

func (o *owner) hurry() {
	if o.v.hasty {
		o.lane.out.settled = time.Time{}
	}
}

// cut loses the connection: everything unanswered is answered with a fault. What the broker has still to read, it reads.
func (o *owner) cut() {
	if o.conn == nil {
		return
	}
	for o.rng.IntN(2) == 0 && len(o.conn.answers) > 0 {
		o.deliver()
	}
	o.conn.alive, o.conn.died = false, o.stream.now()
	o.conn = nil
	for len(o.flying) > 0 {
		o.answer(answer{base: route.NoOffset, f: fault(route.Ambiguous, "LINK")})
	}
}

// hint answers the lane's question with what one replica says, and sends to another from now on.
func (o *owner) hint(h offsets.Hint, f *route.Fault, to *replica) {
	o.asked = nil
	if o.broker != to {
		o.cut()
		o.broker = to
	}
	h.Forgotten = h.Forgotten && !o.v.forgetForgotten
	o.lane.Hint(h, f)
	if l := o.lane; o.v.openAtOnce && l.out.phase == certifying {
		l.out.phase = open
	}
}

// kill ends the process: nothing of it remains but what it has sent.
func (o *owner) kill() {
	o.lane.close()
	o.cut()
	o.mirror.Remove(o.lane)
	require.Zero(o.t, o.pool.Budget().Used(), "memory was not given back")
}

// store is the checkpoint store of all owners. It holds what a commit may claim.
type store struct {
	now     offsets.Checkpoint
	history []offsets.Checkpoint
	check   func(offsets.Checkpoint)
	fails   func() bool
}

// Save stores by the rules that every store has.
func (s *store) Save(_ context.Context, cs []offsets.Checkpoint) error {
	if s.fails() {
		return errors.New("disk on fire")
	}
	for _, c := range cs {
		s.check(c)
		next, err := offsets.Advance(&s.now, c)
		if err != nil {
			return &offsets.ConflictError{Refused: []offsets.Refused{{Checkpoint: c, Reason: err.Error()}}}
		}
		s.now = next
		s.history = append(s.history, next)
	}
	return nil
}

// waits says that the owner rightly waits for the next record: the target has forgotten the id, or its last batch of ours begins before the
// checkpoint, so that nothing that the owner has can certify.
func (o *owner) waits() bool {
	out := &o.lane.out
	return out.phase == walking && out.repeated && (out.bounds < 0 || offsets.Ahead(o.lane.pos.checkpoint.Sequence, out.bounds) < 0)
}
