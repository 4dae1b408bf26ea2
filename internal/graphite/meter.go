package graphite

import (
	"math"
	"time"
)

// Meter makes of a counter the figures that uReplicator's meters had: the count, and rates a second over one, five and fifteen minutes and since
// the beginning. It is not for concurrent use.
type Meter struct {
	name    string
	read    func() float64
	began   time.Time
	at      time.Time
	last    float64
	rates   [3]float64
	started bool
}

// NewMeter meters a counter from now on.
func NewMeter(name string, now time.Time, read func() float64) *Meter {
	return &Meter{name: name, read: read, began: now, at: now}
}

// Samples looks at the counter.
func (m *Meter) Samples(now time.Time) []Sample {
	count := m.read()
	if d := now.Sub(m.at).Seconds(); d > 0 {
		rate := (count - m.last) / d
		for i, minutes := range []float64{1, 5, 15} {
			if share := 1 - math.Exp(-d/60/minutes); m.started {
				m.rates[i] += share * (rate - m.rates[i])
			} else {
				m.rates[i] = rate
			}
		}
		m.at, m.last, m.started = now, count, true
	}
	mean := 0.0
	if d := now.Sub(m.began).Seconds(); d > 0 {
		mean = count / d
	}
	return []Sample{
		{m.name + ".count", count},
		{m.name + ".m1_rate", m.rates[0]},
		{m.name + ".m5_rate", m.rates[1]},
		{m.name + ".m15_rate", m.rates[2]},
		{m.name + ".mean_rate", mean},
	}
}
