package loops

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// full is a hop with everything in it.
func full(before ...Hop) Hop {
	return Hop{
		Route: "@sjc1@dca1@1", Cluster: "MkU3OEVBNTcwNTJENDM2Qk", Topic: "orders", Since: 1764525600000, Renewed: 1764525700000, Producers: []int64{4711},
		Takes: &Selection{Include: []string{"orders", `pay\..*`}, Exclude: []string{"x"}, Rename: "{topic}"}, Before: before,
	}
}

// chain is one of so many hops, each of another route, with the longest names that Kafka takes.
func chain(n int) []Hop {
	if n == 0 {
		return nil
	}
	h := full(chain(n - 1)...)
	h.Route, h.Topic = fmt.Sprintf("@c%d@c%d@1", n, n+1), strings.Repeat("t", 249)
	return []Hop{h}
}

func TestMarkerIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	hops := []Hop{full(full2()), full2()}
	text, cut := Format(hops, MaxBytes)
	require.False(t, cut)
	got, err := Parse(text)
	require.NoError(t, err)
	require.Equal(t, Marker{Version: 1, Hops: hops}, got)
	least := formatOf(t, Hop{Route: "@a@b@1", Cluster: "A", Topic: "t", Since: 5})
	require.JSONEq(t, `{"v":1,"hops":[{"route":"@a@b@1","cluster":"A","topic":"t","since":5}]}`, least)
}

func full2() Hop {
	h := full()
	h.Route, h.Blind = "@x@sjc1@1", true
	return h
}

func formatOf(t *testing.T, hops ...Hop) string {
	t.Helper()
	text, cut := Format(hops, MaxBytes)
	require.False(t, cut)
	return text
}

// A broker refuses metadata of more than 4096 bytes by default, so nothing longer may be written, whatever there is to say. What goes first is what
// makes the answer of others stricter, never what makes it laxer.
func TestMarkerFitsIntoAnOffsetsMetadata(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 5, 8, 12, maxDepth, 100} {
		text, _ := Format(chain(n), MaxBytes)
		require.LessOrEqual(t, len(text), MaxBytes, n)
		m, err := Parse(text)
		require.NoError(t, err)
		require.NotEmpty(t, m.Hops)
	}
	eight := chain(8)
	eight[0].Takes.Include = []string{strings.Repeat("long", 1000)}
	text, cut := Format(eight, MaxBytes)
	require.False(t, cut, "eight hops with the longest names fit")
	m, err := Parse(text)
	require.NoError(t, err)
	require.Nil(t, m.Hops[0].Takes)
	require.True(t, m.Hops[0].Takes.Takes("anything"))

	many := make([]Hop, 100) // a hundred topics that flow into one: not even their names fit
	for i := range many {
		many[i] = chain(1)[0]
		many[i].Cluster = fmt.Sprint("c", i)
	}
	text, cut = Format(many, MaxBytes)
	require.True(t, cut)
	require.Empty(t, text)
	text, cut = Format(nil, MaxBytes)
	require.False(t, cut)
	require.Empty(t, text)
}

func TestHopsThatComeRoundAreCarriedOnce(t *testing.T) {
	t.Parallel()
	a, b := Hop{Route: "@b@a@1", Cluster: "B", Topic: "t"}, Hop{Route: "@a@b@1", Cluster: "A", Topic: "t"}
	inner := a
	for range 10 {
		b.Before = []Hop{inner}
		inner = a
		inner.Before = []Hop{b}
	}
	got := carried([]Hop{inner}, nil, 0)
	require.Len(t, got[0].Before, 1)
	require.Empty(t, got[0].Before[0].Before)
}

func TestTextsThatAreNoMarkers(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "{", "null", "[]", `{"v":2,"hops":[]}`, `{"hops":[]}`, `{"v":"1"}`, `{"v":1,"hops":[{"route":"r","cluster":"","topic":"t"}]}`,
	} {
		_, err := Parse(text)
		require.ErrorIs(t, err, ErrMarker, text)
	}
	m, err := Parse(`{"v":1,"hops":[{"route":"r","cluster":"c","topic":"t","later":true}],"more":1}`)
	require.NoError(t, err, "a later version may say more")
	require.Equal(t, Place{"c", "t"}, m.Hops[0].From())
}

func TestSelectionTakesWholeNames(t *testing.T) {
	t.Parallel()
	s := &Selection{Include: []string{"orders", `pay\..*`}, Exclude: []string{`.*\.tmp`}}
	for topic, want := range map[string]bool{"orders": true, "orders2": false, "pay.x": true, "pay.x.tmp": false, "__consumer_offsets": false} {
		require.Equal(t, want, s.Takes(topic), topic)
	}
	require.False(t, (&Selection{}).Takes("t"), "topics are told by others")
	require.True(t, (&Selection{Include: []string{"("}}).Takes("t"), "what can't be read is not taken for harmless")
	require.True(t, (&Selection{Include: []string{".*"}, Exclude: []string{"("}}).Takes("t"))
}

// FuzzParse: whatever somebody wrote into the group, reading and judging ends, and what is written of it fits and is read as the same.
func FuzzParse(f *testing.F) {
	for _, n := range []int{0, 1, 3} {
		text, _ := Format(chain(n), MaxBytes)
		f.Add(text)
	}
	f.Add(`{"v":1,"hops":[{"route":"r","cluster":"c","topic":"t","before":[{}]}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		m, err := Parse(text)
		if err != nil {
			return
		}
		Judge(Copying{Hop: Hop{Route: "r", Cluster: "s", Topic: "t", Before: m.Hops}, Target: Place{"c", "t"}})
		again, cut := Format(m.Hops, MaxBytes)
		if len(again) > MaxBytes {
			t.Fatalf("%d bytes", len(again))
		}
		if cut || again == "" {
			return
		}
		if _, err := Parse(again); err != nil {
			t.Fatalf("%q is written as %q: %v", text, again, err)
		}
	})
}
