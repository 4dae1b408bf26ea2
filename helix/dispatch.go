package helix

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"
)

const (
	// messagesPerTransaction is where larger transactions stopped being faster.
	messagesPerTransaction = 100
	// partitionsPerBatch bounds a batch message, so that one can't outgrow a znode.
	partitionsPerBatch = 2000
	// staleChecks is how often messages are looked at within StaleAfter.
	staleChecks = 4
)

// dispatcher puts messages into the queues of instances. It belongs to its term's run.
type dispatcher struct {
	t *Term
	// deferred are resources that wait for room in an instance's queue.
	deferred map[string]map[string]bool
	stale    map[string]time.Time // path of a message → since when it can't be carried out any more
	reliefs  reliefs
	done     []string // messages to the controller that have been carried out
}

// send decides for the given resources and sends what is to be sent.
func (d *dispatcher) send(ctx context.Context, resources []string) error {
	if err := d.acknowledge(ctx); err != nil {
		return err
	}
	var messages []*Message
	room := map[string]int{}
	for _, resource := range resources {
		transitions := d.t.snap.decide(resource, d.t.c.cfg.Overlap)
		if d.t.c.cfg.Overlap {
			transitions = d.reliefs.held(d.t.snap, resource, transitions, time.Now())
		}
		for _, m := range d.compose(transitions) {
			if _, ok := room[m.Target]; !ok {
				room[m.Target] = d.t.c.cfg.MaxOutstanding - len(d.t.snap.queues[m.Target])
			}
			if room[m.Target] <= 0 {
				d.postpone(m)
				continue
			}
			room[m.Target]--
			messages = append(messages, m)
		}
	}
	return d.write(ctx, messages)
}

// compose makes messages of one resource's transitions; those that may share one do.
func (d *dispatcher) compose(transitions []transition) []*Message {
	now := time.Now()
	var messages []*Message
	var last transition
	for i, t := range transitions {
		if n := len(messages); i > 0 && t.batch && t.sharesWith(last) && len(messages[n-1].Partitions) < partitionsPerBatch {
			messages[n-1].Partitions = append(messages[n-1].Partitions, t.partition)
			continue
		}
		m := newTransition(Message{
			Source: d.t.c.cfg.Name, Target: t.instance, TargetSession: t.session, Resource: t.resource, From: t.from, To: t.to, Created: now,
		}, t.partition)
		m.SourceSession, m.Factory, m.Timeout, m.Batch = d.t.session.ID(), t.factory, t.timeout, t.batch
		messages = append(messages, m)
		last = t
	}
	return messages
}

// sharesWith says that two transitions may be in one batch message.
func (t transition) sharesWith(o transition) bool {
	return o.batch && t.instance == o.instance && t.session == o.session && t.resource == o.resource && t.from == o.from && t.to == o.to &&
		t.factory == o.factory
}

// postpone has the resource looked at again when the instance's queue is shorter.
func (d *dispatcher) postpone(m *Message) {
	if d.deferred[m.Target] == nil {
		d.deferred[m.Target] = map[string]bool{}
	}
	d.deferred[m.Target][m.Resource] = true
}

// relieve has those resources looked at again of which an old owner waits for the new one.
func (d *dispatcher) relieve() {
	d.t.mu.Lock()
	defer d.t.mu.Unlock()
	for resource := range d.reliefs.since {
		d.t.snap.touch(resource)
	}
}

// revive marks what waited for room. It waits until half a queue is free, or each message that leaves would have everything looked at.
func (d *dispatcher) revive() {
	d.t.mu.Lock()
	defer d.t.mu.Unlock()
	for instance, resources := range d.deferred {
		if len(d.t.snap.queues[instance]) > d.t.c.cfg.MaxOutstanding/2 {
			continue
		}
		for resource := range resources {
			d.t.snap.touch(resource)
		}
		delete(d.deferred, instance)
	}
}

