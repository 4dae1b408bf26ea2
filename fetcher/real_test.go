package fetcher

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

func TestRealBrokers(t *testing.T) {
	t.Parallel()
	for _, version := range []string{kafkatest.Kafka3, kafkatest.Kafka4} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			c := kafkatest.Start(t, kafkatest.Options{Version: version, Proxy: true, Config: map[string]string{
				"log.cleaner.backoff.ms": "100", "log.cleaner.min.cleanable.ratio": "0.01",
			}})
			cfg := fast()
			cfg.GoneAfter = 30 * time.Second
			r := newRigAt(t, c.ProxyBootstrap(), cfg, 64<<20)
			realTransactions(t, c, r)
			realCompaction(t, c, r)
			realFaults(t, c, r)
		})
	}
}

func realTransactions(t *testing.T, c *kafkatest.Cluster, r *rig) {
	t.Helper()
	c.CreateTopic(t, "transactions", 1, nil)
	want := writeTransactions(t, c.Bootstrap(), "transactions", true)
	l := r.add("transactions", 0, newLane(0))
	l.requireValues(t, want)
	eventually(t, func() bool { ok := false; l.with(func() { ok = l.position == l.extent.End }); return ok }, "the last marker is passed")
}

// realCompaction leaves batches with gaps between and inside, and empty ones.
func realCompaction(t *testing.T, c *kafkatest.Cluster, r *rig) {
	t.Helper()
	c.CreateTopic(t, "compacted", 1, map[string]string{
		"cleanup.policy": "compact", "segment.ms": "500", "segment.bytes": "1048576", "min.cleanable.dirty.ratio": "0.01",
	})
	cl := newKgo(t, c.Bootstrap())
	write := func(key string, n int) {
		for i := range n {
			rec := &kgo.Record{Topic: "compacted", Key: []byte(key + strconv.Itoa(i%7)), Value: []byte(value(i))}
			require.NoError(t, cl.ProduceSync(t.Context(), rec).FirstErr())
		}
	}
	write("k", 70)
	compacted := func() bool {
		write("more", 1) // a segment is rolled by a write
		l := newLane(0)
		r.f.Add(route.Partition{Topic: "compacted"}, route.TopicID{}, l)
		defer r.f.Remove(route.Partition{Topic: "compacted"})
		eventually(t, func() bool {
			ok := false
			l.with(func() { ok = l.extent.End > 0 && l.position >= l.extent.End })
			return ok
		}, "read to the end")
		require.Empty(t, l.wrong)
		return l.count() < 70
	}
	require.Eventually(t, compacted, 60*time.Second, 300*time.Millisecond, "the log cleaner leaves gaps")
}

// realFaults cuts, silences, kills and restarts the broker while records are written.
func realFaults(t *testing.T, c *kafkatest.Cluster, r *rig) {
	t.Helper()
	c.CreateTopic(t, "faults", 2, nil)
	broker := c.Brokers()[0]
	a, b := r.add("faults", 0, newLane(0)), r.add("faults", 1, newLane(0))
	r.addrs = c.Bootstrap()
	r.cl = nil
	n := 0
	more := func() {
		r.produce("faults", 0, n, 20)
		r.produce("faults", 1, n, 20)
		n += 20
	}
	more()
	a.requireValues(t, values(0, n))
	broker.Proxy().Cut()
	more()
	a.requireValues(t, values(0, n))
	broker.Proxy().Blackhole()
	more()
	eventually(t, func() bool { return r.f.Reachable() != nil }, "silence is told")
	require.NoError(t, broker.Proxy().Heal())
	a.requireValues(t, values(0, n))
	eventually(t, func() bool { return r.f.Reachable() == nil }, "recovery is told")
	require.NoError(t, broker.Kill())
	eventually(t, func() bool { return r.f.Reachable() != nil }, "death is told")
	require.NoError(t, broker.Start(t.Context()))
	more()
	a.requireValues(t, values(0, n))
	b.requireValues(t, values(0, n))
	require.Nil(t, a.fault())
}
