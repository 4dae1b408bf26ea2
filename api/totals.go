package api

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/causeway-mirror/causeway/route"
)

// totalsOfRoute sums a snapshot up.
func totalsOfRoute(name string, s Snapshot) Route {
	r := Route{Name: name, State: s.State, Reason: s.Reason, Partitions: map[string]int{}, LagRecords: -1}
	for i := range s.Partitions {
		p := &s.Partitions[i]
		r.Partitions[p.State]++
		r.LagRecords = plusLag(r.LagRecords, p.LagRecords)
		r.RecordsPerSecond += p.RecordsPerSecond
		r.BytesPerSecond += p.BytesPerSecond
	}
	n := len(s.Partitions)
	if s.State != StateMirroring {
		return r
	}
	if n == 0 {
		r.LagRecords = 0 // there is nothing that could lack
	}
	for _, state := range []string{StateHalted, StateUnassigned} {
		if n > 0 && r.Partitions[state] == n {
			r.State, r.Reason = state, all(n)
		}
	}
	return r
}

// plusLag adds a partition's lag to a sum; -1 is one that is not known, or a sum of none.
func plusLag(sum, lag int64) int64 {
	if lag < 0 {
		return sum
	}
	return max(sum, 0) + lag
}

// all names all partitions of a route or a topic, of which there are n.
func all(n int) string {
	if n == 1 {
		return "its only partition"
	}
	return "all " + strconv.Itoa(n) + " partitions"
}

// standstill says which of some partitions are halted, as a sentence goes on; "" if none is.
func standstill(parts []Partition) string {
	halted, first := 0, -1
	for i := range parts {
		if parts[i].State == StateHalted {
			if halted++; first < 0 {
				first = i
			}
		}
	}
	var which string
	switch n := len(parts); {
	case halted == 0:
		return ""
	case halted == n && n > 1:
		which = all(n) + " are"
	case halted == n:
		which = all(n) + " is"
	case halted == 1:
		which = fmt.Sprintf("1 of %d partitions is", n)
	default:
		which = fmt.Sprintf("%d of %d partitions are", halted, n)
	}
	return fmt.Sprintf("; %s halted, %s: %s", which, parts[first].id(), parts[first].Reason)
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
		t.LagRecords = plusLag(t.LagRecords, p.LagRecords)
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
	switch n := len(s.Partitions); {
	case n == 0 || len(r.Halted) < n:
		r.Ready = true
	case n == 1:
		r.Reason = all(n) + " is halted"
	default:
		r.Reason = all(n) + " are halted"
	}
	return r
}

func (p *Partition) id() route.Partition {
	return route.Partition{Topic: p.Topic, Partition: p.Partition}
}