// write creates the messages, many in a transaction, and notes those that are there as underway, before anything is decided again.
func (d *dispatcher) write(ctx context.Context, messages []*Message) error {
	ops := make([]Op, 0, len(messages))
	kept := messages[:0]
	for _, m := range messages {
		data, err := m.record().Encode()
		if err != nil {
			d.t.log.Error("message can't be written", "resource", m.Resource, "instance", m.Target, "err", err)
			continue
		}
		ops, kept = append(ops, CreateOp(d.t.cluster().message(m.Target, m.ID), data)), append(kept, m)
	}
	chunks := Chunks(ops, messagesPerTransaction)
	starts := make([]int, len(chunks))
	for i, n := 0, 0; i < len(chunks); i++ {
		starts[i] = n
		n += len(chunks[i])
	}
	var mu sync.Mutex
	var sent, unsure []*Message
	err := d.t.session.Each(ctx, len(chunks), func(ctx context.Context, i int) error {
		all := kept[starts[i] : starts[i]+len(chunks[i])]
		there, err := d.writeChunk(ctx, all, chunks[i])
		mu.Lock()
		defer mu.Unlock()
		sent = append(sent, there...)
		if errors.Is(err, ErrLost) {
			unsure = append(unsure, all...)
			return nil
		}
		return err
	})
	d.note(sent, unsure)
	return err
}

// writeChunk gives the messages that were written. ErrLost: nobody knows.
func (d *dispatcher) writeChunk(ctx context.Context, messages []*Message, ops []Op) ([]*Message, error) {
	err := d.t.admin.transact(ctx, ops...)
	if err == nil {
		return messages, nil
	}
	if !spoils(err) {
		return nil, err
	}
	if len(ops) == 1 { // an instance whose folder is gone has no use for a message
		d.t.log.Warn("message can't be delivered", "instance", messages[0].Target, "resource", messages[0].Resource, "err", err)
		return nil, nil
	}
	var sent []*Message
	for i := range ops { // one of them spoils it for all
		there, err := d.writeChunk(ctx, messages[i:i+1], ops[i:i+1])
		if err != nil {
			return sent, err
		}
		sent = append(sent, there...)
	}
	return sent, nil
}

// note makes messages known that were sent. Of those that nobody knows of, the queues are read before anything is decided again.
func (d *dispatcher) note(sent, unsure []*Message) {
	c := d.t.cluster()
	d.t.mu.Lock()
	defer d.t.mu.Unlock()
	for _, m := range unsure {
		d.t.follow.mark(point{c.messages(m.Target), true})
		d.t.snap.touch(m.Resource)
	}
	for _, m := range sent {
		d.t.follow.learn(point{c.message(m.Target, m.ID), false})
		d.t.snap.setQueued(m.Target, m.ID, m, false)
		d.t.c.metrics.sent.Inc()
		d.t.c.metrics.transitions.Add(float64(len(m.Partitions)))
	}
}

// acknowledge removes messages to the controller.
func (d *dispatcher) acknowledge(ctx context.Context) error {
	for ; len(d.done) > 0; d.done = d.done[1:] {
		if err := d.remove(ctx, d.done[0]); err != nil {
			return err
		}
	}
	return nil
}

// remove deletes a message. One that may not be deleted stays.
func (d *dispatcher) remove(ctx context.Context, path string) error {
	if err := d.t.admin.remove(ctx, path); !errors.Is(err, ErrDenied) {
		return err
	}
	return nil
}

// sweep removes messages that can't be carried out any more, once they have been so for long: participants remove what they refuse themselves,
// and one that they forgot would keep its partition from ever moving again.
func (d *dispatcher) sweep(ctx context.Context) error {
	now := time.Now()
	before := maps.Clone(d.stale)
	clear(d.stale)
	for instance, queue := range d.t.snap.queues {
		for id, m := range queue {
			if m == nil || !d.t.snap.hopeless(instance, m) {
				continue
			}
			path := d.t.cluster().message(instance, id)
			since, seen := before[path]
			if !seen {
				since = now
			}
			d.stale[path] = since
		}
	}
	for _, path := range slices.Sorted(maps.Keys(d.stale)) {
		if now.Sub(d.stale[path]) < d.t.c.cfg.StaleAfter {
			continue
		}
		d.t.log.Warn("stale message is removed", "path", path)
		d.t.c.metrics.stale.Inc()
		if err := d.remove(ctx, path); err != nil {
			return err
		}
	}
	return nil
}

// hopeless says that a message is for another session, or that none of its partitions is in the state that it begins with.
func (s *snapshot) hopeless(instance string, m *Message) bool {
	live := s.live[instance]
	if live == nil {
		return false // its queue is of no concern
	}
	if m.TargetSession != live.session && m.TargetSession != anySession {
		return true
	}
	return !slices.ContainsFunc(m.Partitions, func(partition string) bool {
		state, _ := s.state(m.Resource, partition, instance)
		return state == m.From
	})
}
