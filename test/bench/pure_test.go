package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMedian(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		values []float64
		want   float64
	}{
		{"one", []float64{4}, 4},
		{"odd, unsorted", []float64{9, 1, 5}, 5},
		{"even", []float64{4, 1, 3, 2}, 2.5},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			before := append([]float64(nil), c.values...)
			require.Equal(t, c.want, median(c.values))
			require.Equal(t, before, c.values, "the order of the runs is kept: pairs are made by it")
		})
	}
	require.True(t, math.IsNaN(median(nil)))
}

func TestQuantile(t *testing.T) {
	t.Parallel()
	var hundred []float64
	for i := 100; i > 0; i-- {
		hundred = append(hundred, float64(i))
	}
	require.Equal(t, 50.0, quantile(hundred, 0.5))
	require.Equal(t, 99.0, quantile(hundred, 0.99))
	require.Equal(t, 100.0, quantile(hundred, 0.999))
	require.Equal(t, 100.0, quantile(hundred, 1))
	require.Equal(t, 7.0, quantile([]float64{7}, 0.01))
	require.True(t, math.IsNaN(quantile(nil, 0.5)))
}

func TestRatiosArePairwise(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	require.Equal(t, spread{2, 0.5, 4}, ratios([]float64{10, 40, 5}, []float64{5, 10, 10}))
	require.Equal(t, spread{3, 2, 4}, ratios([]float64{10, 1, nan, 40, 7}, []float64{5, nan, 1, 10, 0}), "pairs that lack one, or have a zero, do not count")
	require.True(t, math.IsNaN(ratios([]float64{nan}, []float64{1}).median))
	require.Equal(t, missing, ratios(nil, nil).String())
	require.Equal(t, "2.00 (0.50–4.00)", spread{2, 0.5, 4}.String())
}

func TestThousands(t *testing.T) {
	t.Parallel()
	for want, x := range map[string]float64{
		"0": 0, "7": 7, "12": 12.4, "123": 123.4, "1,230": 1234, "99,900": 99_949, "100,000": 99_950, "1,880,000": 1_884_321, missing: math.Inf(1),
	} {
		require.Equal(t, want, thousands(x))
	}
	require.Equal(t, missing, thousands(math.NaN()))
}

func TestTableIsAligned(t *testing.T) {
	t.Parallel()
	tab := table{head: []string{"a", "long head"}}
	tab.add("–", "x")
	tab.add("wide cell")
	lines := strings.Split(strings.TrimSpace(tab.String()), "\n")
	require.Equal(t, []string{
		"| a         | long head |",
		"|-----------|-----------|",
		"| –         | x         |",
		"| wide cell |           |",
	}, lines)
}

func TestCPUSeconds(t *testing.T) {
	t.Parallel()
	got, err := cpuSeconds("4711 (odd) name (1)) S 1 4711 4711 0 -1 4194560 17 0 0 0 1234 66 5 6 20 0 9 0 100 1 2")
	require.NoError(t, err)
	require.InDelta(t, 13.0, got, 1e-9, "user and system, without children")
	for _, text := range []string{"", "1 (x) S 1", "1 (x) S 1 2 3 4 5 6 7 8 9 10 user system 0"} {
		_, err := cpuSeconds(text)
		require.Error(t, err, text)
	}
}

func TestFieldsOfProc(t *testing.T) {
	t.Parallel()
	status := "Name:\tcauseway\nVmHWM:\t  204800 kB\nVmRSS:\t  102400 kB\n"
	require.Equal(t, 102400.0, kilobytes(status, "VmRSS"))
	require.Zero(t, kilobytes(status, "VmSwap"))
	require.Equal(t, "Fast (tm): 9000", field("processor\t: 0\nmodel name\t: Fast (tm): 9000\n", "model name"))
	require.Equal(t, "17.0.15", javaVersion("openjdk version \"17.0.15\" 2025-04-15\n"))
	require.Empty(t, javaVersion("not found"))
}

