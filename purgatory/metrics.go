package purgatory

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	completed, expired, cancelled prometheus.Counter
}

func newMetrics(name, route string, reg prometheus.Registerer, pending func() float64) *metrics {
	labels := prometheus.Labels{"route": route, "purgatory": name}
	auto := promauto.With(reg)
	auto.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "causeway_purgatory_operations", Help: "Operations that wait for an event or for their time.", ConstLabels: labels,
	}, pending)
	ended := auto.NewCounterVec(prometheus.CounterOpts{
		Name: "causeway_purgatory_ended_total", Help: "Operations that have ended, by outcome: completed, expired or cancelled.", ConstLabels: labels,
	}, []string{"outcome"})
	return &metrics{
		completed: ended.WithLabelValues(string(Completed)), expired: ended.WithLabelValues(string(Expired)),
		cancelled: ended.WithLabelValues(string(Cancelled)),
	}
}

func (m *metrics) count(o Outcome) {
	switch o {
	case Completed:
		m.completed.Inc()
	case Expired:
		m.expired.Inc()
	case Cancelled:
		m.cancelled.Inc()
	}
}
