package api

import (
	"runtime"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/causeway-mirror/causeway/network"
)

type metrics struct {
	requests *prometheus.CounterVec
	listener *network.Metrics
}

func newMetrics(reg prometheus.Registerer, id Identity) *metrics {
	labels := prometheus.Labels{"route": id.Route.String()}
	auto := promauto.With(reg)
	auto.NewGaugeVec(prometheus.GaugeOpts{
		Name: "causeway_build_info", Help: "Always 1; the labels say which build this is.", ConstLabels: labels,
	}, []string{"version", "revision", "goversion"}).WithLabelValues(id.Version, id.Revision, runtime.Version()).Set(1)
	return &metrics{
		requests: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "causeway_http_requests_total", Help: "Answered HTTP requests by pattern and status.", ConstLabels: labels,
		}, []string{"pattern", "code"}),
		listener: network.NewMetrics("api", id.Route.String(), reg),
	}
}

// watchCertificate tells how long the server's own certificate still holds.
func watchCertificate(reg prometheus.Registerer, id Identity, c *certificate) {
	promauto.With(reg).NewGaugeFunc(prometheus.GaugeOpts{
		Name: "causeway_server_certificate_expiry_seconds", Help: "Seconds until the certificate of the API ends; negative once it has.",
		ConstLabels: prometheus.Labels{"route": id.Route.String()},
	}, c.secondsLeft)
}

// count notes one answer. The label is the pattern and never the path: paths are the clients' and unbounded.
func (m *metrics) count(pattern string, code int) {
	m.requests.WithLabelValues(pattern, strconv.Itoa(code)).Inc()
}
