package faults_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// reset sets the position of a topic's only partition.
func (m *mirrorer) reset(t *testing.T, topic, to string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, m.api(t)+"/api/v1/topics/"+topic+"/partitions/0/reset", strings.NewReader(`{"to":"`+to+`"}`))
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusAccepted, resp.StatusCode)
}

// putBack has the dead letters of a topic put back, and gives the answer.
func (m *mirrorer) putBack(t *testing.T, topic string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, m.api(t)+"/api/v1/dead-letters/"+topic+"/retry", nil)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, errors.Join(err, resp.Body.Close()))
	require.Equal(t, http.StatusOK, resp.StatusCode, string(body))
	return string(body)
}

// TestC6C14SourceThatChangedHaltsByPolicy: by policy nothing is gone on from before an operator has said where, also where the offsets would fit.
func TestC6C14SourceThatChangedHaltsByPolicy(t *testing.T) {
	t.Parallel()
	k := kafkatest.Shared(t, kafkatest.Kafka4)
	const purged, reborn = "halting.purged", "halting.reborn"
	m := newMirrorer(t, "mirror", between(k.Bootstrap(), k.Bootstrap(), purged+","+reborn, "--rename", "{topic}.copy")...)
	m.args = append(m.args, "--config", m.file(t, "route: {on: {truncated: halt, recreated: halt}}\n"))
	for _, topic := range []string{purged, reborn} {
		k.CreateTopic(t, topic, 1, nil)
		load(t, k, topic, 0, 100)
	}
	m.start(t)
	m.caughtUp(t, purged)
	m.caughtUp(t, reborn)
	m.stop(t)
	load(t, k, purged, 100, 900)
	var before kadm.Offsets
	before.AddOffset(purged, 0, 600, -1)
	_, err := kadm.NewClient(k.Client(t)).DeleteRecords(t.Context(), before)
	require.NoError(t, err)
	k.Remake(t, reborn, 1)
	load(t, k, reborn, 1000, 300)

	m.start(t)
	e := m.awaitEvent(t, "source_truncated", purged, 30*time.Second)
	require.Equal(t, [2]int64{100, 599}, [2]int64{*e.FirstOffset, *e.LastOffset})
	m.awaitEvent(t, "topic_recreated", reborn, 30*time.Second)
	for topic, why := range map[string]string{purged: "deleted the offsets 100 to 599", reborn: "was recreated"} {
		require.Eventually(t, func() bool {
			p := m.places(t, topic)
			return len(p) == 1 && p[0].State == "halted" && strings.Contains(p[0].Reason, why)
		}, 30*time.Second, 50*time.Millisecond, topic)
		require.EqualValues(t, 100, recordsOf(t, k, topic+".copy"))
		m.reset(t, topic, "earliest")
		m.caughtUp(t, topic)
	}
	m.stop(t)
	require.Equal(t, ranges([2]int{0, 100}, [2]int{600, 1000}), numbers(t, k, purged+".copy", 500))
	require.Equal(t, ranges([2]int{0, 100}, [2]int{1000, 1300}), numbers(t, k, reborn+".copy", 400))
}

// values are those of the n records of a topic of one partition.
func values(t *testing.T, k *kafkatest.Cluster, topic string, n int) (all [][]byte) {
	t.Helper()
	for _, r := range records(t, k, topic, n) {
		all = append(all, r.Value)
	}
	return all
}

