package peers_test

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Flags of the tests. They are global since flags are.
var (
	write  = flag.Bool("write", false, "write the results of the cases that run into testdata/results.json and docs/guarantees.md")
	rounds = flag.Int("rounds", 10, "how often C11 ends a mirror by each signal")
)

const (
	resultsFile = "testdata/results.json"
	document    = "../../docs/guarantees.md"
	blockBegin  = "<!-- peers: generated, begin -->\n"
	blockEnd    = "<!-- peers: generated, end -->\n"
)

// result is a line of the table.
type result struct {
	Case     string   `json:"case"`
	Mirror   string   `json:"mirror"`
	Version  string   `json:"version"` // of MirrorMaker 2; Causeway is that of the same revision
	Date     string   `json:"date"`    // of the run
	Settings string   `json:"settings"`
	Common   string   `json:"common,omitempty"` // MirrorMaker 2's settings of every case
	Tally    tally    `json:"tally"`
	Pause    float64  `json:"pause_seconds"` // the longest; 0 where it means nothing
	Event    string   `json:"event"`         // what told of it: where, in which words; empty if nothing did
	NoEvent  bool     `json:"no_event_expected,omitempty"`
	Flaws    []string `json:"flaws"` // what of the exact result does not hold
	Notes    []string `json:"notes"`
}

func (r result) same(o result) bool {
	return r.Case == o.Case && r.Mirror == o.Mirror && r.Settings == o.Settings
}

func readResults(t *testing.T) (all []result) {
	t.Helper()
	text, err := os.ReadFile(resultsFile)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &all))
	return all
}

// keep writes a result down in place of its earlier one.
func keep(t *testing.T, fresh result) {
	t.Helper()
	all := append(slices.DeleteFunc(readResults(t), fresh.same), fresh)
	slices.SortStableFunc(all, func(a, b result) int {
		return cmp.Or(number(a.Case)-number(b.Case), strings.Compare(a.Mirror, b.Mirror), strings.Compare(a.Settings, b.Settings))
	})
	text, err := json.MarshalIndent(all, "", " ")
	require.NoError(t, err)
	replace(t, resultsFile, string(text)+"\n")
	render(t)
}

// render writes the table into the document.
func render(t *testing.T) {
	t.Helper()
	before, _, after := block(t)
	replace(t, document, before+table(readResults(t))+after)
}

func replace(t *testing.T, file, text string) {
	t.Helper()
	next := file + ".new"
	require.NoError(t, os.WriteFile(next, []byte(text), 0o600))
	require.NoError(t, os.Chmod(next, 0o644))
	require.NoError(t, os.Rename(next, file))
}

// number is that of a case: 14 of C14.
func number(name string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(name, "C"))
	return n
}

// block is the document before, in and behind what is generated.
func block(t *testing.T) (before, in, after string) {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(document))
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(text), blockBegin)
	require.True(t, found, blockBegin)
	in, after, found = strings.Cut(rest, blockEnd)
	require.True(t, found, blockEnd)
	return before + blockBegin, in, blockEnd + after
}

// table is the results in Markdown.
func table(all []result) string {
	var b strings.Builder
	b.WriteString("| case | mirror | holds | LOSS | DUP | foreign | disorder | longest pause | event | what was seen | run |\n|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range all {
		holds, pause, event := "yes", "–", "no"
		if len(r.Flaws) > 0 {
			holds = "**no**"
		}
		if r.Pause > 0 {
			pause = fmt.Sprintf("%.1f s", r.Pause)
		}
		if r.NoEvent {
			event = "–"
		}
		if r.Event != "" {
			event = "yes: " + r.Event
		}
		mirror := strings.TrimSpace(r.Mirror + " " + r.Version)
		if r.Settings != "" {
			mirror += ", " + r.Settings
		}
		seen := strings.Join(slices.Concat(r.Flaws, r.Notes), "; ")
		fmt.Fprintf(&b, "| **%s** | %s | %s | %d | %d | %d | %d | %s | %s | %s | %s |\n", r.Case, cell(mirror), holds,
			r.Tally.Loss, r.Tally.Dup, r.Tally.Strange, r.Tally.Disorder, pause, cell(event), cell(seen), r.Date)
	}
	var common []string // in the order of the table
	of := map[string][]string{}
	for _, r := range all {
		if r.Mirror == causeway || slices.Contains(of[r.Common], r.Case) {
			continue
		}
		if of[r.Common] == nil {
			common = append(common, r.Common)
		}
		of[r.Common] = append(of[r.Common], r.Case)
	}
	var missing []string
	for _, c := range trials() {
		if !slices.ContainsFunc(all, func(r result) bool { return r.Case == c.name && r.Mirror == mirrorMaker }) {
			missing = append(missing, c.name)
		}
	}
	if len(missing) > 0 {
		fmt.Fprintf(&b, "\nNot written down yet: %s.\n", strings.Join(missing, ", "))
	}
	for _, settings := range common {
		fmt.Fprintf(&b, "\nMirrorMaker 2's settings in %s, besides: %s.\n", strings.Join(of[settings], ", "), settings)
	}
	return b.String()
}

func cell(text string) string { return strings.ReplaceAll(text, "|", "\\|") }

// TestDocumentHasTheResults: the table of docs/guarantees.md is what the program found.
func TestDocumentHasTheResults(t *testing.T) {
	t.Parallel()
	if *write {
		render(t)
	}
	_, in, _ := block(t)
	all := readResults(t)
	require.Equal(t, table(all), in)
	cases := map[string]map[string]bool{}
	for i, r := range all {
		require.False(t, slices.ContainsFunc(all[:i], r.same), "%s twice", r.Case)
		if cases[r.Case] == nil {
			cases[r.Case] = map[string]bool{}
		}
		cases[r.Case][r.Mirror] = true
		require.True(t, r.Mirror != causeway || len(r.Flaws) == 0, "Causeway does not hold %s: %v", r.Case, r.Flaws)
	}
	for _, c := range trials() {
		if mirrors, found := cases[c.name]; found {
			require.Equal(t, map[string]bool{causeway: true, mirrorMaker: true}, mirrors, "%s has no result", c.name)
		}
		delete(cases, c.name)
	}
	require.Empty(t, cases, "results of no case")
}
