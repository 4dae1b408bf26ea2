package peers_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

// tally is how a copy differs from what it should be.
type tally struct {
	Loss     int64 // records that are missing
	Dup      int64 // further copies of records that belong there
	Strange  int64 // records that do not belong there, such as those of aborted transactions
	Disorder int64 // records behind one that belongs behind them, first copies alone
}

func (c tally) plus(o tally) tally {
	return tally{c.Loss + o.Loss, c.Dup + o.Dup, c.Strange + o.Strange, c.Disorder + o.Disorder}
}

// count compares one partition with what it should hold, in order. What is counted must be told apart by its text.
func count(want, got []string) (c tally) {
	place, seen := make(map[string]int, len(want)), make(map[string]bool, len(want))
	for i, w := range want {
		place[w] = i
	}
	last := -1
	for _, g := range got {
		at, belongs := place[g]
		switch {
		case !belongs:
			c.Strange++
		case seen[g]:
			c.Dup++
		case at < last:
			c.Disorder++
		}
		if belongs {
			seen[g] = true
			last = max(last, at)
		}
	}
	c.Loss = int64(len(place) - len(seen))
	return c
}

// countAll is count over partitions. Partitions that got has more must be empty.
func countAll(want, got [][]string) (c tally) {
	for p := range max(len(want), len(got)) {
		var w, g []string
		if p < len(want) {
			w = want[p]
		}
		if p < len(got) {
			g = got[p]
		}
		c = c.plus(count(w, g))
	}
	return c
}

// texts are records with all that a mirror must keep of them; without the timestamp where that is not to be kept.
func texts(records [][]*kgo.Record, timestamps bool) [][]string {
	out := make([][]string, len(records))
	for p, list := range records {
		for _, r := range list {
			text := fmt.Sprintf("%t %q %t %q %q", r.Key == nil, r.Key, r.Value == nil, r.Value, r.Headers)
			if timestamps {
				text += fmt.Sprint(" ", r.Timestamp.UnixMilli())
			}
			out[p] = append(out[p], text)
		}
	}
	return out
}

func TestCount(t *testing.T) {
	t.Parallel()
	want := []string{"a", "b", "c"}
	for name, tc := range map[string]struct {
		got  []string
		want tally
	}{
		"equal":              {[]string{"a", "b", "c"}, tally{}},
		"nothing":            {nil, tally{Loss: 3}},
		"a gap":              {[]string{"a", "c"}, tally{Loss: 1}},
		"copied again":       {[]string{"a", "b", "b", "c"}, tally{Dup: 1}},
		"all again":          {[]string{"a", "b", "a", "b", "c"}, tally{Dup: 2}},
		"aborted records":    {[]string{"a", "x", "b", "c", "x"}, tally{Strange: 2}},
		"one too late":       {[]string{"b", "a", "c"}, tally{Disorder: 1}},
		"everything at once": {[]string{"c", "x", "a", "c"}, tally{Loss: 1, Dup: 1, Strange: 1, Disorder: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tc.want, count(want, tc.got))
		})
	}
	require.Equal(t, tally{Loss: 1, Strange: 1}, countAll([][]string{{"a"}}, [][]string{nil, {"a"}}), "a record in another partition is lost where it belongs")
}

func TestTextsTellNullFromEmpty(t *testing.T) {
	t.Parallel()
	of := func(r kgo.Record, timestamps bool) string { return texts([][]*kgo.Record{{&r}}, timestamps)[0][0] }
	require.NotEqual(t, of(kgo.Record{}, true), of(kgo.Record{Value: []byte{}}, true))
	require.NotEqual(t, of(kgo.Record{}, true), of(kgo.Record{Headers: []kgo.RecordHeader{{Key: "h"}}}, true))
}
