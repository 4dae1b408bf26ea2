package network

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics are those of one listener.
type Metrics struct {
	connections      prometheus.Gauge
	refused, evicted prometheus.Counter
}

// NewMetrics registers the metrics of a listener, which is called name in them.
func NewMetrics(name, route string, reg prometheus.Registerer) *Metrics {
	labels := prometheus.Labels{"route": route, "listener": name}
	auto := promauto.With(reg)
	return &Metrics{
		connections: auto.NewGauge(prometheus.GaugeOpts{
			Name: "causeway_network_connections", Help: "Open connections.", ConstLabels: labels,
		}),
		refused: auto.NewCounter(prometheus.CounterOpts{
			Name: "causeway_network_connections_refused_total", Help: "Connections refused because their address, or all together, had too many.",
			ConstLabels: labels,
		}),
		evicted: auto.NewCounter(prometheus.CounterOpts{
			Name: "causeway_network_connections_evicted_total", Help: "Idle connections closed to make room for new ones.", ConstLabels: labels,
		}),
	}
}

// NewPool returns a pool of so many places, which is called name in the metrics.
func NewPool(places int, name, route string, reg prometheus.Registerer) *Pool {
	labels := prometheus.Labels{"route": route, "pool": name}
	auto := promauto.With(reg)
	p := &Pool{places: make(chan struct{}, places), refused: auto.NewCounter(prometheus.CounterOpts{
		Name: "causeway_network_requests_refused_total", Help: "Requests refused because too many of their kind were being worked on.", ConstLabels: labels,
	})}
	auto.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "causeway_network_idle_ratio", Help: "Share of the places for requests that are free.", ConstLabels: labels,
	}, p.idle)
	return p
}
