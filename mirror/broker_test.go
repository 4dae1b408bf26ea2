package mirror

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

// This is the model of one target partition with three replicas: the rules by which stock brokers take or refuse an idempotent producer's
// batches, replicate them, elect leaders, lose what was not replicated, and forget.

const (
	remembered = 5 // batches of an id by which a leader knows a repeat (KIP-98)
	expiration = 24 * time.Hour
)

// stored is one batch in a log. Replicas share it by pointer, so that equal prefixes are found by identity.
type stored struct {
	id      int64
	epoch   int16
	seq     int32
	numbers []int
	base    route.Offset
	at      time.Time
}

func (s *stored) last() int32       { return offsets.Plus(s.seq, int32(len(s.numbers))-1) }
func (s *stored) end() route.Offset { return s.base + route.Offset(len(s.numbers)) }

// replica is one broker's copy of the partition.
type replica struct {
	log      []*stored
	leads    bool // thinks that it is the leader
	aligned  int  // leader epoch up to which its log was compared with the leader's
	hw       int  // batches that it knows to be replicated
	memory   int  // index of the first batch that duplicates are told by: a restart keeps one (KIP-98's snapshots)
	expired  int  // batches whose ids were forgotten because their records are old
	inISR    bool
	awaiting []*request
}

// request is a Produce request on its way, or waiting for replication.
type request struct {
	stored
	all     bool
	conn    *conn
	needs   int // batches that must be replicated before it is answered
	against *replica
	result  route.Offset
}

// cluster is the three replicas and the truth about who leads.
type cluster struct {
	rng      *rand.Rand
	now      func() time.Time
	replicas [3]*replica
	leader   *replica
	epoch    int
	// aged: the records are older than ids get. Brokers forget them in silences only; a restart forgets them too, and then a second owner that is awake
	// and has nothing on its way may be taken for the first, which docs/adr/010 tells.
	aged bool
	// committed counts the batches that are on every member of the ISR. Invariant: no election takes any of them away.
	committed int
	answer    func(r *request, base route.Offset, f *route.Fault)
	broken    func(format string, args ...any)
	refuses   func(number int) bool // records that no broker takes; nil: there are none
}

func newCluster(rng *rand.Rand, now func() time.Time) *cluster {
	c := &cluster{rng: rng, now: now, epoch: 1}
	for i := range c.replicas {
		c.replicas[i] = &replica{inISR: true, aligned: 1}
	}
	c.leader = c.replicas[0]
	c.leader.leads = true
	return c
}

func fault(class route.FaultClass, code string) *route.Fault {
	return &route.Fault{Class: class, Code: code}
}

// known gives the batches of an id that a replica remembers, newest first.
func (r *replica) known(id int64, now time.Time) (batches []*stored) {
	until := now
	for i := len(r.log) - 1; i >= 0 && len(batches) < remembered; i-- {
		s := r.log[i]
		if s.id != id {
			continue
		}
		if i < r.expired || until.Sub(s.at) > expiration || i < r.memory && len(batches) > 0 {
			break
		}
		if len(batches) > 0 && s.epoch != batches[0].epoch {
			break
		}
		batches, until = append(batches, s), s.at
	}
	return batches
}

// produce is what a broker does with a request.
func (c *cluster) produce(r *replica, q *request) {
	if !r.leads {
		c.answer(q, route.NoOffset, fault(route.Moved, "NOT_LEADER_OR_FOLLOWER"))
		return
	}
	if c.refuses != nil && slices.ContainsFunc(q.numbers, c.refuses) { // looked at before the sequence is
		c.answer(q, route.NoOffset, fault(route.Refused, "INVALID_TIMESTAMP"))
		return
	}
	known := r.known(q.id, c.now())
	if len(known) > 0 {
		newest := known[0]
		switch {
		case q.epoch < newest.epoch:
			c.answer(q, route.NoOffset, fault(route.Order, "INVALID_PRODUCER_EPOCH"))
			return
		case q.epoch > newest.epoch && q.seq != 0, q.epoch == newest.epoch && q.seq != offsets.Plus(newest.last(), 1):
			for _, s := range known {
				if s.epoch == q.epoch && s.seq == q.seq && s.last() == q.last() {
					c.wait(r, q, s)
					return
				}
			}
			c.answer(q, route.NoOffset, fault(route.Order, "OUT_OF_ORDER_SEQUENCE_NUMBER"))
			return
		}
	}
	s := q.stored
	s.at, s.base = c.now(), r.end()
	r.log = append(r.log, &s)
	c.wait(r, q, &s)
	c.advance()
}

func (r *replica) end() route.Offset {
	if len(r.log) == 0 {
		return 0
	}
	return r.log[len(r.log)-1].end()
}

func (r *replica) endAt(batches int) route.Offset {
	if batches == 0 {
		return 0
	}
	return r.log[batches-1].end()
}

// wait answers acks=1 at once, and acks=all when s is replicated.
func (c *cluster) wait(r *replica, q *request, s *stored) {
	q.result = s.base
	if !q.all {
		c.answer(q, s.base, nil)
		return
	}
	for i := range r.log {
		if r.log[i] == s {
			q.needs = i + 1
		}
	}
	q.against = r
	r.awaiting = append(r.awaiting, q)
	c.advance()
}

