package statemodel

import (
	"time"

	"github.com/causeway-mirror/causeway/events"
)

// Suspend keeps partitions from moving anything: the coordinator is silent, and another worker may soon be told that they are its own. Their
// states stay as they are. It waits for nothing.
func (m *Model) Suspend() {
	m.mu.Lock()
	fresh := m.suspended.IsZero()
	if fresh {
		m.suspended = m.deps.Now()
	}
	m.mu.Unlock()
	if !fresh {
		return
	}
	m.deps.Partitions.Suspend() // first: the event is for people
	m.deps.Events.Emit(events.Event{
		Type: events.LeaseLost, Severity: events.Warning,
		Message: "the coordinator is silent: partitions are suspended until it is known whose they are",
	})
}

// Resume takes Suspend back. Whoever calls has made sure that the worker is still, or again, the one that its partitions were given to.
func (m *Model) Resume() {
	m.mu.Lock()
	since := m.suspended
	m.suspended = time.Time{}
	m.mu.Unlock()
	if since.IsZero() {
		return
	}
	m.deps.Log.Info("partitions go on", "suspended", m.deps.Now().Sub(since).String())
	m.deps.Partitions.Resume()
}

// Suspended says since when partitions are suspended; ok is false when they are not.
func (m *Model) Suspended() (since time.Time, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.suspended, !m.suspended.IsZero()
}
