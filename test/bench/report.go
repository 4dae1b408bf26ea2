package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// report is the generated section of one part.
type report struct {
	conditions string // when and where
	about      string // what the cases are
	figures    table
	ratios     table
}

func newReport(about string) *report {
	return &report{
		about:   about,
		figures: table{head: []string{"case", "mirror", "records/s", "records per CPU s", "resident MB", "peak MB", "runs", "remarks"}},
		ratios:  table{head: []string{"case", "ratio", "records/s", "records per CPU s"}},
	}
}

// add takes a finished case: medians of each entrant, and the first entrant's ratios, pair by pair, to those named.
func (r *report) add(s *series) {
	for _, name := range s.order {
		results := s.results[name]
		if len(results) == 0 { // interrupted before its turn
			continue
		}
		f := columns(results)
		r.figures.add(s.name, name, thousands(median(known(f.rate))), thousands(median(known(f.perCPU))), thousands(median(known(f.resident))),
			thousands(median(known(f.peak))), strconv.Itoa(len(results)), notes(results))
	}
	for _, p := range s.compare {
		if len(s.results[p[0]]) == 0 || len(s.results[p[1]]) == 0 {
			continue
		}
		a, b := columns(s.results[p[0]]), columns(s.results[p[1]])
		r.ratios.add(s.name, p[0]+" / "+p[1], ratios(a.rate, b.rate).String(), ratios(a.perCPU, b.perCPU).String())
	}
}

// String is the section in Markdown.
func (r *report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n%s\n\n%s", r.conditions, r.about, r.figures.String())
	if len(r.ratios.rows) > 0 {
		fmt.Fprintf(&b, "\nRatios of runs that followed each other: median (least–largest).\n\n%s", r.ratios.String())
	}
	return b.String()
}

// figures are the same figure of all runs, in the order of the runs.
type figures struct{ rate, perCPU, resident, peak []float64 }

func columns(results []result) figures {
	var f figures
	for _, r := range results {
		f.rate = append(f.rate, r.rate)
		f.perCPU = append(f.perCPU, r.perCPU)
		f.resident = append(f.resident, r.resident)
		f.peak = append(f.peak, r.peak)
	}
	return f
}

// notes says what was the matter, each thing once and, unless that is all of them, with how many runs it happened in.
func notes(results []result) string {
	var order []string
	times := map[string]int{}
	for _, r := range results {
		if r.note == "" {
			continue
		}
		if times[r.note] == 0 {
			order = append(order, r.note)
		}
		times[r.note]++
	}
	for i, note := range order {
		text := strings.ReplaceAll(note, "|", "/") // would end the table's cell
		if times[note] < len(results) {
			text = fmt.Sprintf("%d of %d: %s", times[note], len(results), text)
		}
		order[i] = text
	}
	return strings.Join(order, "; ")
}

// section replaces what stands between the markers of a part, or appends markers and text to a document that has none.
func section(document, part, text string) (string, error) {
	begin, end := fmt.Sprintf("<!-- bench %s: generated, begin -->", part), fmt.Sprintf("<!-- bench %s: generated, end -->", part)
	text = "\n" + strings.TrimSpace(text) + "\n"
	head, rest, found := strings.Cut(document, begin)
	if !found {
		if document != "" && !strings.HasSuffix(document, "\n") {
			document += "\n"
		}
		return document + "\n## " + part + "\n\n" + begin + text + end + "\n", nil
	}
	_, tail, found := strings.Cut(rest, end)
	if !found {
		return "", fmt.Errorf("the section of part %s has no end marker", part)
	}
	return head + begin + text + end + tail, nil
}

// writeSection changes one part's section in a document, which need not exist. Readers see the old document or the new one.
func writeSection(path, part, text string) error {
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("read document: %w", err)
	}
	changed, err := section(string(old), part, text)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	temporary := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".new")
	if err := os.WriteFile(temporary, []byte(changed), 0o644); err != nil {
		return fmt.Errorf("write document: %w", err)
	}
	return os.Rename(temporary, path)
}
