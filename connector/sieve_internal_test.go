package connector

import (
	"io"
	"strconv"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/causeway-mirror/causeway/cluster"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/wire"
)

// taciturn is a broker that names no producers.
func taciturn(t *testing.T) *kfake.Cluster {
	t.Helper()
	kc, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	require.NoError(t, err)
	t.Cleanup(kc.Close)
	return kc
}

// copiedOnto is a topic of one partition that is copied onto itself.
func copiedOnto(t *testing.T, kc *kfake.Cluster) (*Connector, *pair, *partition) {
	t.Helper()
	client, err := wire.NewClient(cluster.Config{Name: "dst", Bootstrap: kc.ListenAddrs()}, hclog.NewNullLogger())
	require.NoError(t, err)
	t.Cleanup(client.Close)
	kc.ControlKey(int16(kmsg.DescribeProducers), func(kmsg.Request) (kmsg.Response, error, bool) {
		kc.KeepControl()
		r := kmsg.NewPtrDescribeProducersResponse()
		one, p := kmsg.NewDescribeProducersResponseTopic(), kmsg.NewDescribeProducersResponseTopicPartition()
		one.Topic, one.Partitions = "t", append(one.Partitions, p)
		r.Topics = append(r.Topics, one)
		return r, nil, true
	})
	c := idle(t, io.Discard)
	c.source, c.target = client, client
	pair, part := one(t, c, func(at *offsets.Checkpoint) { at.SourceOffset, at.AckedAt = 10, time.Unix(1_700_000_000, 0) })
	m, err := client.Metadata(t.Context(), "t")
	require.NoError(t, err)
	pair.topic.Target, pair.target = "t", m.Topics["t"]
	return c, pair, part
}

func writerTo(t *testing.T, kc *kfake.Cluster) *kgo.Client {
	t.Helper()
	writer, err := kgo.NewClient(kgo.SeedBrokers(kc.ListenAddrs()...), kgo.DefaultProduceTopic("t"))
	require.NoError(t, err)
	t.Cleanup(writer.Close)
	return writer
}

func writeNumbers(t *testing.T, writer *kgo.Client, n int) {
	t.Helper()
	for i := range n {
		require.NoError(t, writer.ProduceSync(t.Context(), kgo.StringRecord(strconv.Itoa(i))).FirstErr())
	}
}

// A new filter begins behind what the old one has left on the target. Where that has lost what it acknowledged, the position there stays, or the loss
// would not be noticed.
func TestAnotherFilterHidesNoLossOfTheTarget(t *testing.T) {
	t.Parallel()
	kc := taciturn(t)
	c, pair, part := copiedOnto(t, kc)
	writer := writerTo(t, kc)
	writeNumbers(t, writer, 10)
	at := positionOf(t, c, part)
	for _, row := range []struct{ stored, want route.Offset }{{8, 10}, {12, 12}} {
		at.TargetOffset = row.stored
		next, tell, err := c.sieved(t.Context(), pair, at, at)
		require.NoError(t, err)
		require.NotNil(t, tell)
		require.Equal(t, row.want, next.TargetOffset)
		require.Equal(t, route.Offset(10), next.SourceOffset)
	}
}

// What a target has lost is looked for in the whole source where it is not in its place. That is not done again for what others write to the target.
func TestLossThatCannotBeToldIsNotLookedForAgain(t *testing.T) {
	t.Parallel()
	kc := taciturn(t)
	c, pair, part := copiedOnto(t, kc)
	writer := writerTo(t, kc)
	writeNumbers(t, writer, 10)
	at := positionOf(t, c, part)
	var err error
	at.ProducerID, at.ProducerEpoch, err = writer.ProducerID(t.Context())
	require.NoError(t, err)
	at.SourceOffset, at.Sequence, at.TargetOffset = 5, 12, 12 // the last record that the target has is not that at 2
	var first, again *haltError
	_, _, err = c.resent(t.Context(), pair, at, at, "lost")
	require.ErrorAs(t, err, &first)
	writeNumbers(t, writerTo(t, kc), 3)
	_, _, err = c.resent(t.Context(), pair, at, at, "lost")
	require.ErrorAs(t, err, &again)
	require.Same(t, first, again)
}