// records are the n of a topic of one partition. That there are more is a failure.
func records(t *testing.T, k *kafkatest.Cluster, topic string, n int) (all []*kgo.Record) {
	t.Helper()
	require.EqualValues(t, n, recordsOf(t, k, topic), topic)
	cl := k.Client(t, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	for len(all) < n {
		fetched := cl.PollFetches(t.Context())
		require.NoError(t, fetched.Err())
		fetched.EachRecord(func(r *kgo.Record) { all = append(all, r) })
	}
	return all
}

// TestC7RefusedRecordsByPolicy: exactly the record that the target refuses is left out and told, also out of the middle of a batch, and stands on
// the dead-letter topic if it shall; or the target's limit is raised for it.
func TestC7RefusedRecordsByPolicy(t *testing.T) {
	t.Parallel()
	k := kafkatest.Shared(t, kafkatest.Kafka4)
	const bulky, keyless, raised = "refused.bulky", "refused.keyless", "raised.bulky"
	noise := make([]byte, 1_500_000)
	_, err := rand.Read(noise)
	require.NoError(t, err)
	small := bytes.SplitAfter([]byte("0123456789"), nil)
	for topic, config := range map[string]map[string]string{
		bulky: {"max.message.bytes": "100000"}, raised: {"max.message.bytes": "100000"}, keyless: {"cleanup.policy": "compact"},
	} {
		k.CreateTopic(t, topic, 1, map[string]string{"max.message.bytes": "5242880"})
		k.CreateTopic(t, topic+".copy", 1, config)
		cl := k.Client(t, kgo.DefaultProduceTopic(topic), kgo.ProducerBatchMaxBytes(5<<20), kgo.ProducerLinger(100*time.Millisecond), kgo.ProducerBatchCompression(kgo.NoCompression()))
		var batch []*kgo.Record
		for i := range 10 {
			batch = append(batch, &kgo.Record{Key: small[i], Value: small[i]})
		}
		if topic == keyless {
			batch[6].Key = nil
		} else {
			batch[6].Value = noise
		}
		require.NoError(t, cl.ProduceSync(t.Context(), batch...).FirstErr())
	}
	rest := append(append([][]byte{}, small[:6]...), small[7:10]...)
	m := newMirrorer(t, "mirror", between(k.Bootstrap(), k.Bootstrap(), bulky+","+keyless, "--rename", "{topic}.copy")...)
	m.args = append(m.args, "--config", m.file(t, "route: {on: {oversized: dead-letter, refused: skip}}\n"))
	m.start(t)
	for topic, why := range map[string]string{bulky: "oversized: MESSAGE_TOO_LARGE", keyless: "refused: INVALID_RECORD"} {
		m.caughtUp(t, topic)
		e := m.awaitEvent(t, "range_skipped", topic, 10*time.Second)
		require.Equal(t, [2]int64{6, 6}, [2]int64{*e.FirstOffset, *e.LastOffset})
		require.Contains(t, e.Reason, why)
		require.Contains(t, m.places(t, topic)[0].Reason, "the record at offset 6 was left out")
	}
	m.kill(t)
	letters := records(t, k, bulky+".dead-letter", 1)
	require.Equal(t, noise, letters[0].Value)
	headers := map[string]string{}
	for _, h := range letters[0].Headers {
		headers[h.Key] = string(h.Value)
	}
	require.Equal(t, []string{"source", bulky, "0", "6", bulky + ".copy"}, []string{
		headers["causeway.source.cluster"], headers["causeway.source.topic"], headers["causeway.source.partition"], headers["causeway.source.offset"],
		headers["causeway.target.topic"],
	})
	load(t, k, bulky, 0, 10)
	m.start(t)
	m.caughtUp(t, bulky)
	_, listed := get(t, m.api(t)+"/api/v1/dead-letters/"+bulky)
	require.Regexp(t, `^\{"items":\[\{[^}]*"offset":6,[^}]*"reason":"[^"]*MESSAGE_TOO_LARGE[^}]*"bytes":15000\d\d\}\],"next":""\}`, listed)
	require.Contains(t, m.putBack(t, bulky), `"put_back":0,"refused":1,`)
	limitBatches(t, k, bulky+".copy", "5242880")
	require.Contains(t, m.putBack(t, bulky), `"put_back":1,"refused":0,`)
	require.Contains(t, m.putBack(t, bulky), `"put_back":0,"refused":0,`)
	_, listed = get(t, m.api(t)+"/api/v1/dead-letters/"+bulky)
	require.Contains(t, listed, `"items":[]`)
	m.stop(t)
	require.Equal(t, rest, values(t, k, keyless+".copy", 9))
	all := records(t, k, bulky+".copy", 20)
	for i, want := range rest {
		require.Equal(t, want, all[i].Value)
	}
	require.Equal(t, noise, all[19].Value)
	require.Empty(t, all[19].Headers)

	r := newMirrorer(t, "raising", between(k.Bootstrap(), k.Bootstrap(), raised, "--rename", "{topic}.copy")...)
	r.args = append(r.args, "--config", r.file(t, "route: {on: {oversized: raise}}\n"))
	r.start(t)
	r.caughtUp(t, raised)
	require.Contains(t, r.awaitEvent(t, "target_changed", raised, time.Second).Reason, "2097152 instead of 100000")
	r.stop(t)
	requireCopy(t, k.Bootstrap(), k.Bootstrap(), raised, raised+".copy", 10)
}

// TestDeletedTopicStopsByPolicy: a topic that is deleted is no trouble then, and one that comes back under its name is copied from its first record.
func TestDeletedTopicStopsByPolicy(t *testing.T) {
	t.Parallel()
	k := kafkatest.Shared(t, kafkatest.Kafka4)
	const topic, other = "deleted.stops", "deleted.not"
	m := newMirrorer(t, "mirror", between(k.Bootstrap(), k.Bootstrap(), topic+","+other, "--rename", "{topic}.copy")...)
	m.args = append(m.args, "--config", m.file(t, "route: {on: {deleted: stop}}\n"))
	for _, name := range []string{topic, other} {
		k.CreateTopic(t, name, 1, nil)
		load(t, k, name, 0, 100)
	}
	m.start(t)
	m.caughtUp(t, topic)
	admin := kadm.NewClient(k.Client(t))
	deleted, err := admin.DeleteTopic(t.Context(), topic)
	require.NoError(t, errors.Join(err, deleted.Err))
	m.awaitEvent(t, "topic_deleted", topic, time.Minute)
	p := m.places(t, topic)
	require.Len(t, p, 1)
	require.Equal(t, []any{"stopped", "the source has no such topic or partition any more", int64(-1)}, []any{p[0].State, p[0].Reason, p[0].LagRecords})
	code, ready := m.health(t)
	require.Equal(t, http.StatusOK, code, ready)
	require.JSONEq(t, `{"ready":true,"reason":"","halted":[]}`, ready)
	_, status := get(t, m.api(t)+"/api/v1/status")
	require.Contains(t, status, `"state":"mirroring"`)
	_, halts := get(t, m.api(t)+"/api/v1/events?type=partition_halted")
	require.Contains(t, halts, `"items":[]`)
	load(t, k, other, 100, 100)
	m.caughtUp(t, other)

	k.CreateTopic(t, topic, 1, nil)
	load(t, k, topic, 1000, 200)
	m.awaitEvent(t, "topic_recreated", topic, 30*time.Second)
	m.caughtUp(t, topic)
	m.stop(t)
	require.Equal(t, ranges([2]int{0, 100}, [2]int{1000, 1200}), numbers(t, k, topic+".copy", 300))
	requireCopy(t, k.Bootstrap(), k.Bootstrap(), other, other+".copy", 200)
}
