package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
)

// output is the form in which a read prints: table, json or yaml. It is a flag value, so that a wrong form is wrong usage.
type output string

// String gives the form.
func (o *output) String() string { return string(*o) }

// Type names the value in help texts.
func (*output) Type() string { return "table|json|yaml" }

// Set takes one of the forms.
func (o *output) Set(text string) error {
	switch text {
	case "table", "json", "yaml":
		*o = output(text)
		return nil
	default:
		return errors.New("must be table, json or yaml")
	}
}

// outputFile is where a command that always writes JSON writes it. It is a flag value, so that who asks for a form, as of a read, finds no file of
// that name later.
type outputFile string

// String gives the file.
func (f *outputFile) String() string { return string(*f) }

// Type names the value in help texts.
func (*outputFile) Type() string { return "FILE" }

// Set takes a file.
func (f *outputFile) Set(text string) error {
	switch text {
	case "table", "json", "yaml":
		return fmt.Errorf("is the name of a file here, and JSON it always is; ./%s if it is meant", text)
	default:
		*f = outputFile(text)
		return nil
	}
}

func (o *output) flag(cmd *cobra.Command) {
	*o = "table"
	cmd.Flags().VarP(o, "output", "o", "form of the answer")
	choices(cmd, "output", "table", "json", "yaml")
}

// choices lets a shell complete the words that a flag takes.
func choices(cmd *cobra.Command, flag string, words ...string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic("BUG: " + err.Error())
	}
}

// print writes v as JSON or YAML, or lets rows fill a table.
func (o *output) print(w io.Writer, v any, rows func(*table)) error {
	if *o == "table" {
		t := newTable(w)
		rows(t)
		return t.w.Flush()
	}
	var plain bytes.Buffer
	encoder := json.NewEncoder(&plain)
	encoder.SetEscapeHTML(false) // people read it: -> stays ->
	encoder.SetIndent("", "  ")
	err := encoder.Encode(v)
	if err != nil {
		return fmt.Errorf("write answer as json: %w", err)
	}
	text := plain.Bytes()
	if *o == "yaml" {
		if text, err = jsonToYAML(text); err != nil {
			return fmt.Errorf("write answer as yaml: %w", err)
		}
	}
	_, err = fmt.Fprintln(w, strings.TrimRight(string(text), "\n"))
	return err
}

// jsonToYAML keeps the order of keys and the exact numbers: JSON is YAML in another style.
func jsonToYAML(text []byte) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	blockStyle(&doc)
	return yaml.Marshal(&doc)
}

func blockStyle(n *yaml.Node) {
	n.Style = 0 // the encoder quotes where plain text would be read as something else
	for _, c := range n.Content {
		blockStyle(c)
	}
}

// table aligns columns.
type table struct {
	w       *tabwriter.Writer
	colours bool
}

func newTable(w io.Writer) *table {
	return &table{w: tabwriter.NewWriter(w, 0, 4, 2, ' ', 0), colours: isTerminal(w) && os.Getenv("NO_COLOR") == ""}
}

// row writes one line. What is long is shortened, except in the last column, which widens nothing: json and yaml have all of it.
func (t *table) row(cells ...string) {
	shown := make([]string, len(cells))
	for i, cell := range cells {
		cell = strings.ReplaceAll(cell, "\n", "; ") // several faults are one reason, and one row
		if shown[i] = cell; i < len(cells)-1 && !strings.HasPrefix(cell, escape) {
			shown[i] = shortened(cell)
		}
	}
	fmt.Fprintln(t.w, strings.Join(shown, "\t"))
}

// cellWidth is the greatest width of a column, in characters.
const cellWidth = 64

// shortened leaves out the middle: names differ at their ends, and partitions have their numbers there.
func shortened(text string) string {
	runes := []rune(text)
	if len(runes) <= cellWidth {
		return text
	}
	head, tail := cellWidth/2, cellWidth-cellWidth/2-1
	return string(runes[:head]) + "…" + string(runes[len(runes)-tail:])
}

// count writes a number with thousands marked: 1,234,567; unknown numbers (-1) as a dash.
func count[N ~int64 | ~int](n N) string {
	if n < 0 {
		return "-"
	}
	text := strconv.FormatInt(int64(n), 10)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// plural writes a number with its noun: 1 partition, 2,000 partitions.
func plural[N ~int64 | ~int | ~int32](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return count(int64(n)) + " " + noun + "s"
}

// short writes a number in few signs: 1.25M, 20.1k, 900.
func short(n float64) string {
	switch {
	case n >= 1e6:
		return fmt.Sprintf("%.2fM", n/1e6)
	case n >= 1e4:
		return fmt.Sprintf("%.1fk", n/1e3)
	default:
		return fmt.Sprintf("%.0f", n)
	}
}

// rate writes records per second.
func rate(perSecond float64) string { return short(perSecond) + "/s" }

// megabytes writes bytes per second as MB/s (10^6).
func megabytes(perSecond float64) string { return fmt.Sprintf("%.2f MB/s", perSecond/1e6) }

// seconds writes a duration to the tenth below a minute and to the second above.
func seconds(s float64) string {
	d := time.Duration(s * float64(time.Second))
	if d < time.Minute {
		return fmt.Sprintf("%.1fs", s)
	}
	return d.Round(time.Second).String()
}

// behind writes for how long something has been behind; of a lag that is not known (-1) nobody can say that it is 0.
func behind(lag int64, s float64) string {
	if lag < 0 && s == 0 {
		return "-"
	}
	return seconds(s)
}

// states writes counts by state, in order of names.
func states(m map[string]int) string {
	var parts []string
	for _, name := range sortedKeys(m) {
		parts = append(parts, fmt.Sprintf("%d %s", m[name], name))
	}
	if parts == nil {
		return "none"
	}
	return strings.Join(parts, ", ")
}
