package main

import "strings"

// Colours of a terminal, as the numbers of SGR (ECMA-48). All have two digits: cells of a column must be equally much wider than they look.
const (
	escape   = "\x1b["
	red      = "31"
	green    = "32"
	yellow   = "33"
	uncolour = "39"
)

// painted gives a cell the colour of the word in it that worries most, where a person sees it. Of a column either all cells are painted, its head
// too, or none, since the table's writer takes the signs for letters.
func (t *table) painted(cell string) string {
	if !t.colours {
		return cell
	}
	cell = shortened(cell)
	colour := uncolour
	for word := range strings.FieldsFuncSeq(cell, func(r rune) bool { return r == ' ' || r == ',' || r == ':' }) {
		switch word {
		case "halted", "gone", "stopped", "error":
			colour = red
		case "degraded", "unassigned", "suspended", "silent", "warning":
			if colour != red {
				colour = yellow
			}
		case "mirroring", "active":
			if colour == uncolour {
				colour = green
			}
		}
	}
	return escape + colour + "m" + cell + escape + "0m"
}
