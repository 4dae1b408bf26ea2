package producer

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	errors  *prometheus.CounterVec
	private prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, route string) *metrics {
	f, labels := promauto.With(reg), prometheus.Labels{"route": route}
	return &metrics{
		errors: f.NewCounterVec(prometheus.CounterOpts{
			Name: "causeway_produce_errors_total", Help: "Batches that the target did not acknowledge, by the error's name.", ConstLabels: labels,
		}, []string{"error"}),
		private: f.NewCounter(prometheus.CounterOpts{
			Name: "causeway_slow_partitions_total", Help: "Times that a partition was moved to a connection of its own because its answers were late.",
			ConstLabels: labels,
		}),
	}
}

// inFlight counts at each scrape what is unanswered. Brokers that there is no connection to are left out: they may have left the cluster.
type inFlight struct {
	p    *Producer
	desc *prometheus.Desc
}

func newInFlight(p *Producer, route string) *inFlight {
	return &inFlight{p: p, desc: prometheus.NewDesc("causeway_in_flight_requests", "Unanswered Produce requests by target broker.", []string{"broker"},
		prometheus.Labels{"route": route})}
}

// Describe names the gauge.
func (f *inFlight) Describe(ch chan<- *prometheus.Desc) { ch <- f.desc }

// Collect adds up a broker's links.
func (f *inFlight) Collect(ch chan<- prometheus.Metric) {
	for broker, n := range f.p.unanswered() {
		ch <- prometheus.MustNewConstMetric(f.desc, prometheus.GaugeValue, float64(n), strconv.Itoa(int(broker)))
	}
}
