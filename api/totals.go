package api

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/causeway-mirror/causeway/route"
)

// totalsOfRoute sums a snapshot up.
func totalsOfRoute(name string, s Snapshot) Route {
	r := Route{Name: name, State: s.State, Reason: s.Reason, Partitions: map[string]int{}}
	for i := range s.Partitions {
		p := &s.Partitions[i]
		r.Partitions[p.State]++
		r.LagRecords += max(p.LagRecords, 0)
		r.RecordsPerSecond += p.RecordsPerSecond
		r.BytesPerSecond += p.BytesPerSecond
	}
	return r
}

// totalsOfTopics groups partitions by topic, in order of names.
func totalsOfTopics(parts []Partition) []Topic {
	byName := map[string]*Topic{}
	for i := range parts {
		p := &parts[i]
		t := byName[p.Topic]
		if t == nil {
			t = &Topic{Topic: p.Topic, TargetTopic: p.TargetTopic, States: map[string]int{}, LagRecords: -1}
			byName[p.Topic] = t
		}
		t.PartitionCount++
		t.States[p.State]++
		if p.LagRecords >= 0 {
			t.LagRecords = max(t.LagRecords, 0) + p.LagRecords
		}
		t.LagSeconds = max(t.LagSeconds, p.LagSeconds)
		t.RecordsPerSecond += p.RecordsPerSecond
		t.BytesPerSecond += p.BytesPerSecond
	}
	topics := make([]Topic, 0, len(byName))
	for _, t := range byName {
		topics = append(topics, *t)
	}
	slices.SortFunc(topics, func(a, b Topic) int { return cmp.Compare(a.Topic, b.Topic) })
	return topics
}

// partitionsOf returns the partitions of one topic in order of their numbers.
func partitionsOf(parts []Partition, topic string) []Partition {
	var found []Partition
	for i := range parts {
		if parts[i].Topic == topic {
			found = append(found, parts[i])
		}
	}
	slices.SortFunc(found, func(a, b Partition) int { return cmp.Compare(a.Partition, b.Partition) })
	return found
}

// readiness says whether traffic and roll-outs may rely on this process. One halted partition must not take the others' process out of
// service, so it is listed only; when all are halted nothing moves and the process is not ready.
func readiness(s Snapshot) Readiness {
	r := Readiness{Halted: []string{}}
	for i := range s.Partitions {
		if p := &s.Partitions[i]; p.State == StateHalted {
			r.Halted = append(r.Halted, p.id().String())
		}
	}
	slices.Sort(r.Halted)
	switch s.State {
	case StateStarting, StateSuspended, StateDegraded, StateDraining, StateStopped:
		r.Reason = "route is " + s.State
		if s.Reason != "" {
			r.Reason += ": " + s.Reason
		}
		return r
	}
	if n := len(s.Partitions); n > 0 && len(r.Halted) == n {
		r.Reason = "all " + strconv.Itoa(n) + " partitions are halted"
		return r
	}
	r.Ready = true
	return r
}

func (p *Partition) id() route.Partition {
	return route.Partition{Topic: p.Topic, Partition: p.Partition}
}
