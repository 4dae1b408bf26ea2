// Package purgatory is where operations wait that can't complete yet: each ends when an event makes it possible, when its time is up, or when it is
// cancelled.
//
// An operation watches keys. Who changes something that operations may wait for calls Signal (which may be called with locks held) or
// CheckAndComplete with its key, after the change.
//
// It promises:
//   - an operation ends exactly once, whoever is first: Done is called once, and Ready neither then nor afterwards;
//   - no event is lost: what is signalled while an operation is being added, or while it is being asked, lets it be asked again;
//   - Ready and Done are called without locks, Ready of one operation by one goroutine at a time;
//   - an operation that has ended is held by nothing here any more: neither by the keys that it watched nor by the timers;
//   - an operation expires at its time, as exactly as Go's timers are.
//
// It has one goroutine, which owns the timers and does what Signal asks for. It runs while anything waits, and no longer; Close waits for it.
//
// It imports the standard library and the metrics library alone.
package purgatory
