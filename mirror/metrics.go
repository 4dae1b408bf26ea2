package mirror

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/causeway-mirror/causeway/events"
)

// metrics are what all lanes of a route count.
type metrics struct {
	records, bytes *prometheus.CounterVec
	batches        *prometheus.CounterVec
	skipped        *prometheus.CounterVec
	returned       *prometheus.CounterVec
	avoided        prometheus.Counter
	latency        prometheus.Histogram

	mu     sync.Mutex // before a stream's
	topics map[string]*counts
}

// counts are one topic's counters, looked up once: a look-up by label for each batch would cost more than handling it.
type counts struct {
	records, bytes, raw, rewritten prometheus.Counter
	truncated                      prometheus.Counter // skipped because the source deleted them
	returned                       prometheus.Counter
	avoided                        prometheus.Counter // of all topics
	latency                        prometheus.Histogram
}

func newMetrics(reg prometheus.Registerer, route string, lanes func() []*Lane, waiting func() map[State]int) *metrics {
	f := promauto.With(reg)
	labels := prometheus.Labels{"route": route}
	counter := func(name, help string, names ...string) *prometheus.CounterVec {
		return f.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels}, names)
	}
	reg.MustRegister(&gauges{
		lanes:      lanes,
		waiting:    waiting,
		lag:        prometheus.NewDesc("causeway_lag_records", "Source records not yet acknowledged by the target.", []string{"topic", "partition"}, labels),
		lagBytes:   prometheus.NewDesc("causeway_lag_bytes", "About what these records take, by the mean of those before.", []string{"topic", "partition"}, labels),
		lagSeconds: prometheus.NewDesc("causeway_lag_seconds", "How long the partition has been behind its source's end, by own observation.", []string{"topic", "partition"}, labels),
		partitions: prometheus.NewDesc("causeway_partitions", "Partitions by state.", []string{"state"}, labels),
		commitAge:  prometheus.NewDesc("causeway_commit_age_seconds", "Age of the oldest acknowledged position that is not committed.", nil, labels),
	})
	return &metrics{
		records:  counter("causeway_records_total", "Records acknowledged by the target.", "topic"),
		bytes:    counter("causeway_bytes_total", "Bytes of record batches acknowledged by the target, as on the wire.", "topic"),
		batches:  counter("causeway_batches_total", "Batches acknowledged by the target, by the way they went.", "topic", "path"),
		skipped:  counter("causeway_skipped_records_total", "Source offsets of ranges that were skipped without a copy, by reason.", "topic", "reason"),
		returned: counter("causeway_returned_records_total", "Records left out since another mirror brought them from the target, counted as often as they were read.", "topic"),
		avoided: f.NewCounter(prometheus.CounterOpts{
			Name: "causeway_duplicates_avoided_total", ConstLabels: labels,
			Help: "Records beyond the known position that a take-over found on the target, and that were not stored again.",
		}),
		latency: f.NewHistogram(prometheus.HistogramOpts{
			Name: "causeway_replication_latency_seconds", Help: "Time from the fetch answer to the acknowledgement of a batch.", ConstLabels: labels,
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}),
		topics: map[string]*counts{},
	}
}

// begin gives a lane its topic's counters; add puts it among the others, before anybody can find that none is left.
func (m *metrics) begin(topic string, add func(*counts)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	add(m.countsLocked(topic))
}

func (m *metrics) countsLocked(topic string) *counts {
	c := m.topics[topic]
	if c == nil {
		c = &counts{
			records: m.records.WithLabelValues(topic), bytes: m.bytes.WithLabelValues(topic),
			raw: m.batches.WithLabelValues(topic, "raw"), rewritten: m.batches.WithLabelValues(topic, "rewrite"),
			truncated: m.skipped.WithLabelValues(topic, string(events.SourceTruncated)), returned: m.returned.WithLabelValues(topic),
			avoided: m.avoided, latency: m.latency,
		}
		m.topics[topic] = c
	}
	return c
}

// forget removes a topic's series when its last lane has left.
func (m *metrics) forget(topic string, lanes func() []*Lane) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if slices.ContainsFunc(lanes(), func(l *Lane) bool { return l.plan.Source.Topic == topic }) {
		return
	}
	delete(m.topics, topic)
	match := prometheus.Labels{"topic": topic}
	m.records.DeletePartialMatch(match)
	m.bytes.DeletePartialMatch(match)
	m.batches.DeletePartialMatch(match)
	m.skipped.DeletePartialMatch(match)
	m.returned.DeletePartialMatch(match)
}

func (c *counts) acked(now time.Time, e *entry) {
	c.records.Add(float64(e.records))
	c.bytes.Add(float64(len(e.batch)))
	if e.raw {
		c.raw.Inc()
	} else {
		c.rewritten.Inc()
	}
	c.latency.Observe(now.Sub(e.fetched).Seconds())
}

// stored counts records that were found on the target when it was thought to end before them.
func (c *counts) stored(records int64) {
	c.avoided.Add(float64(max(0, records)))
}

// gauges are computed when they are scraped, so that a partition that has left leaves no series behind.
type gauges struct {
	lanes                                            func() []*Lane
	waiting                                          func() map[State]int // partitions without a lane; may be nil
	lag, lagBytes, lagSeconds, partitions, commitAge *prometheus.Desc
}

// Describe lists the gauges.
func (g *gauges) Describe(ch chan<- *prometheus.Desc) {
	ch <- g.lag
	ch <- g.lagSeconds
	ch <- g.lagBytes
	ch <- g.partitions
	ch <- g.commitAge
}

// Collect computes them.
func (g *gauges) Collect(ch chan<- prometheus.Metric) {
	states := map[State]int{Starting: 0, Mirroring: 0, Paused: 0, Suspended: 0, Draining: 0, Halted: 0, Degraded: 0, Stopped: 0}
	oldest := time.Duration(0)
	for _, l := range g.lanes() {
		s := l.Status()
		states[s.State]++
		oldest = max(oldest, s.Uncommitted)
		labels := []string{s.Source.Topic, itoa(s.Source.Partition)}
		if s.LagRecords >= 0 {
			ch <- prometheus.MustNewConstMetric(g.lag, prometheus.GaugeValue, float64(s.LagRecords), labels...)
			ch <- prometheus.MustNewConstMetric(g.lagSeconds, prometheus.GaugeValue, s.LagSeconds, labels...)
		}
		if s.LagBytes >= 0 {
			ch <- prometheus.MustNewConstMetric(g.lagBytes, prometheus.GaugeValue, float64(s.LagBytes), labels...)
		}
	}
	if g.waiting != nil {
		for state, n := range g.waiting() {
			states[state] += n
		}
	}
	for state, n := range states {
		ch <- prometheus.MustNewConstMetric(g.partitions, prometheus.GaugeValue, float64(n), string(state))
	}
	ch <- prometheus.MustNewConstMetric(g.commitAge, prometheus.GaugeValue, oldest.Seconds())
}
