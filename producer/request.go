package producer

import (
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/causeway-mirror/causeway/batch"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/wire"
)

// item is one lane's batch in a request.
type item struct {
	slot  *Slot
	batch batch.Batch
	all   bool // as the lane wanted it
}

// request is one Produce request from its making to its answer. Requests are reused.
type request struct {
	link  *link
	items []item
	size  int
	all   bool
	alone bool // nothing was unanswered when it was sent
	sent  time.Time
	wire  wire.Produce
	done  func(*kmsg.ProduceResponse, error) // r.answered, made once
}

func (r *request) add(s *Slot, b batch.Batch, all bool) {
	r.items = append(r.items, item{s, b, all})
	r.size += len(b)
	r.all = r.all || all
}

func (r *request) has(target route.Partition) bool {
	for i := range r.items {
		if r.items[i].slot.target == target {
			return true
		}
	}
	return false
}

// seal makes the request ready to be sent: one setting of acks for all, batches of one topic together.
func (r *request) seal(cfg Config) {
	if topic := r.items[0].slot.target.Topic; slices.ContainsFunc(r.items, func(i item) bool { return i.slot.target.Topic != topic }) {
		slices.SortStableFunc(r.items, func(a, b item) int { return strings.Compare(a.slot.target.Topic, b.slot.target.Topic) })
	}
	r.wire.Acks, r.wire.Timeout = 1, cfg.RequestTimeout
	r.wire.Batches = r.wire.Batches[:0]
	if r.all {
		r.wire.Acks = -1
	}
	for i := range r.items {
		it := &r.items[i]
		if r.all && !it.all {
			it.slot.lane.SentAll()
		}
		t := it.slot.target
		r.wire.Batches = append(r.wire.Batches, wire.ProduceBatch{Topic: t.Topic, Partition: t.Partition, Records: it.batch})
	}
	r.sent = time.Now()
}

// answered hands each lane its answer. It is called once, by the connection's reader, or by the sender if nothing was sent.
func (r *request) answered(resp *kmsg.ProduceResponse, err error) {
	now := time.Now()
	trip := now.Sub(r.sent)
	r.link.answered(r, now, trip, err == nil)
	var f *route.Fault
	a := answer{resp: resp}
	if err != nil {
		f = classify(err)
	} else {
		a.count()
	}
	for i := range r.items {
		it := &r.items[i]
		base, fault := route.NoOffset, f
		switch {
		case fault != nil:
		case a.entries < len(r.items) && r.times(it.slot.target) > 1:
			fault = noAnswer() // which of the batches it is of, nothing says
		default:
			base, fault = a.take(it.slot.target)
		}
		if fault != nil {
			r.link.p.metrics.errors.WithLabelValues(fault.Code).Inc()
		}
		it.slot.lane.Answer(r.all, base, fault)
		if it.slot.private.Load() {
			it.slot.prompt.Store(err == nil && trip < r.link.p.cfg.Late)
		}
	}
	r.link.p.recycle(r)
}

// times counts the batches of a target partition.
func (r *request) times(target route.Partition) (n int) {
	for i := range r.items {
		if r.items[i].slot.target == target {
			n++
		}
	}
	return n
}

// answer is a broker's answer, whose entries are given out once each.
type answer struct {
	resp    *kmsg.ProduceResponse
	entries int
	next    int // where the search goes on: answers mostly keep the request's order
}

func (a *answer) count() {
	for i := range a.resp.Topics {
		a.entries += len(a.resp.Topics[i].Partitions)
	}
}

// taken stands in place of the partition in an entry that a lane was given.
const taken = -1

// take looks a partition up.
func (a *answer) take(p route.Partition) (route.Offset, *route.Fault) {
	for k := range a.entries {
		at := (a.next + k) % a.entries
		t, i := 0, at
		for i >= len(a.resp.Topics[t].Partitions) {
			i -= len(a.resp.Topics[t].Partitions)
			t++
		}
		if e := &a.resp.Topics[t].Partitions[i]; e.Partition == p.Partition && a.resp.Topics[t].Topic == p.Topic {
			a.next, e.Partition = at+1, taken
			return route.Offset(e.BaseOffset), classify(kerr.ErrorForCode(e.ErrorCode))
		}
	}
	return route.NoOffset, noAnswer()
}

// noAnswer is what a lane is told whose partition the answer does not name.
func noAnswer() *route.Fault {
	return &route.Fault{Class: route.Ambiguous, Code: "NO_ANSWER", Err: errNoAnswer}
}
