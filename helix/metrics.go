package helix

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// participantMetrics is what a participant counts.
type participantMetrics struct {
	transitions *prometheus.CounterVec // by from, to, result
	messages    *prometheus.CounterVec // by what was done with them
	commits     prometheus.Counter
	joins       prometheus.Counter
	suspended   prometheus.Gauge
}

func newParticipantMetrics(reg prometheus.Registerer) *participantMetrics {
	factory := promauto.With(reg)
	return &participantMetrics{
		transitions: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "causeway_helix_transitions_total", Help: "State transitions that ended, by their result: ok, error, forgotten.",
		}, []string{"from", "to", "result"}),
		messages: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "causeway_helix_messages_total", Help: "Helix messages read, by what was done with them: run, discarded, left.",
		}, []string{"verdict"}),
		commits: factory.NewCounter(prometheus.CounterOpts{
			Name: "causeway_helix_commits_total", Help: "Transactions by which reached states were reported to ZooKeeper.",
		}),
		joins: factory.NewCounter(prometheus.CounterOpts{
			Name: "causeway_helix_joins_total", Help: "How often the instance joined its cluster, each time with a new session.",
		}),
		suspended: factory.NewGauge(prometheus.GaugeOpts{
			Name: "causeway_helix_suspended", Help: "1 while partitions are suspended because ZooKeeper is silent.",
		}),
	}
}
