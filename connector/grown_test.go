package connector_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/causeway-mirror/causeway/connector"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// `start: latest` leaves out what a topic held when it was found; a partition that it gets later has nothing that may be left out.
func TestPartitionAddedLaterIsCopiedWhole(t *testing.T) {
	t.Parallel()
	k := kafkatest.Shared(t, kafkatest.Kafka3)
	const topic = "growing"
	k.CreateTopic(t, topic, 1, nil)
	kafkatest.Load(t, k.Bootstrap(), kafkatest.LoadOptions{Topic: topic, Records: 100})
	c, stop := start(t, k.Bootstrap(), k.Bootstrap(), t.TempDir(), func(cfg *connector.Config) { cfg.Start = connector.StartLatest })
	first := route.Partition{Topic: topic}
	c.Add(first)
	awaitCopied(t, c, first)

	admin := kadm.NewClient(k.Client(t))
	_, err := admin.CreatePartitions(t.Context(), 1, topic)
	require.NoError(t, err)
	kafkatest.Load(t, k.Bootstrap(), kafkatest.LoadOptions{Topic: topic, Records: 1000, First: 100})
	added := route.Partition{Topic: topic, Partition: 1}
	c.Add(added)
	awaitCopied(t, c, first, added)
	stop()

	ends, err := admin.ListEndOffsets(t.Context(), topic, topic+"-copy")
	require.NoError(t, err)
	source, _ := ends.Lookup(topic, 1)
	target, _ := ends.Lookup(topic+"-copy", 1)
	require.Positive(t, source.Offset)
	require.Equal(t, source.Offset, target.Offset)
	whole, _ := ends.Lookup(topic, 0)
	behind, _ := ends.Lookup(topic+"-copy", 0)
	require.Equal(t, whole.Offset-100, behind.Offset)
}

func awaitCopied(t *testing.T, c *connector.Connector, parts ...route.Partition) {
	t.Helper()
	require.Eventually(t, func() bool {
		copied := 0
		for _, p := range c.Status().Partitions {
			if p.LagRecords == 0 && slices.Contains(parts, p.Source) {
				copied++
			}
		}
		return copied == len(parts)
	}, 60*time.Second, 20*time.Millisecond)
}
