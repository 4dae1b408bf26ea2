package controller

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	workers          prometheus.Gauge
	moves            *prometheus.CounterVec
	rebalanceSeconds prometheus.Histogram
	lagRecords       *prometheus.GaugeVec
	jobErrors        *prometheus.CounterVec
	topics           *prometheus.GaugeVec
	partitions       *prometheus.GaugeVec
}

func newMetrics(reg prometheus.Registerer, route string) *metrics {
	with := promauto.With(reg)
	labels := prometheus.Labels{"route": route}
	return &metrics{
		workers: with.NewGauge(prometheus.GaugeOpts{
			Name: "causeway_workers", Help: "Workers that are live, as the leader sees them.", ConstLabels: labels,
		}),
		moves: with.NewCounterVec(prometheus.CounterOpts{
			Name: "causeway_rebalance_moves_total", Help: "Partitions that got another owner, by reason.", ConstLabels: labels,
		}, []string{"reason"}),
		rebalanceSeconds: with.NewHistogram(prometheus.HistogramOpts{
			Name: "causeway_rebalance_seconds", Help: "Time from the decision to its last write, of rebalances that moved something.", ConstLabels: labels,
			Buckets: prometheus.ExponentialBuckets(0.005, 2, 12),
		}),
		lagRecords: with.NewGaugeVec(prometheus.GaugeOpts{
			Name: "causeway_controller_lag_records", Help: "Offsets between the committed position and the source's reachable end, of every partition.", ConstLabels: labels,
		}, []string{"topic", "partition"}),
		jobErrors: with.NewCounterVec(prometheus.CounterOpts{
			Name: "causeway_controller_job_errors_total", Help: "Runs of the leader's periodic jobs that failed, by task.", ConstLabels: labels,
		}, []string{"task"}), // "job" is Prometheus's own
		topics: with.NewGaugeVec(prometheus.GaugeOpts{
			Name: "causeway_controller_topics", Help: "Topics that are mirrored, and those whose external view does not fit.", ConstLabels: labels,
		}, []string{"state"}),
		partitions: with.NewGaugeVec(prometheus.GaugeOpts{
			Name: "causeway_controller_partitions", Help: "Partitions as the workers report them.", ConstLabels: labels,
		}, []string{"state"}),
	}
}

// observe publishes a comparison of ideal states and external views.
func (m *metrics) observe(v Validation) {
	m.topics.WithLabelValues("all").Set(float64(v.Topics))
	m.topics.WithLabelValues("error").Set(float64(v.ErrorTopics))
	m.partitions.WithLabelValues("all").Set(float64(v.Partitions))
	m.partitions.WithLabelValues("online").Set(float64(v.Online))
	m.partitions.WithLabelValues("offline").Set(float64(v.Offline))
	m.partitions.WithLabelValues("error").Set(float64(v.Error))
}

// forget takes back what only a leader knows.
func (m *metrics) forget() {
	m.workers.Set(0)
	m.lagRecords.Reset()
	m.topics.Reset()
	m.partitions.Reset()
}

// tallies count what a controller has done since it started, over its terms.
type tallies struct {
	rebalances, lagRuns, discoveries, adopted, expanded, failed atomic.Int64
}

// Tally is what a controller has done since it started, over its terms.
type Tally struct {
	Rebalances  int64 // that moved something
	LagRuns     int64 // measurements of lag that succeeded
	Discoveries int64
	Adopted     int64 // topics that were discovered
	Expanded    int64 // topics that were let grow
	Failed      int64 // topics that the last discovery could not add or expand
}

// Tally counts what was done.
func (c *Controller) Tally() Tally {
	n := c.tallies
	return Tally{
		Rebalances: n.rebalances.Load(), LagRuns: n.lagRuns.Load(), Discoveries: n.discoveries.Load(), Adopted: n.adopted.Load(),
		Expanded: n.expanded.Load(), Failed: n.failed.Load(),
	}
}
