package offsets

import (
	"slices"
	"time"

	"github.com/causeway-mirror/causeway/route"
)

const (
	// shareOfTime: commits may take one part in so many of the time, or they slow down the mirror that they serve.
	shareOfTime = 10
	// maxStretch bounds how far the timer stretches, in intervals: what is not committed is walked again after a crash.
	maxStretch = 10
)

// Policy says which checkpoints are due. It keeps of each partition the newest checkpoint and the last one committed, and a timer: commits
// are an interval apart, or ten times as long as the last one took if that is longer, but never more than ten intervals. Time is passed in.
// It is not for concurrent use.
type Policy struct {
	interval time.Duration
	next     time.Time
	parts    map[route.Partition]*progress
}

type progress struct {
	newest    Checkpoint
	committed Checkpoint
	known     bool // committed was ever set
}

// NewPolicy returns a policy whose first commit is due an interval after now. The interval must be positive.
func NewPolicy(interval time.Duration, now time.Time) *Policy {
	if interval <= 0 {
		panic("BUG: commit interval must be positive")
	}
	return &Policy{interval: interval, next: now.Add(interval), parts: map[route.Partition]*progress{}}
}

// Note takes a partition's newest checkpoint.
func (p *Policy) Note(c Checkpoint) { p.of(c.Partition).newest = c }

// Stored says that a store has this checkpoint, because it was loaded, begun or saved. Without a newer one nothing is due.
func (p *Policy) Stored(c Checkpoint) {
	part, ok := p.parts[c.Partition]
	if !ok {
		part = p.of(c.Partition)
		part.newest = c
	}
	part.committed, part.known = c, true
}

// Forget drops a partition, changed or not.
func (p *Policy) Forget(part route.Partition) { delete(p.parts, part) }

// Next is when the timer runs out.
func (p *Policy) Next() time.Time { return p.next }

// Due gives the changed checkpoints once the timer has run out, none before.
func (p *Policy) Due(now time.Time) []Checkpoint {
	if now.Before(p.next) {
		return nil
	}
	return p.Changed()
}

// Changed gives the checkpoints that differ from what is stored, ordered by partition, whatever the timer says: for a stop or a shutdown.
func (p *Policy) Changed() []Checkpoint {
	var changed []Checkpoint
	for _, part := range p.parts {
		if !part.known || !part.newest.Equal(part.committed) {
			changed = append(changed, part.newest)
		}
	}
	slices.SortFunc(changed, func(a, b Checkpoint) int { return a.Partition.Compare(b.Partition) })
	return changed
}

// Tried sets the timer after a commit, successful or not, that began and ended at the given times. What it stored is told by Stored. With
// nothing due, call it with both times equal.
func (p *Policy) Tried(began, ended time.Time) {
	took := max(ended.Sub(began), 0)
	stretched := p.interval * maxStretch
	if took < stretched/shareOfTime { // no overflow, whatever a clock says
		stretched = took * shareOfTime
	}
	p.next = ended.Add(max(stretched, p.interval))
}

func (p *Policy) of(part route.Partition) *progress {
	found, ok := p.parts[part]
	if !ok {
		found = &progress{}
		p.parts[part] = found
	}
	return found
}