func TestBetweenSamples(t *testing.T) {
	t.Parallel()
	began := time.Unix(100, 0)
	a := sample{at: began, records: 1000, usage: usage{cpu: 2}}
	b := sample{at: began.Add(2 * time.Second), records: 5000, usage: usage{cpu: 2.5, resident: 30, peak: 40}}
	require.Equal(t, result{rate: 2000, perCPU: 8000, resident: 30, peak: 40}, between(a, b))
	same := between(b, b)
	require.True(t, math.IsNaN(same.rate))
	require.NotEmpty(t, same.note, "what is not known is said, not made up")
	b.cpu = a.cpu
	free := between(a, b)
	require.Equal(t, 2000.0, free.rate)
	require.True(t, math.IsNaN(free.perCPU))
	require.NotEmpty(t, free.note)
}

func TestNotes(t *testing.T) {
	t.Parallel()
	require.Empty(t, notes([]result{{}, {}}))
	require.Equal(t, "missing", notes([]result{{note: "missing"}, {note: "missing"}}))
	require.Equal(t, "1 of 3: a / b; 1 of 3: c", notes([]result{{note: "a | b"}, {}, {note: "c"}}))
}

func TestReportOfFailures(t *testing.T) {
	t.Parallel()
	rep := newReport("About.")
	rep.add(&series{
		name: "one", order: []string{"causeway", "mm2", "never"}, compare: [][2]string{{"causeway", "mm2"}, {"causeway", "never"}},
		results: map[string][]result{
			"causeway": {{rate: 2000, perCPU: 4000, resident: 30, peak: 31}, {rate: 3000, perCPU: 6000, resident: 30, peak: 31}},
			"mm2":      {failed(os.ErrNotExist), {rate: 1000, perCPU: 500, resident: 600, peak: 700}},
		},
	})
	text := rep.String()
	require.Contains(t, text, "1 of 2: failed: file does not exist")
	require.Contains(t, text, "| 3.00 (3.00–3.00) | 12.00 (12.00–12.00) |", "only the second pair is one")
	require.Contains(t, text, "| 2,500 ")
	require.NotContains(t, text, "never")
}

func TestDelaysCountTheWindowOnly(t *testing.T) {
	t.Parallel()
	before, after := sample{at: time.Unix(10, 0)}, sample{at: time.Unix(11, 0), usage: usage{cpu: 0.5}}
	in := &arrivals{}
	for i := range 3 * latencyRate {
		sent := time.Unix(9, 0).Add(time.Duration(i) * time.Second / latencyRate)
		late := 2 * time.Millisecond
		if sent.Before(before.at) || !sent.Before(after.at) {
			late = time.Hour
		}
		in.sent = append(in.sent, sent.UnixNano())
		in.all = append(in.all, arrival{sent.UnixNano(), sent.Add(late).UnixNano()})
	}
	d, err := in.delays(before, after)
	require.NoError(t, err)
	require.Equal(t, 2.0, d.p50)
	require.Equal(t, 2.0, d.largest)
	require.InDelta(t, 0.5, d.rate/d.perCPU, 1e-9, "share of a core")
	in.all = in.all[:len(in.all)/2]
	_, err = in.delays(before, after)
	require.Error(t, err, "records that are missing are not left out silently")
}

func TestSections(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "doc.md")
	require.NoError(t, os.WriteFile(path, []byte("# Head\n\n<!-- bench wan: generated, begin -->\nold\n<!-- bench wan: generated, end -->\n\nTail\n"), 0o600))
	require.NoError(t, writeSection(path, "wan", "new\n"))
	require.Equal(t, "# Head\n\n<!-- bench wan: generated, begin -->\nnew\n<!-- bench wan: generated, end -->\n\nTail\n", read(path))
	require.NoError(t, writeSection(path, "hot", "more"), "a document without the markers gets them")
	require.NoError(t, writeSection(path, "hot", "most"))
	require.Equal(t, 1, strings.Count(read(path), "most"))
	require.NotContains(t, read(path), "more")
	require.Contains(t, read(path), "new")
	_, err := section("<!-- bench wan: generated, begin --> cut off", "wan", "x")
	require.Error(t, err)
}

