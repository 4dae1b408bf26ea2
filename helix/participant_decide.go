package helix

import "time"

// verdict is what a participant does with a message.
type verdict int8

const (
	// leave: not for us, or being worked at; it stays.
	leave verdict = iota
	// discard: done with; it is deleted, nothing else.
	discard
	// stale: of another session. It is deleted, and if it is newer than this session, the controller is told to look again.
	stale
	// cancel: takes back a transition that has not begun.
	cancel
	// run: transitions begin.
	run
)

func (v verdict) String() string {
	return [...]string{leave: "left", discard: "discarded", stale: "discarded", cancel: "discarded", run: "run"}[v]
}

// beholder is what a decision needs to know of the participant.
type beholder struct {
	instance, session string
	now               time.Time
	state             func(Partition) State // OFFLINE for an unknown one
	busy              func(Partition) bool  // a transition of it has not ended
}

// decision is a verdict with its reason; parts and broken belong to run.
type decision struct {
	verdict verdict
	reason  string
	parts   []Partition // to bring to the message's TO
	broken  []Partition // the model has no such step: they go to ERROR
	restate bool        // the sender believes a partition elsewhere than it is
}

// isStep knows the transitions of OnlineOffline, and those that every model has.
func isStep(from, to State) bool {
	switch from {
	case Offline:
		return to == Online || to == Dropped
	case Online:
		return to == Offline
	case Error:
		return to == Offline || to == Dropped
	case Dropped:
	}
	return false
}

// decide says what to do with a message, by the rules of Helix's newer versions where they differ: a message that does not fit the partition's
// state is deleted, the state is written again in case it was lost, and the controller sends another one if that is still right.
func (b beholder) decide(m *Message) decision {
	switch {
	case m.Type == msgNoOp:
		return decision{verdict: discard, reason: "no operation"}
	case m.TargetSession != b.session && m.TargetSession != anySession:
		return decision{verdict: stale, reason: "of another session"}
	case m.Target != "" && m.Target != b.instance:
		return decision{verdict: leave, reason: "for another instance"}
	case m.Status != msgNew && m.Status != "":
		return decision{verdict: leave, reason: "state " + m.Status}
	case m.Expiry > 0 && b.now.After(m.Created.Add(m.Expiry)):
		return decision{verdict: discard, reason: "expired"}
	case m.Type == msgCancellation:
		return decision{verdict: cancel, reason: "cancellation"}
	case m.Type != msgTransition:
		return decision{verdict: discard, reason: "unknown type"}
	case len(m.faults()) > 0:
		return decision{verdict: discard, reason: "incomplete"}
	case m.StateModel != OnlineOffline || m.Factory != DefaultFactory:
		return decision{verdict: leave, reason: "unknown state model"}
	}
	return b.decideTransition(m)
}

func (b beholder) decideTransition(m *Message) decision {
	d := decision{verdict: discard, reason: "does not fit the state"}
	seen := make(map[string]bool, len(m.Partitions))
	for _, name := range m.Partitions {
		p := Partition{m.Resource, name}
		if seen[name] || b.busy(p) {
			continue
		}
		if b.state(p) != m.From {
			d.restate = true
			continue
		}
		seen[name] = true
		if isStep(m.From, m.To) {
			d.parts = append(d.parts, p)
		} else {
			d.broken = append(d.broken, p)
		}
	}
	if len(d.parts)+len(d.broken) > 0 { // which states them all again
		d.verdict, d.reason, d.restate = run, "", false
	}
	return d
}

// expected says whether a reason is everyday.
func (d decision) expected() bool {
	switch d.reason {
	case "", "no operation", "of another session", "does not fit the state", "cancellation", "expired":
		return true
	}
	return false
}
