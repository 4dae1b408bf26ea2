package helix

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParticipantDecides(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_795_991_644_149)
	states := map[Partition]State{{"topic", "on"}: Online, {"topic", "off"}: Offline, {"topic", "err"}: Error, {"topic", "busy"}: Offline}
	sight := beholder{
		instance: "a_1", session: "5e", now: now,
		state: func(p Partition) State {
			if s := states[p]; s != "" {
				return s
			}
			return Offline
		},
		busy: func(p Partition) bool { return p.Name == "busy" },
	}
	parts := func(names ...string) []Partition {
		var list []Partition
		for _, name := range names {
			list = append(list, Partition{"topic", name})
		}
		return list
	}
	for _, tc := range []struct {
		name       string
		from, to   State
		partitions []string
		change     func(*Message)
		want       decision
	}{
		{"starts", Offline, Online, []string{"off"}, nil, decision{verdict: run, parts: parts("off")}},
		{"starts what was never seen", Offline, Online, []string{"new"}, nil, decision{verdict: run, parts: parts("new")}},
		{"stops", Online, Offline, []string{"on"}, nil, decision{verdict: run, parts: parts("on")}},
		{"drops", Offline, Dropped, []string{"off"}, nil, decision{verdict: run, parts: parts("off")}},
		{"resets", Error, Offline, []string{"err"}, nil, decision{verdict: run, parts: parts("err")}},
		{"drops from error", Error, Dropped, []string{"err"}, nil, decision{verdict: run, parts: parts("err")}},
		{"is there", Offline, Online, []string{"on"}, nil, decision{verdict: discard, reason: "does not fit the state", restate: true}},
		{"is elsewhere", Online, Offline, []string{"err"}, nil, decision{verdict: discard, reason: "does not fit the state", restate: true}},
		{"is busy", Offline, Online, []string{"busy"}, nil, decision{verdict: discard, reason: "does not fit the state"}},
		{"no such step", Online, Dropped, []string{"on"}, nil, decision{verdict: run, broken: parts("on")}},
		{"batch", Offline, Online, []string{"new", "on", "busy", "off", "new"}, nil, decision{verdict: run, parts: parts("new", "off")}},
		{"no operation", "", "", nil, func(m *Message) { m.Type = msgNoOp }, decision{verdict: discard, reason: "no operation"}},
		{
			"other session", Offline, Online,
			[]string{"off"},
			func(m *Message) { m.TargetSession = "5f" },
			decision{verdict: stale, reason: "of another session"},
		},
		{"any session", Offline, Online, []string{"off"}, func(m *Message) { m.TargetSession = "*" }, decision{verdict: run, parts: parts("off")}},
		{
			"other instance", Offline, Online,
			[]string{"off"},
			func(m *Message) { m.Target = "b_1" },
			decision{verdict: leave, reason: "for another instance"},
		},
		{"read before", Offline, Online, []string{"off"}, func(m *Message) { m.Status = "read" }, decision{verdict: leave, reason: "state read"}},
		{"expired", Offline, Online, []string{"off"}, func(m *Message) { m.Expiry = time.Second }, decision{verdict: discard, reason: "expired"}},
		{"not expired", Offline, Online, []string{"off"}, func(m *Message) { m.Expiry = time.Hour }, decision{verdict: run, parts: parts("off")}},
		{
			"cancellation", Offline, Online,
			[]string{"off"},
			func(m *Message) { m.Type = msgCancellation },
			decision{verdict: cancel, reason: "cancellation"},
		},
		{"other type", "", "", nil, func(m *Message) { m.Type = "USER_DEFINE_MSG" }, decision{verdict: discard, reason: "unknown type"}},
		{"other model", Offline, Online, []string{"off"}, func(m *Message) { m.StateModel = "Task" }, decision{verdict: leave, reason: "unknown state model"}},
		{"other factory", Offline, Online, []string{"off"}, func(m *Message) { m.Factory = "x" }, decision{verdict: leave, reason: "unknown state model"}},
		{"no states", "", "", []string{"off"}, nil, decision{verdict: discard, reason: "incomplete"}},
		{"no partition", Offline, Online, nil, nil, decision{verdict: discard, reason: "incomplete"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			m := newTransition(Message{
				Source: "c", Target: "a_1", TargetSession: "5e", Resource: "topic", From: tc.from, To: tc.to, Created: now.Add(-time.Minute),
			}, tc.partitions...)
			if tc.change != nil {
				tc.change(m)
			}
			require.Equal(t, tc.want, sight.decide(m))
		})
	}
}
