package assign

import (
	"cmp"
	"math"
	"slices"
)

// gainShare is the part of the tolerated distance that a move must gain, so that nothing moves for a trifle.
const gainShare = 0.1

// band is what a worker's load, relative to its capacity, may be.
type band struct{ low, high, gain float64 }

// outside is how far a load is out of the band.
func (b band) outside(load float64) float64 { return max(0, b.low-load, load-b.high) }

// leastGain is the part of the level below which a gain is rounding.
const leastGain = 1e-9

// balance moves partitions from the fullest worker to the emptiest, one at a time, until all are within the band or no single move helps.
// Each move lowers the fuller one of its pair below what it was, so the loads, sorted, only ever fall: it ends.
func (p *pool) balance() {
	for _, w := range p.active {
		p.measure(w)
	}
	for {
		b := p.band()
		order := slices.Clone(p.active)
		slices.SortStableFunc(order, func(x, y *worker) int { return cmp.Compare(y.full(0), x.full(0)) })
		low := order[len(order)-1]
		if b.outside(order[0].full(0)) == 0 && b.outside(low.full(0)) == 0 {
			return
		}
		if !p.relieve(order, low, b) {
			return
		}
	}
}

// relieve moves one partition to low, from the fullest worker that has one whose move gains; it says whether there was one.
func (p *pool) relieve(order []*worker, low *worker, b band) bool {
	for _, from := range order[:len(order)-1] {
		if b.outside(from.full(0)) == 0 && b.outside(low.full(0)) == 0 {
			return false
		}
		i := p.pick(from, low, b)
		if i < 0 {
			continue
		}
		p.take(i)
		p.put(i, low)
		p.measure(from)
		p.measure(low)
		if p.parts[i].reason == "" {
			p.parts[i].reason = Balance
		}
		return true
	}
	return false
}

// measure brings a worker's lump up to date.
func (p *pool) measure(w *worker) {
	fixed, largest := 0.0, 0.0
	for _, i := range w.holds {
		if p.parts[i].fixed {
			fixed += p.parts[i].weight
		}
		largest = max(largest, p.parts[i].weight)
	}
	w.lump = max(fixed, largest)
}

// band is computed around the fair level: the mean of those workers that are not filled by one lump, which nobody can divide (what is pinned
// to them, or a single partition larger than the mean).
func (p *pool) band() band {
	total, capacity := 0.0, 0.0
	lumps := slices.Clone(p.active)
	for _, w := range p.active {
		total += w.load
		capacity += w.Capacity
	}
	slices.SortStableFunc(lumps, func(a, b *worker) int { return cmp.Compare(b.lump/b.Capacity, a.lump/a.Capacity) })
	for _, w := range lumps[:len(lumps)-1] {
		if w.lump/w.Capacity <= total/capacity {
			break
		}
		total -= w.lump
		capacity -= w.Capacity
	}
	level := total / capacity
	if p.even {
		return band{level, level, level * leastGain}
	}
	return band{level / p.Threshold, level * p.Threshold, level * max(leastGain, (p.Threshold-1)*gainShare)}
}

// pick chooses the partition whose move brings the two workers nearest to the band; of equals the one that spreads its topic best, then the
// lightest. It is negative if no move gains.
func (p *pool) pick(from, to *worker, b band) int {
	const none = -1
	best, least := none, math.Inf(1)
	before := from.full(0)
	for _, i := range from.holds {
		part := &p.parts[i]
		if part.fixed || part.Blacklisted {
			continue
		}
		left, right := from.full(-part.weight), to.full(part.weight)
		if gain := before - max(left, right); gain <= 0 || gain < b.gain {
			continue
		}
		outside := b.outside(left) + b.outside(right)
		if best != none && (outside > least || (outside == least && !p.spreads(part, &p.parts[best], from, to))) {
			continue
		}
		best, least = i, outside
	}
	return best
}

// spreads says that moving x is better for the spread of topics than moving y, or as good and lighter.
func (*pool) spreads(x, y *part, from, to *worker) bool {
	crowd := func(p *part) int { return from.topics[p.topic] - to.topics[p.topic] }
	if c := cmp.Compare(crowd(y), crowd(x)); c != 0 {
		return c < 0
	}
	return x.weight < y.weight
}
