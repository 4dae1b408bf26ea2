package main

import (
	"math"
	"slices"
)

// median returns the middle value, or the mean of the two in the middle; NaN of none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// quantile returns the smallest value that at least the share q of all are not above; NaN of none.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	at := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(at, 0), len(sorted)-1)]
}

// spread is the quotients of measurements that were made one after the other.
type spread struct{ median, low, high float64 }

// ratios divides pair by pair. A pair of which one is missing (NaN) does not count; without any pair all are NaN.
func ratios(a, b []float64) spread {
	var quotients []float64
	for i := range min(len(a), len(b)) {
		if q := a[i] / b[i]; !math.IsNaN(q) && !math.IsInf(q, 0) {
			quotients = append(quotients, q)
		}
	}
	if len(quotients) == 0 {
		return spread{math.NaN(), math.NaN(), math.NaN()}
	}
	return spread{median(quotients), slices.Min(quotients), slices.Max(quotients)}
}

// known leaves out what is missing.
func known(values []float64) []float64 {
	return slices.DeleteFunc(slices.Clone(values), math.IsNaN)
}
