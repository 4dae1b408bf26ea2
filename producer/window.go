package producer

import (
	"slices"
	"time"
)

const (
	leastInFlight = 4 << 20 // without a measurement, and on short ways
	leastRequests = 64      // the same in requests
	mostQueue     = 500 * time.Millisecond
	requestQueue  = 50 * time.Millisecond
	windowSlots   = 10 // of windowTime each
	windowTime    = 200 * time.Millisecond
	latencyKept   = 64
	tripFresh     = 10 * time.Second // then the way may be another one
)

// window measures a connection: how much must be in flight to fill it, and what its usual answer time is. It is guarded by its link.
type window struct {
	minTrip   time.Duration
	minTripAt time.Time
	begun     time.Time
	acked     int64
	answers   int64
	rates     [windowSlots]float64 // bytes/s of the last windows
	counts    [windowSlots]float64 // requests/s of these
	at        int
	latencies [latencyKept]time.Duration
	counted   int
}

// answered notes a request of so many bytes that was answered after trip, and whether it was sent alone. What had others before it took longer
// than the way does: if that were taken for a new way, the queue would allow a longer queue.
func (w *window) answered(now time.Time, bytes int64, trip time.Duration, alone bool) {
	w.acked += bytes
	w.answers++
	w.latencies[w.counted%latencyKept] = trip
	w.counted++
	if w.minTrip == 0 || trip < w.minTrip || alone && w.stale(now) {
		w.minTrip, w.minTripAt = trip, now
	}
	if w.begun.IsZero() {
		w.begun = now
	}
	if d := now.Sub(w.begun); d >= windowTime {
		w.at = (w.at + 1) % windowSlots
		w.rates[w.at], w.counts[w.at] = float64(w.acked)/d.Seconds(), float64(w.answers)/d.Seconds()
		w.begun, w.acked, w.answers = now, 0, 0
	}
}

// stale says that the shortest way was not seen for long: the next request goes alone to measure it.
func (w *window) stale(now time.Time) bool { return w.minTrip > 0 && now.Sub(w.minTripAt) > tripFresh }

// limit is how many bytes may be in flight: twice what the way holds, so that a doubling is noticed, but no more than half a second of
// queue, which would only make everything late.
func (w *window) limit() int64 {
	rate := slices.Max(w.rates[:])
	need := min(2*rate*w.minTrip.Seconds(), rate*(w.minTrip+mostQueue).Seconds())
	return max(int64(need), leastInFlight)
}

// most is the same in requests, for small ones, of which many bytes are a long queue: a partition that catches up would hold up all others.
func (w *window) most() int {
	return max(int(slices.Max(w.counts[:])*(2*w.minTrip+requestQueue).Seconds()), leastRequests)
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