func TestFlags(t *testing.T) {
	t.Parallel()
	o, err := parse([]string{"-quick"})
	require.NoError(t, err)
	require.Empty(t, o.out, "a quick run does not overwrite figures")
	require.Equal(t, 1, o.pairs)
	o, err = parse([]string{"-quick", "-out", "x", "-pairs", "3", "-parts", "wan,hot"})
	require.NoError(t, err)
	require.Equal(t, options{parts: []string{"wan", "hot"}, pairs: 3, quick: true, mm2: true, matrix: true, limit: o.limit, out: "x"}, o)
	for _, args := range [][]string{{"-parts", "speed"}, {"-pairs", "0"}, {"-records", "-1"}} {
		_, err := parse(args)
		require.Error(t, err, args)
	}
}

func TestDocumentHasAllSections(t *testing.T) {
	t.Parallel()
	document := read(filepath.Join("..", "..", "docs", "performance.md"))
	for _, p := range parts() {
		changed, err := section(document, p.name, "x")
		require.NoError(t, err)
		require.NotContains(t, changed, "\n## "+p.name+"\n", "the document has no place for part %s", p.name)
	}
}

func TestLongestGap(t *testing.T) {
	t.Parallel()
	at := func(seconds ...int) (times []time.Time) {
		for _, s := range seconds {
			times = append(times, time.Unix(int64(s), 0))
		}
		return times
	}
	for _, c := range []struct {
		name         string
		beats        []time.Time
		longest, end int
	}{
		{"in the middle", at(8, 10, 12, 17, 18, 20), 5, 17},
		{"what began before counts from the beginning on", at(2, 13, 14, 16, 18, 20), 3, 13},
		{"at the end", at(10, 11, 12, 13, 30), 7, 20},
		{"never", nil, 10, 20},
		{"all before", at(1, 2), 10, 20},
		{"all after", at(25), 10, 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			longest, end := longestGap(c.beats, time.Unix(10, 0), time.Unix(20, 0))
			require.Equal(t, time.Duration(c.longest)*time.Second, longest)
			require.Equal(t, int64(c.end), end.Unix())
		})
	}
}

func TestLedgerShowsGoals(t *testing.T) {
	t.Parallel()
	g := newLedger()
	g.note(figure{"killed", "pause, s", 1, 9, "26"}, 7)
	g.note(figure{"killed", "duplicates", 0, 0, ""}, 0)
	g.note(figure{"killed", "pause, s", 1, 9, "26"}, 9.5)
	g.note(figure{"killed", "pause, s", 1, 9, "26"}, 8)
	g.note(figure{"idle", "resident MB", 0, none, ""}, 123)
	g.note(figure{"idle", "pause, s", 2, noise, ""}, 0.2)
	shown := g.table()
	require.Equal(t, [][]string{
		{"killed", "pause, s", "8.0", "9.5", "≤ 9", "2 of 3", "3", "26"},
		{"killed", "duplicates", "0", "0", "0", "yes", "1", missing},
		{"idle", "resident MB", "123", "123", missing, missing, "1", missing},
		{"idle", "pause, s", "0.20", "0.20", "≤ 0.1", "no", "1", missing},
	}, shown.rows)
}

func TestNodesThatWereWritten(t *testing.T) {
	t.Parallel()
	at := func(zxid, milliseconds int) stamp { return stamp{int64(zxid), time.UnixMilli(int64(milliseconds))} }
	before := nodes{"/c/IDEALSTATES/a": at(1, 0), "/c/EXTERNALVIEW/a": at(2, 0), "/c/IDEALSTATES/b": at(3, 0), "/c/IDEALSTATES/d": at(4, 0)}
	after := nodes{"/c/IDEALSTATES/a": at(5, 100), "/c/EXTERNALVIEW/a": at(6, 300), "/c/IDEALSTATES/b": at(3, 0), "/c/IDEALSTATES/e": at(7, 2000)}
	require.Equal(t, 2, before.changedIn(after), "a was written, d is gone, e is new")
	require.Equal(t, 3, before.behind(after))
	require.Equal(t, 300*time.Millisecond, after.busy(), "what comes after a pause is another commit")
}

func TestBusySecondsLeavesOutWhatWaits(t *testing.T) {
	t.Parallel()
	stat := "cpu  100 20 30 9000 500 4 6 10 77 5\ncpu0 50 10 15 4500 250 2 3 5 38 2\n"
	require.InDelta(t, 1.7, busySeconds(stat), 1e-9) // guests are counted in user already
	require.Zero(t, busySeconds(""))
}
