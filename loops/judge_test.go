package loops

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// hop is that of route @from@to@1, which began at some time.
func hop(from, to, topic string, since int64, before ...Hop) Hop {
	takes := &Selection{Include: []string{topic}, Rename: "{topic}"}
	return Hop{Route: "@" + from + "@" + to + "@1", Cluster: from, Topic: topic, Since: since, Takes: takes, Before: before}
}

// taking is a hop of a route that takes what matches, and renames it.
func taking(h Hop, pattern, rename string) Hop {
	h.Takes = &Selection{Include: []string{pattern}, Rename: rename}
	return h
}

func blind(h Hop) Hop {
	h.Blind = true
	return h
}

func dropping(h Hop) Hop {
	h.Drop = true
	return h
}

func TestJudge(t *testing.T) {
	t.Parallel()
	unknown := func(h Hop) Hop { h.Takes = nil; return h }
	for name, tc := range map[string]struct {
		hop    Hop
		target Place
		ring   []string // the routes that the refusal names, the last that was passed first; nil: it may be copied
	}{
		"nothing before":                {hop("A", "B", "t", 5), Place{"B", "t"}, nil},
		"another cluster before":        {hop("B", "C", "t", 9, hop("A", "B", "t", 1)), Place{"C", "t"}, nil},
		"two ways, the later":           {hop("B", "A", "t", 9, hop("A", "B", "t", 1)), Place{"A", "t"}, []string{"@A@B@1"}},
		"two ways, the earlier goes on": {hop("A", "B", "t", 1, hop("B", "A", "t", 9)), Place{"B", "t"}, nil},
		"begun together":                {hop("B", "A", "t", 5, hop("A", "B", "t", 5)), Place{"A", "t"}, []string{"@A@B@1"}},
		"begun together, the other":     {hop("A", "B", "t", 5, hop("B", "A", "t", 5)), Place{"B", "t"}, nil},
		"the later one can't see it": {
			hop("A", "B", "t", 1, blind(hop("B", "A", "t", 9))), Place{"B", "t"}, []string{"@B@A@1"},
		},
		"three clusters": {
			hop("C", "A", "t", 9, hop("B", "C", "t", 5, hop("A", "B", "t", 1))), Place{"A", "t"}, []string{"@B@C@1", "@A@B@1"},
		},
		"three clusters, one in the middle began last": {
			hop("C", "A", "t", 5, hop("B", "C", "t", 9, hop("A", "B", "t", 1))), Place{"A", "t"}, nil,
		},
		"three clusters, new names on the way": {
			hop("C", "A", "t2", 9, hop("B", "C", "t1", 5, hop("A", "B", "t", 1))), Place{"A", "t"}, []string{"@B@C@1", "@A@B@1"},
		},
		"one of two ways to the source": {
			hop("B", "A", "t", 9, hop("X", "B", "t", 1), hop("A", "B", "t", 2)), Place{"A", "t"}, []string{"@A@B@1"},
		},
		"back under a name that nobody takes": {hop("B", "A", "A.t", 9, hop("A", "B", "t", 1)), Place{"A", "B.A.t"}, nil},
		"back under a name that is taken again": {
			taking(hop("B", "A", "A.t", 9, taking(hop("A", "B", "t", 1), ".*", "A.{topic}")), ".*", "B.{topic}"), Place{"A", "B.A.t"}, []string{"@A@B@1"},
		},
		"back under a name that the first takes and the second leaves": {
			taking(hop("B", "A", "A.t", 9, taking(hop("A", "B", "t", 1), ".*", "A.{topic}")), `A\.t`, "B.{topic}"), Place{"A", "B.A.t"}, nil,
		},
		"back, and not known who takes what": {hop("B", "A", "A.t", 9, unknown(hop("A", "B", "t", 1))), Place{"A", "B.A.t"}, []string{"@A@B@1"}},
		"there and back, and both drop":      {dropping(hop("B", "A", "t", 9, dropping(hop("A", "B", "t", 1)))), Place{"A", "t"}, nil},
		"there and back, and the other one does not drop": {
			dropping(hop("B", "A", "t", 9, hop("A", "B", "t", 1))), Place{"A", "t"}, []string{"@A@B@1"},
		},
		"there and back, and the later does not drop": {hop("B", "A", "t", 9, dropping(hop("A", "B", "t", 1))), Place{"A", "t"}, []string{"@A@B@1"}},
		"three clusters, and all drop": {
			dropping(hop("C", "A", "t", 9, dropping(hop("B", "C", "t", 5, dropping(hop("A", "B", "t", 1)))))), Place{"A", "t"}, []string{"@B@C@1", "@A@B@1"},
		},
		"a pair, and a pair behind it: what B took from C does not go back to C": {
			dropping(hop("B", "A", "t", 9, dropping(hop("A", "B", "t", 1)), dropping(hop("C", "B", "t", 2, dropping(hop("B", "C", "t", 3)))))), Place{"A", "t"}, nil,
		},
		"a pair that drops, in a ring of three": {
			dropping(hop("A", "B", "t", 9, dropping(hop("B", "A", "t", 1)), hop("C", "A", "t", 2, hop("B", "C", "t", 3)))), Place{"B", "t"}, []string{"@C@A@1", "@B@C@1"},
		},
		"both drop, but it comes back under another name that is taken again": {
			dropping(taking(hop("B", "A", "A.t", 9, dropping(taking(hop("A", "B", "t", 1), ".*", "A.{topic}"))), ".*", "B.{topic}")),
			Place{"A", "B.A.t"},
			[]string{"@A@B@1"},
		},
		"within one cluster":         {hop("A", "A", "b", 9, hop("A", "A", "a", 1)), Place{"A", "a"}, []string{"@A@A@1"}},
		"a chain within one cluster": {hop("A", "A", "b", 9, hop("A", "A", "a", 1)), Place{"A", "c"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused := Judge(Copying{Hop: tc.hop, Target: tc.target})
			if tc.ring == nil {
				require.Nil(t, refused)
				return
			}
			require.NotNil(t, refused)
			var routes []string
			for _, h := range refused.Ring {
				routes = append(routes, h.Route)
				require.ErrorContains(t, refused, h.Route)
			}
			require.Equal(t, tc.ring, routes)
			require.ErrorContains(t, refused, tc.hop.Route)
		})
	}
}

// Of a ring exactly one route is refused, whoever looks, in whatever order they began and with as many clusters as there are.
func TestOneRouteOfEachRingIsRefused(t *testing.T) {
	t.Parallel()
	for n := 2; n <= 6; n++ {
		for first := range n { // the routes began one after the other, from this one on
			name := func(i int) string { return string(rune('A' + (i+n)%n)) }
			since := func(i int) int64 { return int64((i + 2*n - first) % n) }
			refused := 0
			for i := range n { // route i goes from cluster i to the next
				var before []Hop
				for j := i - n + 1; j < i; j++ {
					before = []Hop{hop(name(j), name(j+1), "t", since(j), before...)}
				}
				own := hop(name(i), name(i+1), "t", since(i), before...)
				if Judge(Copying{Hop: own, Target: Place{name(i + 1), "t"}}) != nil {
					refused++
					require.EqualValues(t, n-1, since(i), "the last that began")
				}
			}
			require.Equal(t, 1, refused, "%d clusters, from %d on", n, first)
		}
	}
}
