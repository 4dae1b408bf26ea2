package spill

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	reg        prometheus.Registerer
	collectors []prometheus.Collector

	putItems, takenItems, lost  prometheus.Counter
	putRollbacks, takeRollbacks prometheus.Counter
}

func newMetrics(routeName string, reg prometheus.Registerer, s *Store) *metrics {
	labels := prometheus.Labels{"route": routeName}
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels})
	}
	items := func(place string, figure func(Stats) int) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "causeway_spill_items", Help: "Items that wait, by place; those that are in memory and on disk count in both.",
			ConstLabels: prometheus.Labels{"route": routeName, "place": place},
		}, func() float64 {
			n := 0
			for _, q := range s.all() {
				n += figure(q.Stats())
			}
			return float64(n)
		})
	}
	rollbacks := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "causeway_spill_rollbacks_total", Help: "Transactions that were rolled back, by what they were.", ConstLabels: labels,
	}, []string{"transaction"})
	m := &metrics{
		reg:           reg,
		putItems:      counter("causeway_spill_put_items_total", "Items that were put, to memory or disk."),
		takenItems:    counter("causeway_spill_taken_items_total", "Items whose take was committed."),
		lost:          counter("causeway_spill_lost_items_total", "Items that were damaged on disk."),
		putRollbacks:  rollbacks.WithLabelValues("put"),
		takeRollbacks: rollbacks.WithLabelValues("take"),
	}
	m.collectors = []prometheus.Collector{
		m.putItems, m.takenItems, m.lost, rollbacks,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "causeway_spill_bytes", Help: "Bytes of the files that wait for their target, with those that were set aside.", ConstLabels: labels,
		}, func() float64 { return float64(s.Bytes()) }),
		items("memory", func(s Stats) int { return s.Memory }), items("disk", func(s Stats) int { return s.Overflow }),
	}
	if reg != nil {
		for _, c := range m.collectors {
			reg.MustRegister(c)
		}
	}
	return m
}

// unregister takes the figures away.
func (m *metrics) unregister() {
	if m.reg == nil {
		return
	}
	for _, c := range m.collectors {
		m.reg.Unregister(c)
	}
}
