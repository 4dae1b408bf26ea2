package mirror

import (
	"errors"

	"github.com/causeway-mirror/causeway/route"
)

// errSuspended is why a suspended lane stands still.
var errSuspended = errors.New("the coordinator is silent, and the partition may be another worker's")

// errHeld is why what is in flight is looked after again when a lane goes on.
var errHeld = errors.New("the partition was held, and others may have sent for it")

// Suspend keeps the lane from fetching, sending and asking until Resume. What is unanswered is still answered. It may be repeated.
func (l *Lane) Suspend() {
	l.lock()
	defer l.mu.Unlock()
	l.suspended = true
}

// Resume takes Suspend back. Meanwhile others may have sent for the partition, so the lane takes over anew before it sends.
func (l *Lane) Resume() {
	l.lock()
	defer l.mu.Unlock()
	if l.suspended {
		l.suspended = false
		l.goOnLocked()
	}
}

// Pause keeps the lane from fetching, sending and asking, by an operator's wish, or takes that back. What is unanswered is still answered. It may
// be repeated.
func (l *Lane) Pause(on bool) {
	l.lock()
	defer l.mu.Unlock()
	if l.paused == on {
		return
	}
	l.paused = on
	if on {
		l.yieldLocked()
	} else {
		l.goOnLocked() // the target may have forgotten us meanwhile
	}
}

// yieldLocked gives what a paused lane holds to the others: a pause may last for days. The source still has it. What is unanswered is waited for.
func (l *Lane) yieldLocked() {
	if l.paused && l.in.held > 0 && l.out.flying.len() == 0 && l.in.gap == 0 {
		l.backlogLocked(false)
		l.resetLocked()
	}
}

// goOnLocked lets the lane take over anew, unless something else still holds it.
func (l *Lane) goOnLocked() {
	if l.heldLocked() {
		return
	}
	o := &l.out
	switch o.phase {
	case open, certifying, walking:
		if o.flying.len() > 0 {
			l.failedLocked(&route.Fault{Class: route.Moved, Code: "HELD", Err: errHeld})
		} else {
			l.askAgainLocked()
		}
	case asking, failing, halted: // it asks by itself, or waits for something else
	}
	l.in.withheld = false
	l.wake.Source()
	l.wake.Sink()
}

// heldLocked says that the lane shall neither fetch nor send.
func (l *Lane) heldLocked() bool { return l.paused || l.suspended }