// advance moves the high watermark of the true leader and answers who waited for it.
func (c *cluster) advance() {
	least := len(c.leader.log)
	for _, r := range c.replicas {
		switch {
		case !r.inISR || r == c.leader:
		case r.aligned < c.epoch:
			return // it has not fetched from this leader yet
		default:
			least = min(least, len(r.log))
		}
	}
	c.committed = max(c.committed, least)
	c.leader.hw = c.committed
	waiting := c.leader.awaiting
	c.leader.awaiting = nil
	for _, q := range waiting {
		if q.needs <= c.committed {
			c.answer(q, q.result, nil)
		} else {
			c.leader.awaiting = append(c.leader.awaiting, q)
		}
	}
}

// replicate lets a follower fetch at most n batches from the leader.
func (c *cluster) replicate(r *replica, n int) {
	if r == c.leader {
		return
	}
	if r.leads {
		c.learn(r)
	}
	if r.aligned < c.epoch {
		same := 0
		for same < len(r.log) && same < len(c.leader.log) && r.log[same] == c.leader.log[same] {
			same++
		}
		if same < len(r.log) {
			r.log = r.log[:same:same]
			r.expired = min(r.expired, same)
			r.memory = max(0, same-1-c.rng.IntN(2)*4) // its producer state is read from a snapshot
		}
		r.hw = min(r.hw, same)
		r.aligned = c.epoch
	}
	for ; n > 0 && len(r.log) < len(c.leader.log); n-- {
		r.log = append(r.log, c.leader.log[len(r.log)])
	}
	if !r.inISR && len(r.log) == len(c.leader.log) {
		r.inISR = true
	}
	c.advance()
	r.hw = min(len(r.log), c.committed)
}

// learn tells a deposed leader that it is one.
func (c *cluster) learn(r *replica) {
	if r == c.leader {
		return
	}
	r.leads = false
	waiting := r.awaiting
	r.awaiting = nil
	for _, q := range waiting {
		c.answer(q, route.NoOffset, fault(route.Moved, "NOT_LEADER_OR_FOLLOWER"))
	}
}

// elect makes another member of the ISR the leader. The old one may go on believing that it leads.
func (c *cluster) elect() {
	var candidates []*replica
	for _, r := range c.replicas {
		if r.inISR && r != c.leader {
			candidates = append(candidates, r)
		}
	}
	if len(candidates) == 0 {
		return
	}
	r := candidates[c.rng.IntN(len(candidates))]
	if len(r.log) < c.committed {
		c.broken("model: a clean election loses %d of %d committed batches", c.committed-len(r.log), c.committed)
	}
	c.epoch++
	c.leader, r.leads, r.aligned = r, true, c.epoch
	c.advance()
}

// restart takes a broker down and up: its connections are gone, and it remembers the last batch of an id only.
func (c *cluster) restart(r *replica) {
	if r == c.leader {
		c.elect()
		if r == c.leader {
			return // nobody else may lead
		}
	}
	c.learn(r)
	r.memory = len(r.log)
}

// timeout answers requests that wait too long; what they brought may be stored.
func (c *cluster) timeout(r *replica) {
	waiting := r.awaiting
	r.awaiting = nil
	for _, q := range waiting {
		c.answer(q, route.NoOffset, fault(route.Ambiguous, "REQUEST_TIMED_OUT"))
	}
}

// ask answers an inquiry from one replica's log, which need not be the leader's.
func (c *cluster) ask(r *replica, q offsets.Inquiry) (offsets.Hint, *route.Fault) {
	h := offsets.Hint{Start: route.NoOffset, End: r.endAt(r.hw), Timestamp: -1, First: -1}
	if known := r.known(q.ProducerID, c.now()); len(known) > 0 {
		h.Known, h.Epoch, h.Last, h.Timestamp = true, known[0].epoch, known[0].last(), 1000 // as all records have it
	}
	if q.Question != offsets.AskLog {
		return h, nil
	}
	if !r.leads {
		return h, fault(route.Moved, "NOT_LEADER_OR_FOLLOWER")
	}
	h.Start, h.ReadFrom, h.Read, h.Forgotten = 0, q.From, true, !h.Known
	for _, s := range r.log[:r.hw] {
		if s.base <= q.From && q.From < s.end() && s.id != q.ProducerID {
			h.Replaced = true
		}
		if s.end() <= q.From || s.id != q.ProducerID || s.epoch < q.ProducerEpoch {
			continue
		}
		if h.Forgotten {
			h.Known, h.Epoch, h.Last, h.Timestamp = true, s.epoch, s.last(), 1000
		}
		if h.First, h.LastRecord, h.After = -1, (offsets.Mark{}), 0; h.Epoch == s.epoch && h.Last == s.last() {
			h.First, h.LastRecord, h.After = s.seq, markOf(s.numbers[len(s.numbers)-1]), s.end()
		}
	}
	return h, nil
}

// settle ends everything that does not outlast a day: deposed leaders, lagging followers, connections.
func (c *cluster) settle() {
	for range 2 { // the second time followers hear of the high watermark
		for _, r := range c.replicas {
			c.replicate(r, len(c.leader.log))
		}
		c.advance()
	}
}

// forwarded is what a reader of committed records finds of ours.
func (c *cluster) forwarded(foreign int64) (numbers []int) {
	for _, s := range c.leader.log[:c.committed] {
		if s.id != foreign {
			numbers = append(numbers, s.numbers...)
		}
	}
	return numbers
}
