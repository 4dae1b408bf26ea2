package controller

import (
	"sync"
	"time"
)

// crew remembers since when each worker can, or can't, take partitions, so that delays count from there.
type crew struct {
	delay time.Duration

	mu      sync.Mutex
	members map[string]member
	next    time.Time // when partitions are to be looked at; zero = nothing to do
	started bool
}

type member struct {
	live, usable bool
	until        time.Time // until then the change does not count yet
}

func newCrew(delay time.Duration) *crew { return &crew{delay: delay, members: map[string]member{}} }

// observe notes who came and went since the last call. At the first one those that are there count at once, and those that own something but
// are not there are waited for from now on: how long they have been gone, nobody knows.
func (c *crew) observe(s *State, now time.Time) (joined, lost []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, w := range s.Workers {
		was, known := c.members[id]
		is := member{live: w.Live, usable: w.usable(), until: was.until}
		switch {
		case !c.started && w.Live:
			is.until = now
			c.lookAtLocked(now.Add(settle))
		case !known && !w.Live && c.started: // registered, never seen live
			is.until = now
		case !known || was.live != is.live || !was.usable && is.usable:
			is.until = now.Add(c.delay)
			c.lookAtLocked(now.Add(max(c.delay, settle)))
		case was.usable != is.usable: // drains: an operator is not made to wait
			c.lookAtLocked(now.Add(settle))
		}
		if c.started && was.live != is.live {
			if is.live {
				joined = append(joined, id)
			} else {
				lost = append(lost, id)
			}
		}
		c.members[id] = is
	}
	for id := range c.members {
		if _, ok := s.Workers[id]; !ok {
			delete(c.members, id)
			c.lookAtLocked(now.Add(settle))
		}
	}
	c.started = true
	return joined, lost
}

// lookAtLocked asks for a look no later than at.
func (c *crew) lookAtLocked(at time.Time) {
	if c.next.IsZero() || at.Before(c.next) {
		c.next = at
	}
}

// waits says whether the worker's last change does not count yet.
func (c *crew) waits(id string, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return now.Before(c.members[id].until)
}

// due says whether it is time to look, and takes it that this is done now: those that are waited for have their look later, and who asks for
// another one meanwhile gets it.
func (c *crew) due(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next.IsZero() || now.Before(c.next) {
		return false
	}
	c.next = time.Time{}
	for _, m := range c.members {
		if m.until.After(now) {
			c.lookAtLocked(m.until)
		}
	}
	return true
}

// again asks for another look, at that time at the latest.
func (c *crew) again(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lookAtLocked(at)
}

// wait is the time until the next look.
func (c *crew) wait(now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next.IsZero() {
		return time.Hour
	}
	return max(0, c.next.Sub(now))
}
