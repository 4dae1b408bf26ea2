package mirror

import (
	"sync"
	"time"
)

// Limits are what all lanes of a worker together may take from the source. 0 = no limit.
type Limits struct {
	RecordsPerSecond float64
	BytesPerSecond   float64 // as they come, compressed
}

// paces hold lanes back from fetching while more came than was due. What comes is known only afterwards, so they run into debt and make up for
// it: the rate is kept over time, not in each moment.
type paces struct {
	mu             sync.Mutex
	records, bytes pace // guarded by mu
}

// pace is one rate.
type pace struct {
	perSecond float64 // 0 = none
	due       float64 // negative: so many were too much
	at        time.Time
}

// burst is how long a time's worth may come at once after a pause.
const burst = 200 * time.Millisecond

func (p *paces) set(l Limits, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.records.set(l.RecordsPerSecond, now)
	p.bytes.set(l.BytesPerSecond, now)
}

// limited says whether there is a limit.
func (p *paces) limited() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.records.perSecond > 0 || p.bytes.perSecond > 0
}

// open says whether more may be fetched, and whether there is a limit at all.
func (p *paces) open(now time.Time) (open, limited bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.records.open(now) && p.bytes.open(now), p.records.perSecond > 0 || p.bytes.perSecond > 0
}

func (p *paces) took(records, bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.records.due -= float64(records)
	p.bytes.due -= float64(bytes)
}

// set begins anew: a debt from another rate is forgotten.
func (p *pace) set(perSecond float64, now time.Time) { *p = pace{perSecond: perSecond, at: now} }

func (p *pace) open(now time.Time) bool {
	if p.perSecond <= 0 {
		return true
	}
	p.due = min(p.due+p.perSecond*now.Sub(p.at).Seconds(), p.perSecond*burst.Seconds())
	p.at = now
	return p.due >= 0
}

// SetLimits bounds what all lanes together take, from now on.
func (m *Mirror) SetLimits(l Limits) {
	s := m.streams[0]
	s.paces.set(l, s.now())
	for _, s := range m.streams {
		s.each((*Lane).paced)
	}
}

// paced wakes the source of a lane that was turned away, if it would not be now.
func (l *Lane) paced() {
	now := l.stream.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.roomLeftLocked(now)
}
