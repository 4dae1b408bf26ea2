package connector_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/causeway-mirror/causeway/route"
)

// twoOrders is a cluster with topic orders of two partitions, and a client that chooses them.
func twoOrders(t *testing.T) (*kfake.Cluster, *kgo.Client) {
	t.Helper()
	kc, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, "orders"))
	require.NoError(t, err)
	t.Cleanup(kc.Close)
	cl, err := kgo.NewClient(kgo.SeedBrokers(kc.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	require.NoError(t, err)
	t.Cleanup(cl.Close)
	return kc, cl
}

// One partition was never begun, and its leader is away: the others of the topic have their checkpoints and need nothing of it.
func TestPartitionThatCannotBeginHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	kc, cl := twoOrders(t)
	old, fresh := route.Partition{Topic: "orders"}, route.Partition{Topic: "orders", Partition: 1}
	state := t.TempDir()
	produce(t, cl, &kgo.Record{Topic: "orders", Partition: 0, Value: []byte("a")})
	c, stop := start(t, kc.ListenAddrs(), kc.ListenAddrs(), state, nil)
	c.Add(old)
	awaitCopied(t, c, old)
	stop()

	kc.ControlKey(int16(kmsg.ListOffsets), func(req kmsg.Request) (kmsg.Response, error, bool) {
		kc.KeepControl()
		r := req.(*kmsg.ListOffsetsRequest)
		for _, rt := range r.Topics {
			for _, rp := range rt.Partitions {
				if rt.Topic == "orders" && rp.Partition == 1 && len(r.Topics) == 1 && len(rt.Partitions) == 1 {
					resp := r.ResponseKind().(*kmsg.ListOffsetsResponse)
					at, ap := kmsg.NewListOffsetsResponseTopic(), kmsg.NewListOffsetsResponseTopicPartition()
					at.Topic, ap.Partition, ap.ErrorCode = "orders", 1, kerr.LeaderNotAvailable.Code
					at.Partitions = append(at.Partitions, ap)
					resp.Topics = append(resp.Topics, at)
					return resp, nil, true
				}
			}
		}
		return nil, nil, false
	})
	produce(t, cl, &kgo.Record{Topic: "orders", Partition: 0, Value: []byte("b")})
	c, stop = start(t, kc.ListenAddrs(), kc.ListenAddrs(), state, nil)
	c.Add(old, fresh)
	awaitCopied(t, c, old)
	stop()
}

// A controller was told of more partitions than the source has, and those which it has stood still with the others, each naming another's fault.
func TestPartitionThatTheSourceDoesNotHaveHaltsNoOther(t *testing.T) {
	t.Parallel()
	kc, cl := twoOrders(t)
	produce(t, cl, &kgo.Record{Topic: "orders", Partition: 0, Value: []byte("a")}, &kgo.Record{Topic: "orders", Partition: 1, Value: []byte("b")})
	c, stop := start(t, kc.ListenAddrs(), kc.ListenAddrs(), t.TempDir(), nil)
	c.Add(parts("orders", 4)...)
	awaitCopied(t, c, route.Partition{Topic: "orders"})
	awaitCopied(t, c, route.Partition{Topic: "orders", Partition: 1})
	s := c.Status().Partitions
	require.Len(t, s, 4)
	for _, p := range s[2:] {
		require.Equal(t, "halted", p.State)
		require.Equal(t, "source: "+p.Source.String()+": the topic has 2 partitions", p.Reason)
	}
	stop()
}
