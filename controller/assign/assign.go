package assign

import (
	"cmp"
	"slices"
	"time"

	"github.com/causeway-mirror/causeway/route"
)

// UnknownWeight says that nobody has measured a partition.
const UnknownWeight = -1

// Worker is a process that can mirror partitions. List the dead ones too: a standby steps in for a worker that is listed and can't work.
type Worker struct {
	ID       string
	Live     bool    // has a session
	Enabled  bool    // may own partitions
	Draining bool    // gives away what it owns and gets nothing
	Silent   bool    // has a session and does not answer: keeps what it owns and gets nothing, unless nobody answers
	Standby  bool    // held back while enough others work
	Capacity float64 // its share relative to others; 0 counts as 1
}

// usable says that the worker can be given partitions.
func (w Worker) usable() bool { return w.Live && w.Enabled && !w.Draining && !w.Silent }

// Partition is a partition as it stands now. The zero Weight means idle, UnknownWeight not measured.
type Partition struct {
	route.Partition
	Weight float64       // bytes a second
	Lag    time.Duration // how far it is behind, by its own rate; 0 when it is not lagging
	Owner  string        // "" = nobody yet
	// Pin is the worker that it belongs on whenever that one can work; until then others take it. "" = not pinned.
	Pin  string
	Held bool // stays with its owner, whether that works or not
	// Blacklisted partitions are not mirrored. They keep a worker, because the ideal state says so in that worker's entry, but weigh nothing.
	Blacklisted bool
	Stuck       bool // makes no progress where it is and shall try another worker
}

// Options are the rules of one decision.
type Options struct {
	// Threshold is how far a worker's load may be from its share before partitions move: between share/Threshold and share·Threshold. It
	// counts only when weights differ; equal ones are balanced to within one partition. Less than 1 counts as DefaultThreshold.
	Threshold float64
	// MaxActive bounds how many workers hold partitions; 0 = as many as are listed without Standby, or all if every one is a standby.
	MaxActive int
	// CatchUp is the time in which a lagging partition should be level again: it needs 1 + Lag/CatchUp times its rate until then and is
	// weighed by that, at most tenfold. 0 = lag does not count.
	CatchUp time.Duration
}

// DefaultThreshold is Options.Threshold where none is given.
const DefaultThreshold = 1.2

// Reason says why a partition moves.
type Reason string

// The reasons.
const (
	New       Reason = "new"        // had no owner
	OwnerGone Reason = "owner_gone" // its owner has no session or is not known
	Disabled  Reason = "disabled"   // its owner may not own partitions
	Drained   Reason = "drained"    // its owner is draining
	Surplus   Reason = "surplus"    // more workers held partitions than may; its owner becomes a standby
	Pinned    Reason = "pinned"     // it belongs on another worker
	Stuck     Reason = "stuck"      // it made no progress
	Balance   Reason = "balance"    // its owner had too much, or the new one too little
)

// Move is one partition that changes its owner.
type Move struct {
	Partition route.Partition
	From, To  string // From is "" for a partition that nobody owned
	Reason    Reason
}

// Plan is a decision.
type Plan struct {
	Owners map[route.Partition]string // of every partition that has one, blacklisted ones included
	Moves  []Move                     // where Owners differs from before, ordered by partition
	// Waiting partitions are not mirrored until something changes, in order: held by an owner that can't work, or no worker is there.
	Waiting []route.Partition
}

// Decide gives the next assignment of all partitions. Of workers with equal ids and of equal partitions the first one counts. While no worker
// is usable everything keeps its owner.
func Decide(workers []Worker, partitions []Partition, o Options) Plan {
	p := newPool(workers, partitions, o)
	if len(p.active) > 0 {
		p.evict()
		p.settle()
		p.balance()
	}
	return p.plan()
}

// Place gives owners to the partitions that have none, those of a new or an expanded topic, and touches no other: also not those whose owner
// is gone at the moment and may come back.
func Place(workers []Worker, partitions []Partition, o Options) Plan {
	p := newPool(workers, partitions, o)
	if len(p.active) > 0 {
		for i := range p.parts {
			part := &p.parts[i]
			if part.Owner != "" {
				continue
			}
			part.reason = New
			if at := p.home(part); at != nil {
				p.put(i, at)
			} else {
				p.homeless = append(p.homeless, i)
			}
		}
		p.settle()
	}
	return p.plan()
}

// plan compares what became of the partitions with what they were.
func (p *pool) plan() Plan {
	plan := Plan{Owners: make(map[route.Partition]string, len(p.parts))}
	for i := range p.parts {
		part := &p.parts[i]
		to := part.Owner
		if part.on != nil {
			to = part.on.ID
		}
		if to != "" {
			plan.Owners[part.Partition.Partition] = to
		}
		if at := p.byID[to]; !part.Blacklisted && (at == nil || !at.Live || !at.Enabled) {
			plan.Waiting = append(plan.Waiting, part.Partition.Partition)
		}
		if to != part.Owner {
			plan.Moves = append(plan.Moves, Move{Partition: part.Partition.Partition, From: part.Owner, To: to, Reason: part.reason})
		}
	}
	return plan
}

// sorted returns the elements in the order of their keys, the first of each key.
func sorted[T any](all []T, order func(a, b T) int) []T {
	all = slices.Clone(all)
	slices.SortStableFunc(all, order)
	return slices.CompactFunc(all, func(a, b T) bool { return order(a, b) == 0 })
}

func byID(a, b Worker) int           { return cmp.Compare(a.ID, b.ID) }
func byPartition(a, b Partition) int { return a.Partition.Compare(b.Partition) }
