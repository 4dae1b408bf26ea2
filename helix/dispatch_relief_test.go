package helix

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestOldOwnerStaysUntilTheNewOneHasBegun plays a move with overlap.
func TestOldOwnerStaysUntilTheNewOneHasBegun(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	begun := false
	r := reliefs{since: map[string]map[string]time.Time{}, begun: func(_, _, instance string) bool { return begun && instance == "b" }}
	held := func(w scene) (lines []string) {
		for _, d := range r.held(w.snapshot, "t", w.decide("t", true), now) {
			lines = append(lines, d.instance+" "+string(d.to))
		}
		return lines
	}
	w := newScene("a", "b").ideal("0:b=ONLINE").has("a", "0=ONLINE")
	require.Equal(t, []string{"b ONLINE"}, held(w))
	w.has("b", "0=ONLINE")
	require.Empty(t, held(w), "the new owner has not begun")
	begun = true
	require.Equal(t, []string{"a OFFLINE"}, held(w))
	require.Empty(t, r.since, "a partition that is through is looked at for ever")
}

// TestOldOwnerDoesNotStayForEver bounds the wait, and has none where nobody comes.
func TestOldOwnerDoesNotStayForEver(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	for _, row := range []struct {
		name  string
		world scene
		waits time.Duration
		want  []string
	}{
		{"the new owner does not begin", newScene("a", "b").ideal("0:b=ONLINE").has("a", "0=ONLINE").has("b", "0=ERROR"), reliefPatience - 1, nil},
		{"the new owner has not begun for long", newScene("a", "b").ideal("0:b=ONLINE").has("a", "0=ONLINE").has("b", "0=ERROR"), reliefPatience, []string{"a"}},
		{"the new owner is gone", newScene("a").ideal("0:b=ONLINE").has("a", "0=ONLINE"), 0, []string{"a"}},
		{"nobody shall have it", newScene("a").ideal("").has("a", "0=ONLINE"), 0, []string{"a"}},
		{"it is taken off where it is", newScene("a").ideal("0:a=OFFLINE").has("a", "0=ONLINE"), 0, []string{"a"}},
		{"the new owner is disabled", newScene("a", "b").ideal("0:b=ONLINE").has("a", "0=ONLINE").config("b", "*"), 0, []string{"a"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			r := reliefs{since: map[string]map[string]time.Time{}}
			r.held(row.world.snapshot, "t", row.world.decide("t", true), now)
			var got []string
			for _, d := range r.held(row.world.snapshot, "t", row.world.decide("t", true), now.Add(row.waits)) {
				if d.to == Offline && d.from == Online {
					got = append(got, d.instance)
				}
			}
			require.Equal(t, row.want, got)
		})
	}
}
