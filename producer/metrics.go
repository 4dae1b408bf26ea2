package producer

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	errors   *prometheus.CounterVec
	inFlight *prometheus.GaugeVec
	private  prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, route string) *metrics {
	f, labels := promauto.With(reg), prometheus.Labels{"route": route}
	return &metrics{
		errors: f.NewCounterVec(prometheus.CounterOpts{
			Name: "causeway_produce_errors_total", Help: "Batches that the target did not acknowledge, by the error's name.", ConstLabels: labels,
		}, []string{"error"}),
		inFlight: f.NewGaugeVec(prometheus.GaugeOpts{
			Name: "causeway_in_flight_requests", Help: "Unanswered Produce requests by target broker.", ConstLabels: labels,
		}, []string{"broker"}),
		private: f.NewCounter(prometheus.CounterOpts{
			Name: "causeway_slow_partitions_total", Help: "Times that a partition was moved to a connection of its own because its answers were late.",
			ConstLabels: labels,
		}),
	}
}
