package helix

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// controllerMetrics are a controller's. Labels such as the route come from the Registerer.
type controllerMetrics struct {
	leader                                            prometheus.Gauge
	reads, sent, transitions, views, stale, malformed prometheus.Counter
}

func newControllerMetrics(reg prometheus.Registerer) *controllerMetrics {
	with := promauto.With(reg)
	counter := func(name, help string) prometheus.Counter {
		return with.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	return &controllerMetrics{
		leader:      with.NewGauge(prometheus.GaugeOpts{Name: "causeway_controller_leader", Help: "1 while this process leads its cluster."}),
		reads:       counter("causeway_helix_reads_total", "Znodes read to keep the cluster's snapshot up to date."),
		sent:        counter("causeway_helix_messages_sent_total", "Messages written into queues of instances."),
		transitions: counter("causeway_helix_transitions_sent_total", "State transitions of single partitions asked for."),
		views:       counter("causeway_helix_views_written_total", "External views written or removed."),
		stale:       counter("causeway_helix_stale_messages_total", "Messages removed since they could not be carried out any more."),
		malformed:   counter("causeway_helix_malformed_total", "Znodes skipped since they are no records."),
	}
}
