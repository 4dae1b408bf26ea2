package gateway

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

func testDirectory(names string, ports ...int32) *directory {
	cfg := DefaultConfig()
	cfg.Advertise, cfg.Names = "kafka.test", names
	return newDirectory(cfg, 9000, ports, hclog.NewNullLogger(), newMetrics("gateway", prometheus.NewRegistry()))
}

func TestABrokerKeepsItsPort(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := testDirectory("", 9001, 9002, 9003)
		port := func(id int32) int32 {
			host, port := d.translate(id, "10.0.0.1", 1000+id)
			require.Equal(t, "kafka.test", host)
			return port
		}
		require.Equal(t, int32(9002), port(1))
		require.Equal(t, int32(9003), port(1001), "its own is taken") // 1001 % 3 = 2
		require.Equal(t, int32(9001), port(4), "its own is taken, and the next one too")
		require.Equal(t, int32(9002), port(1))
		require.Equal(t, int32(9000), port(7), "there is none left: the cluster as a whole")
		time.Sleep(gone)
		port(1)
		port(4)
		time.Sleep(time.Second)
		require.Equal(t, int32(9003), port(7), "1001 has not been named for long")
		require.Equal(t, int32(9000), port(1001))
		require.Equal(t, []string{"10.0.0.1:1007"}, d.enter(&pipe{}, 2, nil))
	})
}

func TestABrokersName(t *testing.T) {
	t.Parallel()
	d := testDirectory("b{id}.Kafka.test")
	host, port := d.translate(12, "10.0.0.1", 9092)
	require.Equal(t, "b12.Kafka.test", host)
	require.Equal(t, int32(9000), port)
	for name, want := range map[string]int32{
		"b12.kafka.test": 12, "B0.kafka.TEST": 0, "kafka.test": -1, "": -1, "b.kafka.test": -1, "b-1.kafka.test": -1, "bx.kafka.test": -1,
		"b99999999999.kafka.test": -1, "b1.other.test": -1,
	} {
		id, ok := d.named(name)
		require.Equal(t, want >= 0, ok, name)
		if ok {
			require.Equal(t, want, id, name)
		}
	}
	p := &pipe{}
	require.Equal(t, []string{"boot:1"}, d.enter(p, 77, []string{"boot:1"}))
	d.leave(p, 77)
	require.NotContains(t, d.spots, int32(77), "what clients make up is forgotten")
}
