package assign

import (
	"cmp"
	"slices"
)

// worker is a Worker with what it holds.
type worker struct {
	Worker
	active bool
	holds  []int // indices into pool.parts, ascending
	load   float64
	topics []int   // partitions that are mirrored, by part.topic
	stuck  int     // partitions that were or are stuck here
	pinned bool    // something is pinned to it
	lump   float64 // what can't be divided: the fixed partitions together, or the largest one
}

// keeps says that the worker is to be left alone with what it owns.
func (w *worker) keeps() bool { return w.Silent && w.Live && w.Enabled && !w.Draining }

// full is the load relative to capacity, with extra added.
func (w *worker) full(extra float64) float64 { return (w.load + extra) / w.Capacity }

// part is a Partition with what becomes of it.
type part struct {
	Partition
	topic  int // its topic's number
	weight float64
	on     *worker // nil: nowhere, or on a worker that is not listed
	fixed  bool    // not to be moved for balance
	reason Reason  // why it moved last
}

// pool is the state of one decision. The order of workers and parts is that of their ids.
type pool struct {
	Options
	even     bool // all weights are equal
	workers  []*worker
	byID     map[string]*worker
	active   []*worker // those that may be given partitions
	parts    []part
	homeless []int // parts to be placed
}

func newPool(workers []Worker, partitions []Partition, o Options) *pool {
	if !(o.Threshold >= 1) { // also NaN
		o.Threshold = DefaultThreshold
	}
	p := &pool{Options: o, byID: map[string]*worker{}}
	topics := 0
	for _, partition := range sorted(partitions, byPartition) {
		if n := len(p.parts); n > 0 && p.parts[n-1].Topic != partition.Topic {
			topics++
		}
		p.parts = append(p.parts, part{Partition: partition, topic: topics})
	}
	p.even = weigh(p.parts, o)
	for _, w := range sorted(workers, byID) {
		if !(w.Capacity > 0) {
			w.Capacity = 1
		}
		at := &worker{Worker: w, topics: make([]int, topics+1)}
		p.workers = append(p.workers, at)
		p.byID[w.ID] = at
	}
	for i := range p.parts {
		part := &p.parts[i]
		if at := p.byID[part.Pin]; at != nil {
			at.pinned = true
		}
		if at := p.byID[part.Owner]; at != nil {
			p.put(i, at)
			if part.Stuck {
				at.stuck++
			}
		}
	}
	p.choose()
	return p
}

// choose picks the workers that may hold partitions: who holds some stays, then who is no standby, then by id.
func (p *pool) choose() {
	if !slices.ContainsFunc(p.workers, func(w *worker) bool { return w.usable() }) {
		for _, w := range p.workers { // that nobody answers says more about who asks
			w.Silent = false
		}
	}
	regular, silent := 0, 0
	for _, w := range p.workers {
		if w.usable() {
			p.active = append(p.active, w)
		}
		if !w.Standby {
			regular++
		}
		if w.keeps() && slices.ContainsFunc(w.holds, func(i int) bool { return p.home(&p.parts[i]) == nil }) {
			silent++
		}
	}
	limit := p.MaxActive
	if limit <= 0 {
		limit = regular
	}
	limit = max(min(limit, 1), limit-silent) // nobody steps in for a silent one before it is lost
	if limit == 0 || limit > len(p.active) {
		limit = len(p.active)
	}
	slices.SortFunc(p.active, func(a, b *worker) int {
		return cmp.Or(
			trueFirst(a.pinned, b.pinned),
			trueFirst(len(a.holds) > 0, len(b.holds) > 0),
			trueFirst(!a.Standby, !b.Standby),
			cmp.Compare(len(b.holds), len(a.holds)), // the fewest move
			cmp.Compare(a.ID, b.ID),
		)
	})
	p.active = p.active[:limit]
	slices.SortFunc(p.active, func(a, b *worker) int { return cmp.Compare(a.ID, b.ID) })
	for _, w := range p.active {
		w.active = true
	}
}

func trueFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// put gives a partition to a worker.
func (p *pool) put(i int, to *worker) {
	part := &p.parts[i]
	part.on = to
	at, _ := slices.BinarySearch(to.holds, i)
	to.holds = slices.Insert(to.holds, at, i)
	if !part.Blacklisted {
		to.load += part.weight
		to.topics[part.topic]++
	}
}

// take takes a partition from its worker.
func (p *pool) take(i int) {
	part := &p.parts[i]
	from := part.on
	if from == nil {
		return
	}
	part.on = nil
	at, _ := slices.BinarySearch(from.holds, i)
	from.holds = slices.Delete(from.holds, at, at+1)
	if !part.Blacklisted {
		from.load -= part.weight
		from.topics[part.topic]--
	}
}

// evict takes what can't stay where it is, and brings what is pinned to its place.
func (p *pool) evict() {
	for i := range p.parts {
		part := &p.parts[i]
		at := p.home(part)
		switch {
		case part.Held:
			part.fixed = true
		case at != nil:
			part.fixed = true
			if at != part.on {
				p.take(i)
				p.put(i, at)
				part.reason = Pinned
			}
		default:
			if part.reason = p.mustMove(part); part.reason != "" {
				p.take(i)
				p.homeless = append(p.homeless, i)
			}
		}
	}
}

// home is the worker that a partition is pinned to, if it is pinned and that one can work.
func (p *pool) home(part *part) *worker {
	if at := p.byID[part.Pin]; at != nil && at.usable() {
		return at
	}
	return nil
}

// mustMove says why a partition can't stay with its owner, or nothing.
func (p *pool) mustMove(part *part) Reason {
	switch at := part.on; {
	case part.Owner == "":
		return New
	case at == nil || !at.Live:
		return OwnerGone
	case !at.Enabled:
		return Disabled
	case at.Draining:
		return Drained
	case !at.active && !at.keeps():
		return Surplus
	case part.Stuck && !part.Blacklisted && len(p.active) > 1:
		return Stuck
	}
	return ""
}

// settle places what has no place, the heaviest first, each where it fills least.
func (p *pool) settle() {
	slices.SortStableFunc(p.homeless, func(a, b int) int { return cmp.Compare(p.parts[b].weight, p.parts[a].weight) })
	for _, i := range p.homeless {
		part := &p.parts[i]
		to := p.roomiest(part)
		p.put(i, to)
		if part.reason == Stuck {
			part.fixed = true
			to.stuck++
		}
	}
	p.homeless = nil
}

// roomiest is the worker that a partition fills least; of equals the one with the fewest of its topic, then the fewest at all, then by id. A
// stuck partition does not go back, and joins no other stuck one while there is a worker without.
func (p *pool) roomiest(part *part) *worker {
	stuck := part.reason == Stuck
	var best *worker
	for _, w := range p.active {
		if stuck && w.ID == part.Owner {
			continue
		}
		if best == nil || p.roomier(part, w, best, stuck) {
			best = w
		}
	}
	return best
}

func (*pool) roomier(part *part, a, b *worker, stuck bool) bool {
	if stuck && (a.stuck == 0) != (b.stuck == 0) {
		return a.stuck == 0
	}
	if x, y := a.full(part.weight), b.full(part.weight); x != y {
		return x < y
	}
	return cmp.Or(cmp.Compare(a.topics[part.topic], b.topics[part.topic]), cmp.Compare(len(a.holds), len(b.holds))) < 0
}
