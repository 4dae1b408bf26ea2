package connector

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/causeway-mirror/causeway/internal/slab"
)

func newMetrics(reg prometheus.Registerer, route string, budget *slab.Budget) {
	promauto.With(reg).NewGaugeFunc(prometheus.GaugeOpts{
		Name: "causeway_buffer_bytes", Help: "Bytes reserved for batches in memory.", ConstLabels: prometheus.Labels{"route": route},
	}, func() float64 { return float64(budget.Used()) })
}
