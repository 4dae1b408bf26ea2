package api

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Bounds of the history. A topic takes historySamples × 4 numbers of 8 bytes, so the most of them take less than 13 MB; as many rings are there
// as there were topics.
const (
	historyInterval = 10 * time.Second
	historySpan     = time.Hour
	historySamples  = int(historySpan / historyInterval)
	historyTopics   = 1000
	trendSamples    = int(15 * time.Minute / historyInterval)
)

// historyMetrics are what is sampled, in the order of a moment's numbers.
func historyMetrics() []string {
	return []string{"records_per_second", "bytes_per_second", "lag_records", "lag_seconds"}
}

// lagRecords and lagSeconds are the last two of them; all but the latter are sums.
const (
	lagRecords = 2
	lagSeconds = 3
)

// moment is one sample: a number for each metric, NaN where it is not known; the first is NaN where there is no sample.
type moment [lagSeconds + 1]float64

// ring holds the samples of a topic, or of the whole route, each in the place of its tick.
type ring struct {
	moments [historySamples]moment
	last    int // the tick of its newest sample
}

func newRing() *ring {
	r := &ring{}
	for i := range r.moments {
		r.moments[i][0] = math.NaN()
	}
	return r
}

// put writes the sample of a tick, and that there is none of those in between.
func (r *ring) put(tick int, m moment) {
	for gap := max(r.last+1, tick-historySamples+1); gap < tick; gap++ {
		r.moments[gap%historySamples][0] = math.NaN()
	}
	r.moments[tick%historySamples], r.last = m, tick
}

// History is the answer of GET /api/v1/history.
type History struct {
	Metric          string   `json:"metric"`
	Topic           string   `json:"topic"` // empty: the whole route
	IntervalSeconds float64  `json:"interval_seconds"`
	Items           []Sample `json:"items"` // oldest first
}

// Sample is a number at a time.
type Sample struct {
	Time  time.Time `json:"time"`
	Value float64   `json:"value"`
}

// history keeps samples of the last hour in memory.
type history struct {
	mu     sync.Mutex
	tick   int // of the newest sample; guarded by mu, as all below
	times  [historySamples]time.Time
	whole  *ring
	topics map[string]*ring // at most historyTopics
}

func newHistory() *history { return &history{whole: newRing(), topics: map[string]*ring{}} }

// add takes a sample of every topic and of all together. A topic that left is forgotten after an hour, or when others need its place.
func (h *history) add(at time.Time, topics []Topic) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tick++
	h.times[h.tick%historySamples] = at
	full := len(h.topics) >= historyTopics
	maps.DeleteFunc(h.topics, func(_ string, r *ring) bool { return r.last <= h.tick-historySamples || full && r.last < h.tick-1 })
	var whole moment
	known := len(topics) == 0 // nothing lacks where there is nothing
	for i := range topics {
		t := &topics[i]
		m := moment{t.RecordsPerSecond, t.BytesPerSecond, float64(max(t.LagRecords, 0)), t.LagSeconds}
		for k := range lagSeconds {
			whole[k] += m[k]
		}
		whole[lagSeconds] = max(whole[lagSeconds], m[lagSeconds]) // as late as its latest topic
		known = m.know(t.LagRecords >= 0) || known
		r := h.topics[t.Topic]
		if r == nil && len(h.topics) < historyTopics {
			r = newRing()
			h.topics[t.Topic] = r
		}
		if r != nil {
			r.put(h.tick, m)
		}
	}
	whole.know(known)
	h.whole.put(h.tick, whole)
}

// know takes the lag back if it is not known, and returns whether it is. A topic none of whose lag is known may be late all the same.
func (m *moment) know(lag bool) bool {
	if lag {
		return true
	}
	m[lagRecords] = math.NaN()
	if m[lagSeconds] == 0 {
		m[lagSeconds] = math.NaN()
	}
	return false
}

// read gives what is known of a topic ("" means all together) from a time on, oldest first; false if it has no samples.
func (h *history) read(topic string, metric int, since time.Time) ([]Sample, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.whole
	if topic != "" {
		if r = h.topics[topic]; r == nil {
			return nil, false
		}
	}
	out := []Sample{}
	for tick := max(1, h.tick-historySamples+1); tick <= r.last; tick++ {
		m, at := r.moments[tick%historySamples], h.times[tick%historySamples]
		if !math.IsNaN(m[0]) && !math.IsNaN(m[metric]) && !at.Before(since) {
			out = append(out, Sample{Time: at, Value: m[metric]})
		}
	}
	return out, true
}

// trend gives the newest samples of a topic, oldest first, nil where nothing was known; nothing if the topic has no samples.
func (h *history) trend(topic string, metric int) []*float64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.topics[topic]
	if r == nil {
		return nil
	}
	out := make([]*float64, 0, trendSamples)
	for tick := max(1, h.tick-trendSamples+1); tick <= h.tick; tick++ {
		m := &r.moments[tick%historySamples]
		if tick > r.last || math.IsNaN(m[0]) || math.IsNaN(m[metric]) {
			out = append(out, nil)
			continue
		}
		value := m[metric]
		out = append(out, &value)
	}
	return out
}

// metricOf is the place of a metric in a moment.
func metricOf(key, name string) (int, error) {
	metric := slices.Index(historyMetrics(), name)
	if metric < 0 {
		return 0, fmt.Errorf("%s %q: must be one of %s", key, name, strings.Join(historyMetrics(), ", "))
	}
	return metric, nil
}

// sample takes samples until ctx ends. A process that does not lead its cluster knows too little and takes none.
func (s *Server) sample(ctx context.Context) {
	ticker := time.NewTicker(historyInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			if s.leads() {
				s.history.add(now, totalsOfTopics(s.deps.Mirror.Snapshot().Partitions))
			}
		}
	}
}

// leads says that this process answers for the route.
func (s *Server) leads() bool {
	if s.deps.Leadership == nil {
		return true
	}
	_, ok := s.deps.Leadership.Fleet()
	return ok
}

// pastOf answers GET /api/v1/history.
func (s *Server) pastOf(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	name, topic, now := q.Get("metric"), q.Get("topic"), time.Now()
	metric, err := metricOf("metric", name)
	since, sinceErr := parseSince(q.Get("since"), now)
	if err = errors.Join(repeated(q), err, sinceErr); err != nil {
		fail(w, http.StatusUnprocessableEntity, "invalid", err.Error())
		return
	}
	if hourAgo := now.Add(-historySpan); since.Before(hourAgo) {
		since = hourAgo // after a pause of sampling the rings hold older ones, too
	}
	items, kept := s.history.read(topic, metric, since)
	switch {
	case kept:
		answer(w, http.StatusOK, History{Metric: name, Topic: topic, IntervalSeconds: historyInterval.Seconds(), Items: items})
	case len(partitionsOf(s.deps.Mirror.Snapshot().Partitions, topic)) == 0:
		fail(w, http.StatusNotFound, "not_found", fmt.Sprintf("topic %q is not mirrored", topic))
	default:
		message := fmt.Sprintf("topic %q has no samples yet, or is one of more than %d topics; those of the first %d are kept", topic, historyTopics, historyTopics)
		fail(w, http.StatusNotFound, "not_kept", message)
	}
}

// parseSince reads a time, or a duration before now; the zero time where nothing is said.
func parseSince(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	if back, err := time.ParseDuration(text); err == nil && back >= 0 {
		return now.Add(-back), nil
	}
	return time.Time{}, fmt.Errorf("since %q: must be a time (RFC 3339) or a duration back such as 15m", text)
}
