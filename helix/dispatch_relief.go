package helix

import (
	"strings"
	"time"
)

const (
	// reliefEvery is how often it is looked whether a new owner has begun.
	reliefEvery = 50 * time.Millisecond
	// reliefPatience is how long an old owner stays for a new one that does not begin. What keeps the new one may keep the old one, too.
	reliefPatience = 30 * time.Second
)

// reliefs hold an old owner back from OFFLINE until the new one does its work. ONLINE alone does not say so: a participant that waits for others, as
// a worker for Kafka, is ONLINE before.
type reliefs struct {
	begun func(resource, partition, instance string) bool // nil: who is ONLINE has begun
	since map[string]map[string]time.Time                 // resource → partition → since when its old owner stays
}

// held takes those transitions of a resource out that are not due yet.
func (r *reliefs) held(s *snapshot, resource string, all []transition, now time.Time) []transition {
	stays := map[string]time.Time{}
	due := make([]transition, 0, len(all))
	for _, t := range all {
		if t.from != Online || t.to != Offline || !r.awaits(s, t) {
			due = append(due, t)
			continue
		}
		since, ok := r.since[resource][t.partition]
		if !ok {
			since = now
		}
		stays[t.partition] = since
		if now.Sub(since) >= reliefPatience {
			due = append(due, t)
		}
	}
	if r.since[resource] = stays; len(stays) == 0 {
		delete(r.since, resource)
	}
	return due
}

// awaits says that a partition goes from an instance to others that can have it, and that one of these has not begun.
func (r *reliefs) awaits(s *snapshot, t transition) bool {
	ideal := s.ideals[t.resource]
	if ideal == nil || ideal.off {
		return false
	}
	assigned := ideal.record.Map[t.partition]
	if _, stays := assigned[t.instance]; stays {
		return false
	}
	for instance, state := range assigned {
		if s.live[instance] == nil || State(strings.ToUpper(state)) != Online || s.configs[instance].blocks(t.resource, t.partition) {
			continue
		}
		if now, _ := s.state(t.resource, t.partition, instance); now != Online || r.begun != nil && !r.begun(t.resource, t.partition, instance) {
			return true
		}
	}
	return false
}
