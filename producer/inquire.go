package producer

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/wire"
)

// inquiry is a lane's question.
type inquiry struct {
	slot *Slot
	offsets.Inquiry
	topic         route.TopicID // as metadata has it
	leader, epoch int32         // who leads, and its leader epoch, -1 where metadata gives none
}

// round answers inquiries: who leads, and what the leaders have. Each inquiry gets exactly one hint, and none waits for one that takes longer
// to be answered.
func (p *Producer) round(ctx context.Context, asked []inquiry) {
	topics := map[string]bool{}
	for _, q := range asked {
		topics[q.slot.target.Topic] = true
	}
	names := make([]string, 0, len(topics))
	for t := range topics {
		names = append(names, t)
	}
	asking, cancel := context.WithTimeout(ctx, p.cfg.RequestTimeout)
	m, err := p.client.Metadata(asking, names...)
	cancel()
	p.reached(err)
	if err != nil {
		f := classify(err)
		f.Class, f.Code = route.Unreachable, "UNREACHABLE"
		for _, q := range asked {
			q.answer(offsets.Hint{}, f)
		}
		return
	}
	byLeader := map[int32][]inquiry{}
	for _, q := range asked {
		at, err := leaderOf(m, q.slot.target)
		if err != nil {
			q.answer(offsets.Hint{}, classify(err))
			continue
		}
		q.topic = m.Topics[q.slot.target.Topic].ID
		q.leader, q.epoch = at.Leader, at.LeaderEpoch
		byLeader[q.leader] = append(byLeader[q.leader], q)
	}
	var wg sync.WaitGroup
	for leader, qs := range byLeader {
		wg.Go(func() { p.askLeader(ctx, leader, qs) })
	}
	wg.Wait()
}

func leaderOf(m *wire.Metadata, target route.Partition) (at wire.PartitionMetadata, err error) {
	t, ok := m.Topics[target.Topic]
	if !ok {
		return at, kerr.UnknownTopicOrPartition
	}
	if t.Err != nil {
		return at, t.Err
	}
	for i := range t.Partitions {
		if q := &t.Partitions[i]; q.Partition == target.Partition {
			if q.Leader < 0 {
				return at, kerr.LeaderNotAvailable
			}
			return *q, nil
		}
	}
	return at, kerr.UnknownTopicOrPartition
}

// answer hands the hint to the lane, which then wakes its link.
func (q inquiry) answer(h offsets.Hint, f *route.Fault) {
	q.slot.queued.Store(false)
	q.slot.lane.Hint(h, f)
	if q.slot.link.Load() == nil {
		q.slot.Wake()
	}
}

// askLeader asks one broker about all partitions that it leads, and binds them to its link.
func (p *Producer) askLeader(ctx context.Context, leader int32, qs []inquiry) {
	common := p.link(leader)
	parts, leaders := make([]route.Partition, 0, len(qs)), map[route.Partition]int32{}
	for _, q := range qs {
		parts = append(parts, q.slot.target)
		leaders[q.slot.target] = leader
		p.bind(q.slot, common)
	}
	asking, cancel := context.WithTimeout(ctx, p.cfg.RequestTimeout)
	defer cancel()
	known, err := p.client.DescribeProducers(asking, leader, parts)
	unsupported := errors.Is(err, wire.ErrUnsupported)
	if err != nil && !unsupported {
		f := classify(err)
		for _, q := range qs {
			q.answer(offsets.Hint{}, f)
		}
		return
	}
	ends, endsErr := p.client.ListOffsets(asking, leaders, wire.AtEnd, false)
	var logs []reading
	for _, q := range qs {
		h, f := hint(q, known[q.slot.target], ends[q.slot.target], endsErr)
		if f == nil && (q.Question == offsets.AskLog || unsupported) {
			logs = append(logs, reading{q, h})
			continue
		}
		q.answer(h, f)
	}
	if len(logs) > 0 {
		starts, err := p.client.ListOffsets(asking, leaders, wire.AtStart, false)
		p.readLogs(ctx, common, logs, func(target route.Partition) (route.Offset, error) {
			return starts[target].Offset, cmp.Or(err, starts[target].Err)
		})
	}
}

// bind chooses the link of a slot that has nothing unanswered.
func (p *Producer) bind(s *Slot, common *link) {
	to := common
	if s.private.Load() {
		to = p.privateLink(common.broker, s.target)
	}
	s.link.Store(to)
}

func hint(q inquiry, known wire.Producers, end wire.ListedOffset, endErr error) (offsets.Hint, *route.Fault) {
	h := offsets.Hint{Start: route.NoOffset, End: end.Offset, Timestamp: -1, First: -1, TopicID: q.topic}
	for _, err := range []error{known.Err, endErr, end.Err} {
		if err != nil && !errors.Is(err, kerr.TopicAuthorizationFailed) { // without READ the log can't be asked; writing shows the rest
			return h, classify(err)
		}
	}
	for _, a := range known.Active {
		if a.ID == q.ProducerID && a.LastSequence >= 0 {
			h.Known, h.Epoch, h.Last, h.Timestamp = true, a.Epoch, a.LastSequence, a.LastTimestamp
		}
	}
	return h, nil
}
