package connector_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/causeway-mirror/causeway/route"
)

// TestSettingsThatCannotBeReadYet: a partition keeps for its life what it was started with, so a broker that does not know a new topic yet,
// or is away for a moment, must be asked again. One that refuses to tell is not waited for.
func TestSettingsThatCannotBeReadYet(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		resource kmsg.ConfigResourceType
		fault    *kerr.Error
		asked    int64 // at least
	}{
		"topic unknown yet":  {kmsg.ConfigResourceTypeTopic, kerr.UnknownTopicOrPartition, 2},
		"broker away":        {kmsg.ConfigResourceTypeBroker, kerr.BrokerNotAvailable, 2},
		"topic not allowed":  {kmsg.ConfigResourceTypeTopic, kerr.TopicAuthorizationFailed, 1},
		"broker not allowed": {kmsg.ConfigResourceTypeBroker, kerr.ClusterAuthorizationFailed, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kc, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
			require.NoError(t, err)
			t.Cleanup(kc.Close)
			var asked atomic.Int64
			kc.ControlKey(int16(kmsg.DescribeConfigs), func(r kmsg.Request) (kmsg.Response, error, bool) {
				kc.KeepControl()
				req, ok := r.(*kmsg.DescribeConfigsRequest)
				if !ok || req.Resources[0].ResourceType != tc.resource || asked.Add(1) > 1 {
					return nil, nil, false
				}
				resp := req.ResponseKind().(*kmsg.DescribeConfigsResponse)
				one := kmsg.NewDescribeConfigsResponseResource()
				one.ErrorCode, one.ResourceType, one.ResourceName = tc.fault.Code, tc.resource, req.Resources[0].ResourceName
				resp.Resources = append(resp.Resources, one)
				return resp, nil, true
			})
			cl, err := kgo.NewClient(kgo.SeedBrokers(kc.ListenAddrs()...), kgo.DefaultProduceTopic("orders"))
			require.NoError(t, err)
			t.Cleanup(cl.Close)
			require.NoError(t, cl.ProduceSync(t.Context(), kgo.StringRecord("one")).FirstErr())

			c, stop := start(t, kc.ListenAddrs(), kc.ListenAddrs(), t.TempDir(), nil)
			c.Add(route.Partition{Topic: "orders"})
			require.Eventually(t, func() bool {
				info := kc.PartitionInfo("orders-copy", 0)
				return info != nil && info.HighWatermark == 1
			}, 20*time.Second, 5*time.Millisecond)
			stop()
			require.GreaterOrEqual(t, asked.Load(), tc.asked)
		})
	}
}
