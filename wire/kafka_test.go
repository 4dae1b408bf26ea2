package wire

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/causeway-mirror/causeway/cluster"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// Real brokers of both kinds take our frames, in the clear and over TLS with a session that is renewed, and answer our questions.
func TestRealBrokers(t *testing.T) {
	t.Parallel()
	for _, version := range []string{kafkatest.Kafka3, kafkatest.Kafka4} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			kc := kafkatest.Start(t, kafkatest.Options{Version: version, Secure: true, Heap: "384m", Config: map[string]string{"connections.max.reauth.ms": "10000"}})
			secure := kc.Secure()
			for name, cl := range map[string]cluster.Config{
				"plain": {Bootstrap: kc.Bootstrap()},
				"secure": {Bootstrap: secure.Bootstrap, TLS: cluster.TLS{CAFile: secure.CAFile, CertFile: secure.CertFile, KeyFile: secure.KeyFile}, SASL: cluster.SASL{
					Mechanism: "SCRAM-SHA-512", Username: secure.User, Password: cluster.Secret(secure.Password),
				}},
			} {
				kc.CreateTopic(t, name, 2, map[string]string{"retention.ms": "-1"}) // our records are from 1970
				exercise(t, newClient(t, cl, DefaultConfig()), name, name == "secure")
			}
			_, err := newClient(t, cluster.Config{Bootstrap: secure.Bootstrap, TLS: cluster.TLS{CAFile: secure.CAFile, CertFile: secure.CertFile, KeyFile: secure.KeyFile}, SASL: cluster.SASL{
				Mechanism: "SCRAM-SHA-512", Username: secure.User, Password: "wr0ng",
			}}, DefaultConfig()).Metadata(t.Context())
			var auth *AuthError
			require.ErrorAs(t, err, &auth)
			require.ErrorIs(t, err, kerr.SaslAuthenticationFailed)
			require.NotContains(t, err.Error(), "wr0ng")
		})
	}
}

// exercise pipelines idempotent batches, until the session was renewed if there is one, fetches them within a session, and asks everything that a mirror asks.
func exercise(t *testing.T, c *Client, topic string, renewed bool) {
	t.Helper()
	m, err := c.Metadata(t.Context(), topic)
	require.NoError(t, err)
	require.NoError(t, m.Topics[topic].Err)
	require.False(t, m.Topics[topic].ID.IsZero())
	p := route.Partition{Topic: topic, Partition: 1}
	leader := m.Topics[topic].Partitions[1].Leader
	id, epoch, err := c.InitProducerID(t.Context())
	require.NoError(t, err)
	conn := dialBroker(t, c, leader)
	sequence, enough := int32(0), time.Second
	conn.sem <- struct{}{}
	due := conn.login.due
	conn.unlock()
	if renewed {
		enough = time.Until(due) + time.Second
	}
	var told outcomes
	for stop := time.Now().Add(enough); time.Now().Before(stop); {
		batch := idempotent(someBatch(3, 1000), id, epoch, sequence)
		n := int(sequence)
		require.NoError(t, conn.Produce(&Produce{Acks: -1, Timeout: 10 * time.Second, Batches: []ProduceBatch{{Topic: topic, Partition: 1, Records: batch}}},
			func(r *kmsg.ProduceResponse, err error) {
				if err == nil {
					err = kerr.ErrorForCode(r.Topics[0].Partitions[0].ErrorCode)
				}
				if err == nil && r.Topics[0].Partitions[0].BaseOffset != int64(n) {
					err = kerr.OutOfOrderSequenceNumber
				}
				told.of(n)(r, err)
			}))
		sequence += 3
		for requests, _ := conn.Unanswered(); requests > 10; requests, _ = conn.Unanswered() {
			<-time.After(time.Millisecond)
		}
	}
	require.Eventually(t, func() bool { return told.count() == int(sequence)/3 }, 10*time.Second, time.Millisecond)
	for _, err := range told.errs {
		require.NoError(t, err)
	}

	conn.sem <- struct{}{}
	require.Equal(t, renewed, conn.login.due.After(due))
	conn.unlock()

	leaders := map[route.Partition]int32{p: leader}
	ends, err := c.ListOffsets(t.Context(), leaders, AtEnd, true)
	require.NoError(t, err)
	require.NoError(t, ends[p].Err)
	require.Equal(t, route.Offset(sequence), ends[p].Offset)
	described, err := c.DescribeProducers(t.Context(), leader, []route.Partition{p})
	require.NoError(t, err)
	require.NoError(t, described[p].Err)
	require.Len(t, described[p].Active, 1)
	require.Equal(t, ActiveProducer{ID: id, Epoch: epoch, LastSequence: sequence - 1, LastTimestamp: described[p].Active[0].LastTimestamp}, described[p].Active[0])
	epochs, err := c.OffsetsForLeaderEpoch(t.Context(), leader, []EpochAsk{{Partition: p, CurrentLeaderEpoch: -1, LeaderEpoch: m.Topics[topic].Partitions[1].LeaderEpoch}})
	require.NoError(t, err)
	require.Equal(t, EpochEnd{LeaderEpoch: m.Topics[topic].Partitions[1].LeaderEpoch, End: route.Offset(sequence)}, epochs[p])
	for _, id := range []route.TopicID{m.Topics[topic].ID, {}} {
		readThrough(t, conn, fetchRequest(topic, id, 1), int64(sequence))
	}
	require.NoError(t, conn.Err())
}

// readThrough fetches a partition to its end within one session.
func readThrough(t *testing.T, conn *Conn, req *kmsg.FetchRequest, end int64) {
	t.Helper()
	pool := newPool(64 << 20)
	req.SessionEpoch = 0 // opens a session
	version := conn.fetchVersion(req)
	req.Topics[0].Partitions[0].PartitionMaxBytes = 50_000
	for next := int64(0); next < end; req.SessionEpoch++ {
		require.NoError(t, pool.Budget().Reserve(t.Context(), 100_000))
		resp, s, err := conn.Fetch(t.Context(), req, pool, 100_000)
		require.NoError(t, err)
		require.NoError(t, kerr.ErrorForCode(resp.ErrorCode))
		require.Equal(t, version, resp.Version)
		require.NotZero(t, resp.SessionID)
		req.SessionID = resp.SessionID
		require.Equal(t, req.Topics[0].Topic, resp.Topics[0].Topic)
		require.NoError(t, kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode), "offset %d", next)
		for b := resp.Topics[0].Partitions[0].RecordBatches; len(b) > 0; {
			var batch kmsg.RecordBatch
			if batch.ReadFrom(b) != nil {
				break // cut short
			}
			require.Equal(t, next, batch.FirstOffset)
			next += int64(batch.NumRecords)
			b = b[min(len(b), int(batch.Length)+12):]
		}
		req.Topics[0].Partitions[0].FetchOffset = next
		s.Release()
	}
	req.Topics = nil // changes nothing in the session
	resp, s, err := conn.Fetch(t.Context(), req, pool, 0)
	require.NoError(t, err)
	require.NoError(t, kerr.ErrorForCode(resp.ErrorCode))
	s.Release()
	require.Zero(t, pool.Budget().Used())
}
