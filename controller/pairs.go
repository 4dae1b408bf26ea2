package controller

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/causeway-mirror/causeway/route"
)

// pairs is a Cluster in which each partition of some topics has two workers: the owner, which is decided as that of any other partition, and a hot
// standby that mirrors it as well. Whatever is written of such a topic gets its standbys here.
type pairs struct {
	Cluster

	replicas func(topic string) int
}

// Create implements Cluster.
func (c *pairs) Create(ctx context.Context, topics ...Topic) error {
	return c.Cluster.Create(ctx, c.completed(topics)...)
}

// Write implements Cluster.
func (c *pairs) Write(ctx context.Context, topics []Topic) error {
	return c.Cluster.Write(ctx, c.completed(topics))
}

func (c *pairs) completed(topics []Topic) []Topic {
	concerned := func(t Topic) bool { return c.replicas(t.Name) > 1 || len(t.First) > 0 }
	if !slices.ContainsFunc(topics, concerned) {
		return topics
	}
	s := c.State()
	busy := s.held()
	out := make([]Topic, len(topics))
	for i, topic := range topics {
		if out[i] = topic; concerned(topic) {
			out[i] = s.paired(topic, c.replicas(topic.Name) > 1, busy)
		}
	}
	return out
}

// held counts what each worker has, as owner or standby.
func (s *State) held() map[string]int {
	busy := map[string]int{}
	for _, topic := range s.Topics {
		for _, workers := range topic.Assigned {
			for id := range workers {
				busy[id]++
			}
		}
	}
	return busy
}

// paired gives each partition of a topic that is mirrored a standby, if a worker is there, or with on false takes them away. One that has a standby
// which can work keeps it; else who had the partition before goes before all others, and then who has least, by busy, which is kept up to date.
func (s *State) paired(topic Topic, on bool, busy map[string]int) Topic {
	before := s.Topics[topic.Name]
	topic = topic.Clone()
	first := map[int32]string{}
	for p := range topic.Assigned {
		owner := topic.Owner(p)
		state := topic.Assigned[p][owner]
		second := ""
		if on && state == Online {
			second = s.second(topic, before, route.Partition{Topic: topic.Name, Partition: p}, owner, busy)
		}
		topic.Assigned[p] = map[string]string{owner: state}
		if second != "" {
			topic.Assigned[p][second] = state
			first[p] = owner
			busy[second]++
		}
	}
	topic.First = first
	return topic
}

// second is who stands by for a partition; empty if nobody can.
func (s *State) second(topic, before Topic, p route.Partition, owner string, busy map[string]int) string {
	can := func(id string) bool { return id != owner && s.Workers[id].usable() }
	had := before.Owner(p.Partition)
	for _, workers := range []map[string]string{topic.Assigned[p.Partition], before.Assigned[p.Partition]} {
		for _, id := range slices.Sorted(maps.Keys(workers)) {
			if id != had && can(id) {
				return id
			}
		}
	}
	if can(had) {
		return had
	}
	all := slices.DeleteFunc(slices.Collect(maps.Keys(s.Workers)), func(id string) bool { return !can(id) })
	if len(all) == 0 {
		return ""
	}
	return slices.MinFunc(all, func(a, b string) int { return cmp.Or(busy[a]-busy[b], cmp.Compare(a, b)) })
}

// promoted is the state with standbys in the place of owners that can't work, but for those that are waited for; changed are the topics of which that,
// a standby that is missing, or that they shall have none any more, must be written.
func (s *State) promoted(replicas func(topic string) int, waits func(worker string) bool) (next *State, changed map[string]Topic) {
	changed = map[string]Topic{}
	for name, topic := range s.Topics {
		if replicas(name) < 2 {
			if len(topic.First) > 0 {
				changed[name] = topic.Clone()
			}
			continue
		}
		fixed, whole := s.replaced(topic, waits)
		if !whole {
			changed[name] = fixed
		}
	}
	if len(changed) == 0 {
		return s, nil
	}
	copied := *s
	copied.Topics = maps.Clone(s.Topics)
	maps.Copy(copied.Topics, changed)
	for name, topic := range changed { // where nobody is there to stand by, nothing changes
		if done := s.paired(topic, replicas(name) > 1, s.held()); done.sameWorkers(s.Topics[name]) {
			delete(changed, name)
		}
	}
	return &copied, changed
}

// replaced is a topic with standbys in the place of owners that can't work and are not waited for; whole says that nothing of it is to be written.
func (s *State) replaced(topic Topic, waits func(worker string) bool) (fixed Topic, whole bool) {
	fixed, whole = topic.Clone(), true
	for p, workers := range topic.Assigned {
		owner := topic.Owner(p)
		usable := s.Workers[owner].usable()
		for id := range workers {
			if id != owner && !usable && s.Workers[id].usable() && !waits(owner) {
				fixed.First[p], whole = id, false
			}
			whole = whole && (id == owner || s.Workers[id].usable())
		}
		whole = whole && (len(workers) > 1 || topic.Off(p))
	}
	return fixed, whole
}

// sameWorkers says that each partition has the same workers, and the same of them as owner.
func (t Topic) sameWorkers(o Topic) bool {
	for p := range max(t.Partitions, o.Partitions) {
		if !maps.Equal(t.Assigned[p], o.Assigned[p]) || t.Owner(p) != o.Owner(p) {
			return false
		}
	}
	return true
}
