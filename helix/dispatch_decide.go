package helix

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// transition is one step that a partition of an instance should take next.
type transition struct {
	instance, session   string
	resource, partition string
	from, to            State
	factory             string
	timeout             time.Duration // 0: none
	batch               bool          // may share a message with others
}

// compare gives the order in which transitions are sent.
func (t transition) compare(o transition) int {
	return cmp.Or(
		cmp.Compare(t.instance, o.instance), cmp.Compare(t.resource, o.resource), cmp.Compare(t.from, o.from), cmp.Compare(t.to, o.to),
		comparePartitions(t.partition, o.partition),
	)
}

// comparePartitions orders numbers as numbers: they are not padded.
func comparePartitions(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

// nextState is the first step on the way between two states of the model OnlineOffline; empty if there is none.
func nextState(from, to State) State {
	switch {
	case from == Online && (to == Offline || to == Dropped), from == Error && to == Offline:
		return Offline
	case from == Offline && (to == Online || to == Dropped), from == Error && to == Dropped:
		return to
	}
	return ""
}

// precedence is the model's priority among transitions of one partition.
func precedence(from, to State) int {
	switch {
	case from == Offline && to == Online:
		return 0
	case from == Online && to == Offline:
		return 1
	case from == Offline && to == Dropped:
		return 2
	}
	return 3
}

// decide gives the transitions that a resource needs now, in the order of sending. overlap lets a new owner come ONLINE before the old one is
// OFFLINE, as Helix does from 0.8.0 on.
func (s *snapshot) decide(resource string, overlap bool) []transition {
	ideal, holders := s.ideals[resource], s.held[resource]
	if ideal != nil && !ideal.usable || ideal == nil && len(holders) == 0 {
		return nil
	}
	partitions := map[string]bool{}
	if ideal != nil {
		for partition := range ideal.record.Map {
			partitions[partition] = true
		}
	}
	for _, h := range holders {
		for partition := range h.states {
			partitions[partition] = true
		}
	}
	busy := s.busy(resource)
	var all []transition
	for partition := range partitions {
		all = append(all, s.decidePartition(resource, partition, busy[partition], overlap)...)
	}
	slices.SortFunc(all, transition.compare)
	return all
}

// underway is what has been sent for one partition: by instance, the messages.
type underway map[string][]*Message

// busy collects what has been sent for a resource and is still in the queues of live sessions, by partition.
func (s *snapshot) busy(resource string) map[string]underway {
	busy := map[string]underway{}
	for instance, ids := range s.pending[resource] {
		live := s.live[instance]
		if live == nil {
			continue
		}
		for id := range ids {
			m := s.queues[instance][id]
			if m.TargetSession != live.session && m.TargetSession != anySession {
				continue // the participant deletes it when it sees it
			}
			for _, partition := range m.Partitions {
				if busy[partition] == nil {
					busy[partition] = underway{}
				}
				busy[partition][instance] = append(busy[partition][instance], m)
			}
		}
	}
	return busy
}

// decidePartition compares what should be with what is, and holds back what would exceed the bound.
func (s *snapshot) decidePartition(resource, partition string, busy underway, overlap bool) []transition {
	ideal := s.ideals[resource]
	instances := map[string]bool{}
	for instance, h := range s.held[resource] {
		if _, ok := h.states[partition]; ok {
			instances[instance] = true
		}
	}
	if ideal != nil {
		for instance := range ideal.record.Map[partition] {
			instances[instance] = true
		}
	}
	var wanted []transition
	for _, instance := range slices.Sorted(maps.Keys(instances)) {
		live := s.live[instance]
		if live == nil || len(busy[instance]) > 0 { // whatever is underway must end first
			continue
		}
		current, _ := s.state(resource, partition, instance)
		to := nextState(current, s.desired(resource, partition, instance))
		if to == "" {
			continue
		}
		t := transition{
			instance: instance, session: live.session, resource: resource, partition: partition, from: current, to: to, factory: DefaultFactory,
		}
		s.dress(&t)
		wanted = append(wanted, t)
	}
	if overlap {
		return wanted
	}
	return s.bounded(wanted, partition, busy)
}

// dress completes a transition with what the resource's records say.
func (s *snapshot) dress(t *transition) {
	ideal, held := s.ideals[t.resource], s.held[t.resource][t.instance]
	if held != nil {
		t.factory, t.batch = held.factory, held.batch
	}
	if ideal != nil {
		t.factory, t.batch = ideal.factory, ideal.batch
		t.timeout = millis(ideal.record.Simple[string(t.from)+"-"+string(t.to)+"_TIMEOUT"])
	}
	// Java participants take only one partition of a batch out of their current state.
	t.batch = t.batch && s.live[t.instance].batches && t.to != Dropped
}

// desired is where a live instance's partition should be; empty: where it is.
func (s *snapshot) desired(resource, partition, instance string) State {
	ideal, config := s.ideals[resource], s.configs[instance]
	current, held := s.state(resource, partition, instance)
	if ideal == nil {
		return Dropped
	}
	state, assigned := ideal.record.Map[partition][instance]
	blocked := ideal.off || config.blocks(resource, partition)
	switch {
	case held && blocked: // one that was taken away while it is disabled stays OFFLINE, too
		if current == Error {
			return ""
		}
		return Offline
	case !assigned:
		return Dropped
	case blocked || current == Error:
		return ""
	}
	if to := State(strings.ToUpper(state)); held || to != Dropped { // it has nothing to drop
		return to
	}
	return ""
}

// bounded accepts transitions of one partition as long as no state gets more replicas than it may. It counts a transition underway for both of
// its states, so a new owner comes ONLINE only after the old one is OFFLINE and the message that made it so is gone.
func (s *snapshot) bounded(wanted []transition, partition string, busy underway) []transition {
	if len(wanted) == 0 {
		return nil
	}
	resource := wanted[0].resource
	bound := -1
	if ideal := s.ideals[resource]; ideal != nil {
		if bound = ideal.replicas; ideal.anyLive {
			bound = len(s.live)
		}
	}
	if bound < 0 {
		return wanted
	}
	online := 0
	for _, h := range s.held[resource] {
		if h.states[partition] == Online {
			online++
		}
	}
	for _, messages := range busy {
		for _, m := range messages {
			if m.From == Online {
				online++
			}
			if m.To == Online {
				online++
			}
		}
	}
	slices.SortStableFunc(wanted, func(a, b transition) int { return cmp.Compare(precedence(a.from, a.to), precedence(b.from, b.to)) })
	accepted := wanted[:0]
	for _, t := range wanted {
		if t.to == Online {
			if online+1 > bound {
				continue
			}
			online++
		}
		accepted = append(accepted, t)
	}
	return accepted
}

// view is a resource's external view, or nil if it should have none. before is the one that is there, whose fields survive the ideal state.
func (s *snapshot) view(resource string, before *Record) *Record {
	ideal, holders := s.ideals[resource], s.held[resource]
	switch {
	case ideal != nil && !ideal.usable:
		return before // not ours to judge
	case ideal != nil && ideal.hidden:
		return nil
	}
	v := NewRecord(resource)
	v.Simple[keyBucketSize] = "0"
	switch {
	case ideal != nil:
		maps.Copy(v.Simple, ideal.record.Simple)
	case before != nil:
		maps.Copy(v.Simple, before.Simple)
	}
	for instance, h := range holders {
		if s.live[instance] == nil {
			continue
		}
		for partition, state := range h.states {
			if v.Map[partition] == nil {
				v.Map[partition] = map[string]string{}
			}
			v.Map[partition][instance] = string(state)
		}
	}
	if ideal == nil && len(v.Map) == 0 {
		return nil
	}
	return v
}
