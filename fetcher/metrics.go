package fetcher

import "github.com/prometheus/client_golang/prometheus"

// linkLabel counts broken connections among the protocol's errors.
const linkLabel = "LINK"

type metrics struct {
	reg    prometheus.Registerer
	errors *prometheus.CounterVec
}

// newMetrics registers the package's metrics; reg may be nil.
func newMetrics(reg prometheus.Registerer, routeName string) *metrics {
	m := &metrics{reg: reg, errors: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name:        "causeway_fetch_errors_total",
		Help:        "Errors of fetches from the source cluster by protocol error name; LINK is a broken connection.",
		ConstLabels: prometheus.Labels{"route": routeName},
	}, []string{"error"})}
	if reg != nil {
		reg.MustRegister(m.errors)
	}
	return m
}

// close removes the series.
func (m *metrics) close() {
	if m.reg != nil {
		m.reg.Unregister(m.errors)
	}
}
