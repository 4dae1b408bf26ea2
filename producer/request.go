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
	r.link.answered(r, time.Now(), err == nil)
	var f *route.Fault
	if err != nil {
		f = classify(err)
	}
	hint := 0
	for i := range r.items {
		it := &r.items[i]
		base, fault := route.NoOffset, f
		if fault == nil {
			base, fault = find(resp, it.slot.target, &hint)
		}
		if fault != nil {
			r.link.p.metrics.errors.WithLabelValues(fault.Code).Inc()
		}
		it.slot.lane.Answer(r.all, base, fault)
	}
	r.link.p.recycle(r)
}

// find looks a partition up in an answer. Answers mostly keep the request's order, so the search goes on where the last one ended.
func find(resp *kmsg.ProduceResponse, p route.Partition, hint *int) (route.Offset, *route.Fault) {
	n := 0
	for i := range resp.Topics {
		n += len(resp.Topics[i].Partitions)
	}
	for k := range n {
		at := (*hint + k) % n
		t, i := 0, at
		for i >= len(resp.Topics[t].Partitions) {
			i -= len(resp.Topics[t].Partitions)
			t++
		}
		if a := &resp.Topics[t].Partitions[i]; a.Partition == p.Partition && resp.Topics[t].Topic == p.Topic {
			*hint = at + 1
			return route.Offset(a.BaseOffset), classify(kerr.ErrorForCode(a.ErrorCode))
		}
	}
	return route.NoOffset, &route.Fault{Class: route.Ambiguous, Code: "NO_ANSWER", Err: errNoAnswer}
}
