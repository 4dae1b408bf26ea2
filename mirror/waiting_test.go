package mirror

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
)

// Partitions that halt at their start have no lane, and were left out of the gauge.
func TestPartitionsWithoutALaneAreCounted(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	newMetrics(reg, "r", func() []*Lane { return nil }, func() map[State]int { return map[State]int{Halted: 2} })
	require.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP causeway_partitions Partitions by state.
# TYPE causeway_partitions gauge
causeway_partitions{route="r",state="degraded"} 0
causeway_partitions{route="r",state="draining"} 0
causeway_partitions{route="r",state="halted"} 2
causeway_partitions{route="r",state="mirroring"} 0
causeway_partitions{route="r",state="paused"} 0
causeway_partitions{route="r",state="starting"} 0
causeway_partitions{route="r",state="stopped"} 0
causeway_partitions{route="r",state="suspended"} 0
`), "causeway_partitions"))
}
