package assign

import "math"

const (
	leastShare = 0.01 // of the mean: an idle partition costs something, too
	mostBehind = 9    // a lagging partition counts at most 1 + this times
)

// weigh gives each partition the weight that it is placed by, and says whether they are all equal. Blacklisted ones weigh nothing.
func weigh(parts []part, o Options) (even bool) {
	all, topics := measured(parts)
	even = true
	first := 0.0
	for i := range parts {
		p := &parts[i]
		if p.Blacklisted {
			continue
		}
		switch {
		case all.weight == 0:
			p.weight = 1
		case known(p.Weight):
			p.weight = max(p.Weight, all.mean()*leastShare)
		case topics[p.topic].n > 0:
			p.weight = max(topics[p.topic].mean(), all.mean()*leastShare)
		default:
			p.weight = all.mean()
		}
		if o.CatchUp > 0 && p.Lag > 0 {
			p.weight *= 1 + min(float64(p.Lag)/float64(o.CatchUp), mostBehind)
		}
		if first == 0 {
			first = p.weight
		}
		even = even && p.weight == first
	}
	if even { // whole numbers: sums of equal parts are then equal
		for i := range parts {
			if !parts[i].Blacklisted {
				parts[i].weight = 1
			}
		}
	}
	return even
}

// sum is the weight of some partitions together.
type sum struct {
	weight float64
	n      int
}

func (s sum) mean() float64 { return s.weight / float64(s.n) }

// measured adds up what is known, in all and by topic.
func measured(parts []part) (all sum, topics map[int]sum) {
	topics = map[int]sum{}
	for i := range parts {
		p := &parts[i]
		if p.Blacklisted || !known(p.Weight) {
			continue
		}
		topic := topics[p.topic]
		topics[p.topic] = sum{topic.weight + p.Weight, topic.n + 1}
		all = sum{all.weight + p.Weight, all.n + 1}
	}
	return all, topics
}

func known(weight float64) bool { return weight >= 0 && !math.IsInf(weight, 0) }
