package loops

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/route"
)

// board is a cluster that keeps notes.
type board struct {
	mu     sync.Mutex
	notes  map[string]map[string]string // by group, by topic
	fails  error                        // what reading and writing fails with
	writes int
}

func (b *board) Groups(_ context.Context, prefix string) ([]string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []string
	for g := range b.notes {
		if strings.HasPrefix(g, prefix) {
			out = append(out, g)
		}
	}
	slices.Sort(out)
	return out, b.fails
}

func (b *board) GroupNotes(_ context.Context, group string) (map[string]string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.notes[group]), b.fails
}

func (b *board) SaveGroupNotes(_ context.Context, group string, notes map[string]string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fails != nil {
		return b.fails
	}
	b.writes++
	if b.notes == nil {
		b.notes = map[string]map[string]string{}
	}
	if b.notes[group] == nil {
		b.notes[group] = map[string]string{}
	}
	for topic, text := range notes {
		if b.notes[group][topic] = text; text == "" {
			delete(b.notes[group], topic)
		}
	}
	return nil
}

func (b *board) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fails = err
}

// mirror is a route that copies one topic under its name.
type mirror struct {
	*Watch

	ends   Ends
	topics map[string]string
	events *events.Log
}

// world are clusters by id.
type world map[string]*board

func (w world) mirror(from, to string, topics ...string) *mirror {
	for _, id := range []string{from, to} {
		if w[id] == nil {
			w[id] = &board{}
		}
	}
	r := route.Route{Source: from, Target: to, ID: "1"}
	m := &mirror{ends: Ends{Source: from, Target: to, Producer: int64(from[0])*100 + int64(to[0])}, topics: map[string]string{}}
	for _, topic := range topics {
		m.topics[topic] = topic
	}
	m.events = events.NewLog(r, "w", 100, hclog.NewNullLogger(), prometheus.NewRegistry())
	cfg := Config{Route: r.String(), Takes: &Selection{Include: topics, Rename: "{topic}"}, Alone: true}
	m.Watch = NewWatch(cfg, w[from], w[to], hclog.NewNullLogger(), m.events)
	return m
}

// begin does what a connector does at the start of topics, and gives those that are refused.
func (m *mirror) begin(ctx context.Context) map[string]*RefusedError {
	admitted := maps.Clone(m.topics)
	refused := m.Admit(ctx, m.ends, admitted)
	maps.DeleteFunc(admitted, func(topic, _ string) bool { return refused[topic] != nil })
	maps.Copy(refused, m.Declare(ctx, admitted))
	return refused
}

func (m *mirror) review(ctx context.Context) []string {
	return m.Review(ctx, m.ends.Producer, func() map[string]bool {
		here := map[string]bool{}
		for topic := range m.topics {
			here[topic] = true
		}
		return here
	})
}

func (m *mirror) told() (kinds []events.Type) {
	for _, e := range m.events.Since(0) {
		kinds = append(kinds, e.Type)
	}
	return kinds
}

func TestTheWayBackIsRefusedAndNothingElse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := world{}
		there := w.mirror("A", "B", "t", "u")
		require.Empty(t, there.begin(t.Context()))
		require.Empty(t, w["A"].notes, "nothing is left on the source")
		time.Sleep(time.Second)
		back := w.mirror("B", "A", "t", "own")
		seen, err := NewWatch(back.cfg, w["B"], w["A"], hclog.NewNullLogger(), nil).Preview(t.Context(), back.ends, back.topics)
		require.NoError(t, err)
		require.Empty(t, w["A"].notes, "who only looks leaves nothing")
		refused := back.begin(t.Context())
		require.Equal(t, refused, seen)
		require.Len(t, refused, 1)
		require.ErrorContains(t, refused["t"], "@A@B@1")
		require.ErrorContains(t, refused["t"], "@B@A@1")
		require.Contains(t, w["A"].notes[Group("@B@A@1")], "own")
		require.NotContains(t, w["A"].notes[Group("@B@A@1")], "t")
		require.Empty(t, there.review(t.Context()), "the one that was there goes on")
		seen, err = NewWatch(there.cfg, w["A"], w["B"], hclog.NewNullLogger(), nil).Preview(t.Context(), there.ends, there.topics)
		require.NoError(t, err)
		require.Empty(t, seen)
		require.Equal(t, []string{"t"}, back.review(t.Context()))

		// The one that is refused stays so over a restart, and begins once the other one no longer has the topic.
		back = w.mirror("B", "A", "t", "own")
		require.Len(t, back.begin(t.Context()), 1)
		there = w.mirror("A", "B", "u")
		require.Empty(t, there.begin(t.Context()))
		require.Empty(t, there.review(t.Context()))
		require.Empty(t, back.review(t.Context()))
		require.NotContains(t, w["A"].notes[Group("@B@A@1")], "t", "not before its target is known to exist")
		require.Empty(t, back.begin(t.Context()))
		require.Contains(t, w["A"].notes[Group("@B@A@1")], "t")
		require.Empty(t, back.told())
	})
}

