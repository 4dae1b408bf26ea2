package producer

import (
	"slices"
	"time"
)

const (
	leastInFlight = 4 << 20 // without a measurement, and on short ways
	mostQueue     = 500 * time.Millisecond
	windowSlots   = 10 // of windowTime each
	windowTime    = 200 * time.Millisecond
	latencyKept   = 64
)

// window measures a connection: how much must be in flight to fill it, and what its usual answer time is. It is guarded by its link.
type window struct {
	minTrip   time.Duration
	minTripAt time.Time
	begun     time.Time
	acked     int64
	rates     [windowSlots]float64 // bytes/s of the last windows
	at        int
	latencies [latencyKept]time.Duration
	counted   int
}

// answered notes a request of so many bytes that was answered after trip.
func (w *window) answered(now time.Time, bytes int64, trip time.Duration) {
	w.acked += bytes
	w.latencies[w.counted%latencyKept] = trip
	w.counted++
	if w.minTrip == 0 || trip < w.minTrip || now.Sub(w.minTripAt) > 10*time.Second {
		w.minTrip, w.minTripAt = trip, now
	}
	if w.begun.IsZero() {
		w.begun = now
	}
	if d := now.Sub(w.begun); d >= windowTime {
		w.at = (w.at + 1) % windowSlots
		w.rates[w.at] = float64(w.acked) / d.Seconds()
		w.begun, w.acked = now, 0
	}
}

// limit is how many bytes may be in flight: twice what the way holds, so that a doubling is noticed, but no more than half a second of
// queue, which would only make everything late.
func (w *window) limit() int64 {
	rate := slices.Max(w.rates[:])
	need := min(2*rate*w.minTrip.Seconds(), rate*(w.minTrip+mostQueue).Seconds())
	return max(int64(need), leastInFlight)
}

// median is the usual answer time, 0 before there is one.
func (w *window) median() time.Duration {
	n := min(w.counted, latencyKept)
	if n == 0 {
		return 0
	}
	kept := w.latencies
	slices.Sort(kept[:n])
	return kept[n/2]
}
