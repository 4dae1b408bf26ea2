package offsets

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/causeway-mirror/causeway/route"
)

func at(topic string, offset route.Offset) Checkpoint {
	return Checkpoint{Partition: route.Partition{Topic: topic}, SourceOffset: offset}
}

func TestOnlyChangedCheckpointsAreDue(t *testing.T) {
	t.Parallel()
	start := time.Unix(1000, 0)
	p := NewPolicy(5*time.Second, start)
	p.Stored(at("b", 1))
	p.Stored(at("a", 1))
	require.Empty(t, p.Changed(), "what was loaded is stored")

	p.Note(at("b", 2))
	p.Note(at("c", 9))
	require.Empty(t, p.Due(start.Add(5*time.Second-1)), "the timer has not run out")
	require.Equal(t, []Checkpoint{at("b", 2), at("c", 9)}, p.Due(start.Add(5*time.Second)))
	require.Equal(t, []Checkpoint{at("b", 2), at("c", 9)}, p.Changed(), "asking changes nothing")

	p.Stored(at("b", 2))
	p.Note(at("c", 10)) // while 9 was being saved
	p.Stored(at("c", 9))
	require.Equal(t, []Checkpoint{at("c", 10)}, p.Changed())

	p.Note(at("c", 9))
	require.Empty(t, p.Changed(), "back at what is stored")
	p.Note(at("a", 5))
	p.Forget(route.Partition{Topic: "a"})
	require.Empty(t, p.Changed())
}

func TestTimerStretchesUnderLoad(t *testing.T) {
	t.Parallel()
	const interval = 5 * time.Second
	tests := []struct {
		name       string
		took, want time.Duration
	}{
		{"nothing due", 0, interval},
		{"fast", 20 * time.Millisecond, interval},
		{"a tenth", interval / 10, interval},
		{"just over a tenth", interval/10 + time.Millisecond, interval + 10*time.Millisecond},
		{"two tenths", interval / 5, 2 * interval},
		{"the bound", interval, 10 * interval},
		{"beyond the bound", time.Hour, 10 * interval},
		{"longer than any clock", math.MaxInt64, 10 * interval},
		{"a clock set back", -time.Minute, interval},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			start := time.Unix(1000, 0)
			p := NewPolicy(interval, start)
			p.Note(at("a", 1))
			ended := start.Add(test.took)
			p.Tried(start, ended)
			require.Equal(t, test.want, p.Next().Sub(ended))
			require.Empty(t, p.Due(p.Next().Add(-1)))
			require.Len(t, p.Due(p.Next()), 1)
		})
	}
}

func TestTimerRecovers(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	p := NewPolicy(time.Second, now)
	p.Tried(now, now.Add(time.Minute))
	p.Tried(now, now)
	require.Equal(t, now.Add(time.Second), p.Next())
}

// TestPolicyModel compares with two plain maps.
func TestPolicyModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := NewPolicy(time.Second, time.Unix(0, 0))
		newest, stored := map[string]route.Offset{}, map[string]route.Offset{}
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			topic := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "topic")
			offset := route.Offset(rapid.IntRange(0, 3).Draw(t, "offset"))
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0, 1:
				p.Note(at(topic, offset))
				newest[topic] = offset
			case 2:
				p.Stored(at(topic, offset))
				stored[topic] = offset
				if _, ok := newest[topic]; !ok {
					newest[topic] = offset
				}
			case 3:
				p.Forget(route.Partition{Topic: topic})
				delete(newest, topic)
				delete(stored, topic)
			}
		}
		got := map[string]route.Offset{}
		for _, c := range p.Changed() {
			got[c.Partition.Topic] = c.SourceOffset
		}
		want := map[string]route.Offset{}
		for topic, offset := range newest {
			if s, ok := stored[topic]; !ok || s != offset {
				want[topic] = offset
			}
		}
		require.Equal(t, want, got)
	})
}
