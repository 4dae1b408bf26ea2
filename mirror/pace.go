package mirror

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/causeway-mirror/causeway/route"
)

// Limits are what those whom they are given to may take from the source together: all lanes of a worker, those of a topic, or one. 0 = no limit.
type Limits struct {
	RecordsPerSecond float64
	BytesPerSecond   float64 // as they come, compressed
}

// limits are all that hold on a worker. Each lane has the paces that are its own, so that one which must wait keeps no other waiting.
type limits struct {
	worker *paces
	any    atomic.Bool // some rate is limited

	mu     sync.Mutex // guards what follows; a leaf
	topics map[string]*paces
	parts  map[route.Partition]*paces
}

func newLimits() *limits {
	return &limits{worker: &paces{}, topics: map[string]*paces{}, parts: map[route.Partition]*paces{}}
}

// of lists the paces of a partition.
func (l *limits) of(p route.Partition) []*paces {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := []*paces{l.worker}
	if t := l.topics[p.Topic]; t != nil {
		all = append(all, t)
	}
	if own := l.parts[p]; own != nil {
		all = append(all, own)
	}
	return all
}

// setPace gives a key a rate, with the same paces as before if there were some: who shares them must see the new rate at once.
func setPace[K comparable](all map[K]*paces, key K, l Limits, now time.Time) {
	if l == (Limits{}) {
		delete(all, key)
		return
	}
	if all[key] == nil {
		all[key] = &paces{}
	}
	all[key].set(l, now)
}

// note finds out whether any rate is limited.
func (l *limits) note() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.any.Store(l.worker.limited() || len(l.topics)+len(l.parts) > 0)
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

// open says whether more may be fetched, and at most how many bytes at once: what is due in a second, or the rate would be kept in leaps.
func (p *paces) open(now time.Time, bytesPerRecord float64) (open bool, most float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	most = math.Inf(1)
	if p.bytes.perSecond > 0 {
		most = p.bytes.perSecond
	}
	if p.records.perSecond > 0 {
		most = min(most, p.records.perSecond*bytesPerRecord)
	}
	return p.records.open(now) && p.bytes.open(now), most
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
	m.limits.worker.set(l, m.streams[0].now())
	m.limits.note()
	for _, s := range m.streams {
		each(s.list(), (*Lane).paced)
	}
}

// SetTopicLimits bounds what all lanes of a topic together take, from now on, also those that are yet to come.
func (m *Mirror) SetTopicLimits(topic string, l Limits) {
	m.limits.mu.Lock()
	setPace(m.limits.topics, topic, l, m.streams[0].now())
	m.limits.mu.Unlock()
	m.limits.note()
	for _, s := range m.streams {
		each(s.list(), func(lane *Lane) {
			if lane.plan.Source.Topic == topic {
				lane.pace(m.limits)
			}
		})
	}
}

// SetPartitionLimits bounds what the lane of one partition takes, from now on, whenever there is one.
func (m *Mirror) SetPartitionLimits(p route.Partition, l Limits) {
	m.limits.mu.Lock()
	setPace(m.limits.parts, p, l, m.streams[0].now())
	m.limits.mu.Unlock()
	m.limits.note()
	each(m.stream(p).list(), func(lane *Lane) {
		if lane.plan.Source == p {
			lane.pace(m.limits)
		}
	})
}

// pace gives a lane the limits that hold for it now.
func (l *Lane) pace(limits *limits) {
	all := limits.of(l.plan.Source)
	l.mu.Lock()
	l.paces = all
	l.mu.Unlock()
	l.paced()
}

// dueLocked says whether the lane may fetch more, and at most how many bytes by the limits that hold for it.
func (l *Lane) dueLocked(now time.Time) (due bool, most int64) {
	bytesPerRecord := 0.0 // as long as it is not known: then as little as can be asked for
	if l.meter.records > 0 {
		bytesPerRecord = float64(l.meter.bytes) / float64(l.meter.records)
	}
	due, chunk := true, float64(math.MaxInt32)
	for _, p := range l.paces {
		open, most := p.open(now, bytesPerRecord)
		due, chunk = due && open, min(chunk, most)
	}
	return due, max(int64(chunk), minFetch)
}

// paced wakes the source of a lane that was turned away, if it would not be now.
func (l *Lane) paced() {
	now := l.stream.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.roomLeftLocked(now)
}
