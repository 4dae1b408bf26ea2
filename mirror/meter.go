package mirror

import (
	"math"
	"time"
)

const (
	leastLimit  = 2 << 20
	worthAsking = 1 << 20 // room from which a fetch is worth its cost, however little the lane may hold
	meterWindow = 100 * time.Millisecond
	// minAckAge is how long the shortest acknowledgement time counts: long enough to survive a busy phase, short enough to notice that
	// the way has become longer.
	minAckAge = 10 * time.Second
)

// meter measures one lane, so that it holds about what its round trips need: twice rate × (time of a fetch + shortest time to an
// acknowledgement). It is not safe for concurrent use; the lane guards it.
type meter struct {
	records, bytes int64 // acknowledged, ever
	windowStart    time.Time
	windowBytes    int64
	windowBatches  int64
	rate           float64 // bytes/s
	batchRate      float64 // batches/s
	fetch          time.Duration
	minAck         time.Duration
	minAckAt       time.Time
	lastAck        time.Time
	lastRaw        bool
	merging        bool
}

func (m *meter) fetched(took time.Duration) {
	if m.fetch == 0 {
		m.fetch = took
		return
	}
	m.fetch += (took - m.fetch) / 8
}

// acked counts an acknowledged entry.
func (m *meter) acked(now time.Time, e *entry) {
	took := now.Sub(e.sent)
	m.records += int64(e.records)
	m.bytes += int64(len(e.batch))
	m.windowBytes += int64(len(e.batch))
	m.windowBatches++
	m.lastAck, m.lastRaw = now, e.raw
	if m.minAck == 0 || took < m.minAck || now.Sub(m.minAckAt) > minAckAge {
		m.minAck, m.minAckAt = took, now
	}
}

// limit is how many bytes the lane may hold, between leastLimit and most.
func (m *meter) limit(now time.Time, most int64) int64 {
	m.roll(now)
	need := int64(2 * m.rate * (m.fetch + m.minAck).Seconds())
	return min(max(need, leastLimit), max(most, leastLimit))
}

// roll ends a window that is over.
func (m *meter) roll(now time.Time) {
	if m.windowStart.IsZero() {
		m.windowStart = now
	}
	if d := now.Sub(m.windowStart); d >= meterWindow {
		m.rate = max(float64(m.windowBytes)/d.Seconds(), m.rate*math.Pow(0.8, max(1, d.Seconds())))
		m.batchRate = float64(m.windowBatches) / d.Seconds()
		m.windowStart, m.windowBytes, m.windowBatches = now, 0, 0
	}
}
