package kafkatest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/causeway-mirror/causeway/internal/testkit"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// produce writes records first to first+n-1 and waits for the acknowledgements.
func produce(t *testing.T, cl *kgo.Client, topic string, first, n int) {
	t.Helper()
	for i := first; i < first+n; i++ {
		cl.Produce(t.Context(), &kgo.Record{Topic: topic, Value: fmt.Appendf(nil, "record %d", i)}, nil)
	}
	require.NoError(t, cl.Flush(t.Context()))
}

// consume reads n records of a topic from its beginning and requires that they are record 0, 1, 2 and so on.
func consume(t *testing.T, c *kafkatest.Cluster, topic string, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cl := c.Client(t, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	defer cl.Close()
	got := 0
	for got < n {
		fetches := cl.PollFetches(ctx)
		require.NoError(t, ctx.Err(), "after %d records", got)
		fetches.EachRecord(func(r *kgo.Record) {
			require.Equal(t, fmt.Sprintf("record %d", got), string(r.Value))
			got++
		})
	}
	require.Equal(t, n, got)
}

func TestKillAndRestartKeepsData(t *testing.T) {
	t.Parallel()
	for _, opts := range []kafkatest.Options{
		{Version: kafkatest.Kafka3},
		{Version: kafkatest.Kafka4},
	} {
		t.Run(opts.Version, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			c := kafkatest.Start(t, opts)
			t.Logf("started in %v", time.Since(began))
			c.CreateTopic(t, "t", 1, nil)
			cl := c.Client(t)
			produce(t, cl, "t", 0, 100)
			require.NoError(t, c.Broker(0).Kill())
			require.False(t, c.Broker(0).Running())
			began = time.Now()
			require.NoError(t, c.Broker(0).Start(t.Context()))
			t.Logf("restarted in %v", time.Since(began))
			produce(t, cl, "t", 100, 100)
			require.NoError(t, c.Broker(0).Stop())
			require.NoError(t, c.Broker(0).Start(t.Context()))
			consume(t, c, "t", 200)
		})
	}
}

func TestPausedBrokerGoesOnWhereItStood(t *testing.T) {
	t.Parallel()
	c := kafkatest.Start(t, kafkatest.Options{Version: kafkatest.Kafka3})
	c.CreateTopic(t, "t", 1, nil)
	cl := c.Client(t)
	produce(t, cl, "t", 0, 10)
	require.NoError(t, c.Broker(0).Pause())
	require.True(t, c.Broker(0).Running())
	acked := make(chan error, 1)
	cl.Produce(t.Context(), &kgo.Record{Topic: "t", Value: []byte("record 10")}, func(_ *kgo.Record, err error) { acked <- err })
	select {
	case err := <-acked:
		t.Fatalf("a paused broker answered: %v", err)
	case <-time.After(time.Second):
	}
	require.NoError(t, c.Broker(0).Resume())
	require.NoError(t, <-acked)
	consume(t, c, "t", 11)
}

func TestThreeBrokersOutliveOne(t *testing.T) {
	t.Parallel()
	versions := []string{kafkatest.Kafka4}
	if testkit.Long() { // test/faults has three of these lose one each time
		versions = append(versions, kafkatest.Kafka3)
	}
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			c := kafkatest.Start(t, kafkatest.Options{Version: version, Brokers: 3})
			t.Logf("started in %v", time.Since(began))
			require.Len(t, c.Bootstrap(), 3)
			c.CreateTopic(t, "t", 1, map[string]string{"min.insync.replicas": "2"})
			cl := c.Client(t)
			produce(t, cl, "t", 0, 10)
			deaths := 1
			if testkit.Long() {
				deaths = 3
			}
			for i := range deaths {
				require.NoError(t, c.Broker(i).Kill())
				produce(t, cl, "t", 10*(i+1), 10)
				require.NoError(t, c.Broker(i).Start(t.Context()))
				c.AwaitInSync(t, "t")
			}
			consume(t, c, "t", 10*(deaths+1))
		})
	}
}
