package conf

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// hint names the known key that is meant, or all of them when none is near.
func hint(name string, known map[string]reflect.Type) string {
	names := slices.Sorted(maps.Keys(known))
	if len(names) == 0 {
		return ", none is known here"
	}
	best, near := nearest(name, names)
	if !near {
		return ", known are " + strings.Join(names, ", ") + "; nearest is \"" + best + "\""
	}
	return ", did you mean \"" + best + "\"?"
}

// DidYouMean asks behind an unknown name whether the nearest known one is meant, which is shown with a prefix such as --; empty if none is near.
func DidYouMean(name string, known []string, prefix string) string {
	best, near := nearest(name, known)
	if !near {
		return ""
	}
	return ", did you mean \"" + prefix + best + "\"?"
}

// nearest finds the known name that most resembles another one, and whether it is near enough to be meant.
func nearest(name string, known []string) (best string, near bool) {
	if len(known) == 0 {
		return "", false
	}
	best = slices.MinFunc(known, func(a, b string) int { return distance(name, a) - distance(name, b) })
	return best, distance(name, best) <= max(len(name), len(best))/2 || strings.HasPrefix(best, name)
}

// distance is how many letters must be inserted, deleted, replaced or swapped with their neighbour; case and the kind of dash don't count.
func distance(a, b string) int {
	plain := strings.NewReplacer("-", "_")
	a, b = plain.Replace(strings.ToLower(a)), plain.Replace(strings.ToLower(b))
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
