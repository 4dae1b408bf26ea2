package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// figure is something that is measured, and what it is to be. Smaller is better.
type figure struct {
	event, name string
	decimals    int
	goal        float64 // most that is wanted; none: there is no goal
	observed    string  // what uReplicator does; empty if unknown
}

// none is the goal of what is only told.
const none = -1

// Figures that several events have.
const (
	figureLost       = "records lost"
	figureTwice      = "records twice, or out of order"
	figureDuplicates = "duplicates"
)

// ledger collects figures, each as often as it was measured, in the order in which they first came.
type ledger struct {
	order  []figure
	values map[figure][]float64
}

func newLedger() *ledger { return &ledger{values: map[figure][]float64{}} }

func (g *ledger) note(f figure, value float64) {
	if _, there := g.values[f]; !there {
		g.order = append(g.order, f)
	}
	g.values[f] = append(g.values[f], value)
}

// take notes all that another one has, behind what there is.
func (g *ledger) take(other *ledger) {
	for _, f := range other.order {
		for _, value := range other.values[f] {
			g.note(f, value)
		}
	}
}

// table shows each figure beside its goal.
func (g *ledger) table() table {
	t := table{head: []string{"event", "figure", "median", "largest", "goal", "kept", "runs", "uReplicator, observed"}}
	for _, f := range g.order {
		values := g.values[f]
		goal, kept := missing, missing
		if f.goal != none {
			goal, kept = f.wanted(), f.kept(values)
		}
		observed := f.observed
		if observed == "" {
			observed = missing
		}
		t.add(f.event, f.name, decimal(median(values), f.decimals), decimal(slices.Max(values), f.decimals), goal, kept, strconv.Itoa(len(values)), observed)
	}
	return t
}

// wanted is the goal in words.
func (f figure) wanted() string {
	switch f.goal {
	case 0:
		return "0"
	case math.Trunc(f.goal):
		return "≤ " + decimal(f.goal, 0)
	}
	return "≤ " + decimal(f.goal, 1)
}

// kept says whether all runs were as good as the goal, or how many were.
func (f figure) kept(values []float64) string {
	good := 0
	for _, v := range values {
		if v <= f.goal {
			good++
		}
	}
	switch good {
	case len(values):
		return "yes"
	case 0:
		return "no"
	}
	return fmt.Sprintf("%d of %d", good, len(values))
}