func TestTheOlderRouteKeepsItsPlaceOverARestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := world{}
		require.Empty(t, w.mirror("A", "B", "t").begin(t.Context()))
		time.Sleep(time.Hour)
		back := w.mirror("B", "A", "t")
		require.Len(t, back.begin(t.Context()), 1)
		there := w.mirror("A", "B", "t")
		require.Empty(t, there.begin(t.Context()))
		require.Empty(t, there.review(t.Context()))
		require.Len(t, back.review(t.Context()), 1)
	})
}

// Two that begin at the same moment see nothing of each other before they have written.
func TestTwoThatBeginAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := world{}
		one, other := w.mirror("A", "B", "t"), w.mirror("B", "A", "t")
		require.Empty(t, one.Admit(t.Context(), one.ends, one.topics))
		require.Empty(t, other.Admit(t.Context(), other.ends, other.topics))
		first, second := one.Declare(t.Context(), one.topics), other.Declare(t.Context(), other.topics)
		require.Empty(t, first)
		require.Len(t, second, 1, "who looks last sees the other one")
		require.Empty(t, one.review(t.Context()))
	})
}

// Three routes that run already are joined to a ring: what each one knows of its source goes round with the markers, until it shows.
func TestARingThatIsClosedWhileAllRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := world{}
		all := []*mirror{w.mirror("A", "B", "t"), w.mirror("C", "A", "t"), w.mirror("B", "C", "t")}
		for _, m := range all { // the marker on B does not know yet that A's comes from C
			require.Empty(t, m.begin(t.Context()))
			time.Sleep(time.Second)
		}
		var refused []int
		for range 4 {
			refused = nil
			for i, m := range all {
				if len(m.review(t.Context())) > 0 {
					refused = append(refused, i)
				}
			}
		}
		require.Equal(t, []int{2}, refused, "the one that began last, and it alone")
		require.ErrorContains(t, all[2].Refused()["t"], "@A@B@1")
		require.ErrorContains(t, all[2].Refused()["t"], "@C@A@1")
		require.Empty(t, w["C"].notes[Group("@B@C@1")])
	})
}

func TestMarkersAreRenewedAndGrowOld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := world{}
		there := w.mirror("A", "B", "t")
		require.Empty(t, there.begin(t.Context()))
		written := w["B"].writes
		for range 10 {
			time.Sleep(30 * time.Second)
			require.Empty(t, there.review(t.Context()))
		}
		require.Equal(t, written, w["B"].writes, "what has not changed is not written")
		time.Sleep(24 * time.Hour)
		require.Empty(t, there.review(t.Context()))
		require.Greater(t, w["B"].writes, written, "but once a day")
		back := w.mirror("B", "A", "t")
		require.Len(t, back.begin(t.Context()), 1)
		time.Sleep(staleAfter + time.Hour) // nobody renews it
		require.Empty(t, back.review(t.Context()))
	})
}

// Topics that flow into one have one marker between them; each keeps what the other said, whichever process it is of.
func TestTopicsThatFlowIntoOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := world{}
		one, other := w.mirror("A", "B", "a"), w.mirror("A", "B", "b")
		one.topics, other.topics, other.ends.Producer = map[string]string{"a": "all"}, map[string]string{"b": "all"}, 99
		for range 2 {
			require.Empty(t, one.begin(t.Context()))
			require.Empty(t, other.begin(t.Context()))
			require.Empty(t, one.review(t.Context()))
			require.Empty(t, other.review(t.Context()))
		}
		m, err := Parse(w["B"].notes[Group("@A@B@1")]["all"])
		require.NoError(t, err)
		require.Len(t, m.Hops, 2)
		require.Equal(t, []int64{99}, m.Hops[1].Producers)
	})
}

// A cluster that does not let us see or write markers, or is away, stops no topic. It is told, once.
func TestWithoutRightsTheMirrorGoesOn(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{"no right": kerr.GroupAuthorizationFailed, "away": context.DeadlineExceeded} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := world{}
				m := w.mirror("A", "B", "t")
				w["A"].fail(err)
				w["B"].fail(err)
				began := time.Now()
				require.Empty(t, m.begin(t.Context()))
				require.LessOrEqual(t, time.Since(began), patience+2*attempt)
				for range 3 {
					time.Sleep(tellAfter)
					require.Empty(t, m.review(t.Context()))
				}
				require.Equal(t, []events.Type{events.LoopsUnseen, events.LoopsUnseen, events.LoopsUnseen}, m.told(), "reading both, and writing")
				w["A"].fail(nil)
				w["B"].fail(nil)
				require.Empty(t, m.review(t.Context()))
				m2, parseErr := Parse(w["B"].notes[Group("@A@B@1")]["t"])
				require.NoError(t, parseErr)
				require.False(t, m2.Hops[0].Blind)
			})
		})
	}
}
