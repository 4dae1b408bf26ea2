package faults_test

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// foreign is the key of a header that only the other producer's records have.
const foreign = "foreign"

// visit writes marked records to random partitions of a topic, all the time, until the function that it returns is called; that returns how
// many it wrote. It ends with the test as well.
func visit(t *testing.T, k *kafkatest.Cluster, topic string) (end func() int64) {
	t.Helper()
	cl := k.Client(t, kgo.DefaultProduceTopic(topic), kgo.ProducerLinger(time.Millisecond))
	ctx, stop := context.WithCancel(t.Context())
	var written atomic.Int64
	ended := make(chan struct{})
	go func() { // owned by the test: end and the cleanup wait for it
		defer close(ended)
		for n := 0; ctx.Err() == nil; n++ {
			r := &kgo.Record{Value: strconv.AppendInt(nil, int64(n), 10), Headers: []kgo.RecordHeader{{Key: foreign}}}
			cl.Produce(context.WithoutCancel(ctx), r, func(_ *kgo.Record, err error) {
				if err == nil {
					written.Add(1)
				}
			})
			if rand.IntN(10) == 0 {
				await(ctx, upTo(20*time.Millisecond))
			}
		}
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	return func() int64 {
		stop()
		<-ended
		require.NoError(t, cl.Flush(t.Context()))
		return written.Load()
	}
}

// TestAnotherProducerWritesToTheTarget: the target topic is not ours alone. Batches of another producer lie between ours everywhere, also
// where a kill leaves the question how far we got.
func TestAnotherProducerWritesToTheTarget(t *testing.T) {
	t.Parallel()
	k := kafkatest.Shared(t, kafkatest.Kafka3)
	const topic, to = "visited", "visited.copy"
	k.CreateTopic(t, topic, 4, nil)
	k.CreateTopic(t, to, 4, nil)
	m := newMirrorer(t, "mirror", between(k.Bootstrap(), k.Bootstrap(), topic, "--rename", "{topic}.copy")...)
	leave := visit(t, k, to)
	f := startFeed(t, k.Bootstrap(), topic, 3000)
	commits := []string{"100ms", "1h"}
	for round := range rounds(6, 60) {
		m.start(t, "--commit-interval", commits[round%len(commits)])
		m.api(t)
		pass(t, upTo(1500*time.Millisecond))
		m.kill(t)
	}
	written := f.end(t)
	m.start(t)
	m.caughtUp(t, topic)
	m.stop(t)
	foreigners := leave()
	require.Greater(t, foreigners, int64(1000))
	d, err := kafkatest.CompareTopics(t.Context(), kafkatest.Comparison{
		Source: k.Bootstrap(), Target: k.Bootstrap(), Topic: topic, ToTopic: to, Foreign: foreign,
	})
	require.NoError(t, err)
	t.Logf("%s, among %d foreign ones", d, foreigners)
	require.True(t, d.Equal(), d.String())
	require.GreaterOrEqual(t, d.Records, written)
	kafkatest.AwaitRecords(t, k.Bootstrap(), to, written+foreigners, time.Minute) // theirs are all there as well
}
