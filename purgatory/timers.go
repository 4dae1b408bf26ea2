package purgatory

import (
	"container/heap"
	"time"
)

// timers are the operations that wait, for package heap: the one that expires next in front, those that never do behind all others.
type timers[K comparable] []*entry[K]

// push adds an operation and says whether it expires before all others.
func (t *timers[K]) push(e *entry[K]) (first bool) {
	heap.Push(t, e)
	return e.slot == 0 && !e.due.IsZero()
}

func (t *timers[K]) remove(e *entry[K]) { heap.Remove(t, e.slot) }

// Len is how many there are.
func (t *timers[K]) Len() int { return len(*t) }

// Less says that i expires before j.
func (t *timers[K]) Less(i, j int) bool {
	a, b := (*t)[i].due, (*t)[j].due
	return !a.IsZero() && (b.IsZero() || a.Before(b))
}

// Swap changes the places of two.
func (t *timers[K]) Swap(i, j int) {
	s := *t
	s[i], s[j] = s[j], s[i]
	s[i].slot, s[j].slot = i, j
}

// Push adds an operation at the end.
func (t *timers[K]) Push(x any) {
	e := x.(*entry[K]) //nolint:errcheck,forcetypeassert // heap.Push is given nothing else
	e.slot = len(*t)
	*t = append(*t, e)
}

// Pop takes the operation at the end away.
func (t *timers[K]) Pop() any {
	s := *t
	last := len(s) - 1
	e := s[last]
	s[last] = nil // it must not be held
	*t = s[:last]
	return e
}

// never is how long the owner sleeps if nothing expires.
const never = time.Hour

// own is the goroutine that owns the timers: it asks what was signalled and ends what has expired, as long as anything waits.
func (p *Purgatory[K]) own() {
	timer := time.NewTimer(never)
	defer timer.Stop()
	for {
		p.mu.Lock()
		if len(p.timers) == 0 {
			p.owned, p.fired = false, nil
			p.mu.Unlock()
			return
		}
		fired, next, wait := p.fired, p.timers[0], never
		if p.fired = nil; !next.due.IsZero() {
			wait = time.Until(next.due)
		}
		p.mu.Unlock()
		for _, key := range fired { // first: what can complete does not expire
			p.CheckAndComplete(key)
		}
		switch {
		case wait <= 0:
			p.end(next, Expired)
		case len(fired) == 0:
			timer.Reset(wait)
			select {
			case <-timer.C:
			case <-p.wake:
			}
		}
	}
}
