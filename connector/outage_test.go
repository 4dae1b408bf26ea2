package connector_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// A target that was gone was shown ten seconds later, with the route "mirroring" and its partitions degraded.
func TestOutageOfEitherClusterShowsSoon(t *testing.T) {
	t.Parallel()
	for _, side := range []string{"source", "target"} {
		t.Run(side, func(t *testing.T) {
			t.Parallel()
			clusters := map[string]*kfake.Cluster{}
			for _, name := range []string{"source", "target"} {
				kc, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.ClusterID(name), kfake.SeedTopics(1, "orders"))
				require.NoError(t, err)
				t.Cleanup(kc.Close)
				clusters[name] = kc
			}
			cl, err := kgo.NewClient(kgo.SeedBrokers(clusters["source"].ListenAddrs()...), kgo.DefaultProduceTopic("orders"))
			require.NoError(t, err)
			t.Cleanup(cl.Close)
			produce(t, cl, kgo.StringRecord("x"))
			c, _ := start(t, clusters["source"].ListenAddrs(), clusters["target"].ListenAddrs(), t.TempDir(), nil)
			c.Add(parts("orders", 1)...)
			awaitCopied(t, c, parts("orders", 1)...)
			require.Equal(t, "mirroring", c.Status().State)
			clusters[side].Close()
			if side == "target" { // it is missed when there is something to send
				produce(t, cl, kgo.StringRecord("y"))
			}
			require.Eventually(t, func() bool { return c.Status().State == "degraded" }, 8*time.Second, 20*time.Millisecond)
			require.True(t, strings.HasPrefix(c.Status().Reason, side+": "), c.Status().Reason)
		})
	}
}
