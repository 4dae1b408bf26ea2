package main

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// table is a Markdown table whose columns are aligned, so that it can be read as it is, too.
type table struct {
	head []string
	rows [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// String renders the table. Columns but the first two, which are words, stand at the right, and so does none that holds words.
func (t *table) String() string {
	width := make([]int, len(t.head))
	all := append([][]string{t.head}, t.rows...)
	for _, row := range all {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell), 3)
		}
	}
	var b strings.Builder
	line := func(cells []string) {
		for i := range t.head {
			cell := ""
			if i < len(cells) {
				cell = cells[i]
			}
			fmt.Fprintf(&b, "| %s%s ", cell, strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell)))
		}
		b.WriteString("|\n")
	}
	line(t.head)
	for _, w := range width {
		b.WriteString("|" + strings.Repeat("-", w+2))
	}
	b.WriteString("|\n")
	for _, row := range t.rows {
		line(row)
	}
	return b.String()
}

// missing stands where there is no figure.
const missing = "–"

// thousands writes a figure rounded to three digits, with commas: nothing here is known better.
func thousands(x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return missing
	}
	if x <= 0 {
		return "0"
	}
	unit := math.Pow(10, max(0, math.Floor(math.Log10(x))-2))
	digits := fmt.Sprintf("%.0f", math.Round(x/unit)*unit)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// decimal writes a figure with so many decimals.
func decimal(x float64, decimals int) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return missing
	}
	return fmt.Sprintf("%.*f", decimals, x)
}

// String writes the median and, in brackets, the least and the largest.
func (s spread) String() string {
	if math.IsNaN(s.median) {
		return missing
	}
	return fmt.Sprintf("%s (%s–%s)", decimal(s.median, 2), decimal(s.low, 2), decimal(s.high, 2))
}
