package gateway

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/twmb/franz-go/pkg/kmsg"
)

type metrics struct {
	requests  *prometheus.CounterVec // by request
	refused   prometheus.Counter
	in, out   prometheus.Counter // bytes
	unreached prometheus.Counter
	brokers   prometheus.Gauge
}

func newMetrics(route string, reg prometheus.Registerer) *metrics {
	labels := prometheus.Labels{"route": route}
	auto := promauto.With(reg)
	bytes := auto.NewCounterVec(prometheus.CounterOpts{
		Name: "causeway_gateway_bytes_total", Help: "Bytes that were passed on: in to the brokers, out to the clients.", ConstLabels: labels,
	}, []string{"direction"})
	return &metrics{
		requests: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "causeway_gateway_requests_total", Help: "Requests that were passed on, by kind.", ConstLabels: labels,
		}, []string{"request"}),
		refused: auto.NewCounter(prometheus.CounterOpts{
			Name: "causeway_gateway_requests_refused_total", Help: "Connections ended because of a request that may not pass, or of what is none.",
			ConstLabels: labels,
		}),
		in: bytes.WithLabelValues("in"), out: bytes.WithLabelValues("out"),
		unreached: auto.NewCounter(prometheus.CounterOpts{
			Name: "causeway_gateway_dial_errors_total", Help: "Connections to brokers that could not be opened.", ConstLabels: labels,
		}),
		brokers: auto.NewGauge(prometheus.GaugeOpts{
			Name: "causeway_gateway_brokers", Help: "Brokers that are known.", ConstLabels: labels,
		}),
	}
}

// passed counts a request. Only keys that may pass come here, so the names are few.
func (m *metrics) passed(key int16) { m.requests.WithLabelValues(kmsg.NameForKey(key)).Inc() }
