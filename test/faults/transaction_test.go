package faults_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// TestTransactionOpenOverAKillIsCopiedOnceItIsCommitted: what lies behind an open transaction waits, over the death of the mirror as well.
func TestTransactionOpenOverAKillIsCopiedOnceItIsCommitted(t *testing.T) {
	t.Parallel()
	k := kafkatest.Shared(t, kafkatest.Kafka3)
	const topic, to = "open", "open.copy"
	k.CreateTopic(t, topic, 1, nil)
	m := newMirrorer(t, "mirror", between(k.Bootstrap(), k.Bootstrap(), topic, "--rename", "{topic}.copy")...)
	m.start(t)
	m.flowing(t, k, topic)
	cl := k.Client(t, kgo.TransactionalID("slow"), kgo.TransactionTimeout(5*time.Minute))
	require.NoError(t, cl.BeginTransaction())
	require.NoError(t, cl.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: []byte("000000000001 first")}).FirstErr())
	kafkatest.Load(t, k.Bootstrap(), kafkatest.LoadOptions{Topic: topic, Records: 500, First: 100})
	m.caughtUp(t, topic) // as far as a reader could see
	m.kill(t)
	m.start(t)
	m.caughtUp(t, topic)
	require.NoError(t, cl.EndTransaction(t.Context(), kgo.TryCommit))
	admin := kadm.NewClient(k.Client(t))
	require.Eventually(t, func() bool { // the marker is written after the answer
		stable, err := admin.ListCommittedOffsets(t.Context(), topic)
		end, errEnd := admin.ListEndOffsets(t.Context(), topic)
		s, _ := stable.Lookup(topic, 0)
		e, _ := end.Lookup(topic, 0)
		return err == nil && errEnd == nil && s.Offset == e.Offset && e.Offset > 701
	}, time.Minute, 50*time.Millisecond)
	m.caughtUp(t, topic)
	m.stop(t)
	requireCopy(t, k.Bootstrap(), k.Bootstrap(), topic, to, 701)
}
