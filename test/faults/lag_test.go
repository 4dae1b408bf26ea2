package faults_test

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// stableOf are a topic's last stable offsets by partition, as the brokers say them.
func stableOf(t *testing.T, k *kafkatest.Cluster, topic string) (stable []int64) {
	t.Helper()
	list, err := kadm.NewClient(k.Client(t)).ListCommittedOffsets(t.Context(), topic)
	require.NoError(t, err)
	for p := range int32(len(list[topic])) {
		o, _ := list.Lookup(topic, p)
		require.NoError(t, o.Err)
		stable = append(stable, o.Offset)
	}
	return stable
}

// firstBatch is how many records the first batch of a one-partition topic holds, as its header says; the cleaner leaves a header without any.
func firstBatch(t *testing.T, cl *kgo.Client, topic string) int {
	t.Helper()
	topics, err := kadm.NewClient(cl).ListTopics(t.Context(), topic)
	require.NoError(t, err)
	req := kmsg.NewPtrFetchRequest()
	req.MaxBytes, req.MaxWaitMillis = 1<<20, 100
	of := kmsg.NewFetchRequestTopic()
	of.Topic, of.TopicID = topic, topics[topic].ID
	part := kmsg.NewFetchRequestTopicPartition()
	part.PartitionMaxBytes = 1 << 20
	of.Partitions = append(of.Partitions, part)
	req.Topics = append(req.Topics, of)
	resp, err := req.RequestWith(t.Context(), cl)
	require.NoError(t, err)
	raw := resp.Topics[0].Partitions[0].RecordBatches
	require.Greater(t, len(raw), 60)
	return int(binary.BigEndian.Uint32(raw[57:])) // KIP-98's header
}

// abort writes a record that nobody will see.
func abort(t *testing.T, cl *kgo.Client, topic string) {
	t.Helper()
	require.NoError(t, cl.BeginTransaction())
	require.NoError(t, cl.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Key: []byte("aborted"), Value: []byte("x")}).FirstErr())
	require.NoError(t, cl.EndTransaction(t.Context(), kgo.TryAbort))
}

// TestC29LagIsZeroWhereNothingMoreIsToBeRead: what stands last in a log may be nothing that a reader sees: a marker, an aborted transaction, batches
// of which the cleaner has left the header alone.
func TestC29LagIsZeroWhereNothingMoreIsToBeRead(t *testing.T) {
	t.Parallel()
	k := kafkatest.Shared(t, kafkatest.Kafka4)
	const committed, aborted, emptied = "tail.committed", "tail.aborted", "tail.emptied"
	k.CreateTopic(t, committed, 1, nil)
	k.CreateTopic(t, aborted, 1, nil)
	k.CreateTopic(t, emptied, 1, map[string]string{
		"cleanup.policy": "compact", "segment.ms": "200", "min.cleanable.dirty.ratio": "0.01", "delete.retention.ms": "0",
	})
	kafkatest.Load(t, k.Bootstrap(), kafkatest.LoadOptions{Topic: committed, Records: 1000, TxnRecords: 10})
	kafkatest.Load(t, k.Bootstrap(), kafkatest.LoadOptions{Topic: aborted, Records: 100, TxnRecords: 10, AbortEvery: 10})
	cl := k.Client(t, kgo.DefaultProduceTopic(emptied))
	require.NoError(t, cl.ProduceSync(t.Context(), &kgo.Record{Key: []byte("k"), Value: []byte("v")}, &kgo.Record{Key: []byte("k")}).FirstErr())
	rolling := k.Client(t, kgo.TransactionalID("rolling"))
	require.Eventually(t, func() bool {
		abort(t, rolling, emptied) // since the newest segment is never cleaned
		return firstBatch(t, cl, emptied) == 0
	}, time.Minute, 300*time.Millisecond, "the cleaner has not emptied the batch")
	require.Zero(t, kafkatest.Compare(t, k.Bootstrap(), k.Bootstrap(), emptied, emptied).Records)

	topics := []string{committed, aborted, emptied}
	m := newMirrorer(t, "mirror", between(k.Bootstrap(), k.Bootstrap(), strings.Join(topics, ","), "--rename", "{topic}.copy")...)
	m.start(t)
	for _, topic := range topics {
		m.caughtUp(t, topic)
		stable := stableOf(t, k, topic)[0]
		require.Eventually(t, func() bool {
			p := m.places(t, topic)
			return len(p) == 1 && p[0].State == "mirroring" && p[0].LagRecords == 0 && p[0].Position == stable && p[0].Acked == stable
		}, 10*time.Second, 20*time.Millisecond, topic)
		require.Zero(t, m.metric(t, "causeway_lag_records", topic, 0))
	}
	m.stop(t)
	for topic, n := range map[string]int64{committed: 1000, aborted: 90, emptied: 0} {
		requireCopy(t, k.Bootstrap(), k.Bootstrap(), topic, topic+".copy", n)
	}
}

// metric is the value of a partition's series.
func (m *mirrorer) metric(t *testing.T, name, topic string, partition int) float64 {
	t.Helper()
	_, body := get(t, m.api(t)+"/metrics")
	series := `(?m)^` + name + `\{partition="` + strconv.Itoa(partition) + `",[^}]*topic="` + regexp.QuoteMeta(topic) + `"\} (\S+)$`
	found := regexp.MustCompile(series).FindStringSubmatch(body)
	require.NotNil(t, found, "no %s of %s-%d", name, topic, partition)
	value, err := strconv.ParseFloat(found[1], 64)
	require.NoError(t, err)
	return value
}

// limit bounds the records a second of a topic; 0 lifts the bound.
func (m *mirrorer) limit(t *testing.T, topic string, records int) {
	t.Helper()
	body := strings.NewReader(fmt.Sprintf(`{"records_per_second":%d}`, records))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, m.api(t)+"/api/v1/topics/"+topic+"/limits", body)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusAccepted, resp.StatusCode)
}

// judged is what brokers said at one time: how far the source can be read, how far the copy has come, and how many bytes it is short of the source.
type judged struct {
	at                    time.Time
	stable, copied, short []int64
}

func judge(t *testing.T, k *kafkatest.Cluster, topic, to string) judged {
	t.Helper()
	j := judged{at: time.Now(), stable: stableOf(t, k, topic), copied: endsOf(t, k, to)}
	j.short = make([]int64, len(j.stable))
	dirs, err := kadm.NewClient(k.Client(t)).DescribeAllLogDirs(t.Context(), nil)
	require.NoError(t, err)
	dirs.Each(func(d kadm.DescribedLogDir) {
		for p := range j.short {
			source, _ := d.Topics.Lookup(topic, int32(p))
			copied, _ := d.Topics.Lookup(to, int32(p))
			j.short[p] += source.Size - copied.Size
		}
	})
	return j
}

// TestC31LagIsWhatAnIndependentReaderFinds asks the mirror at random moments, while it falls behind and while it catches up: what it says of each
// partition lies between what the brokers said one poll before and what they say right after. Each record of the topic is one of the copy.
func TestC31LagIsWhatAnIndependentReaderFinds(t *testing.T) {
	t.Parallel()
	k := kafkatest.Shared(t, kafkatest.Kafka3)
	const topic, to, poll = "measured", "measured.copy", 5 * time.Second // what a limit holds back learns of the end with its next fetch
	k.CreateTopic(t, topic, 2, nil)
	k.CreateTopic(t, to, 2, nil)
	m := newMirrorer(t, "mirror", between(k.Bootstrap(), k.Bootstrap(), topic, "--rename", "{topic}.copy")...)
	m.start(t)
	m.flowing(t, k, topic)
	m.limit(t, topic, 1000)
	f := feedTurns(t, k.Bootstrap(), func(turn int) kafkatest.LoadOptions { // of one size, or a mean would tell little of what is to come
		return kafkatest.LoadOptions{Topic: topic, First: turn * 1500, Records: 1500, Rate: 3000}
	})
	history, asked, deepest, limited := []judged{judge(t, k, topic, to)}, 0, int64(0), true
	ask := func() {
		pass(t, upTo(400*time.Millisecond))
		places := m.places(t, topic)
		require.Len(t, places, 2)
		metrics := []float64{m.metric(t, "causeway_lag_records", topic, 0), m.metric(t, "causeway_lag_records", topic, 1)}
		now := judge(t, k, topic, to)
		for history = append(history, now); len(history) > 1 && now.at.Sub(history[1].at) > poll; history = history[1:] {
			continue
		}
		before := history[0]
		if now.at.Sub(before.at) < poll {
			return // there is nothing yet to hold it against
		}
		asked++
		for i, p := range places {
			deepest = max(deepest, p.LagRecords)
			require.GreaterOrEqual(t, p.Acked+p.LagRecords, before.stable[i], "%d: behind the source's end of %v ago", i, now.at.Sub(before.at))
			require.LessOrEqual(t, p.Acked+p.LagRecords, now.stable[i], "%d: beyond the source's end", i)
			require.GreaterOrEqual(t, p.Acked, before.copied[i], "%d: behind the copy of %v ago", i, now.at.Sub(before.at))
			require.LessOrEqual(t, p.Acked, now.copied[i], "%d: beyond the copy", i)
			if limited && p.LagRecords > 1000 { // of few it says little, and soon it is another
				about := now.short[i]
				require.Greater(t, p.LagBytes, about/3, "%d: bytes", i)
				require.Less(t, p.LagBytes, about*3, "%d: bytes", i)
			}
			require.GreaterOrEqual(t, metrics[i], float64(before.stable[i]-now.copied[i]))
			require.LessOrEqual(t, metrics[i], float64(now.stable[i]-before.copied[i]))
		}
	}
	for began := time.Now(); asked < 10 || time.Since(began) < time.Duration(rounds(10, 60))*time.Second; {
		ask()
	}
	require.Greater(t, deepest, int64(1000), "it has never been behind")
	require.Greater(t, m.metric(t, "causeway_lag_seconds", topic, 0), 2.0)
	m.limit(t, topic, 0)
	limited = false
	written := f.end(t)
	for range 5 {
		ask()
	}
	m.caughtUp(t, topic)

	// what belongs to an open transaction can't be read yet: it is no lag
	cl := k.Client(t, kgo.TransactionalID(topic), kgo.DefaultProduceTopic(topic))
	require.NoError(t, cl.BeginTransaction())
	require.NoError(t, cl.ProduceSync(t.Context(), &kgo.Record{Value: []byte("open")}).FirstErr())
	idle := func() bool {
		places := m.places(t, topic)
		for i, p := range places {
			for _, unit := range []string{"records", "bytes", "seconds"} {
				if m.metric(t, "causeway_lag_"+unit, topic, i) != 0 {
					return false
				}
			}
			if p.LagRecords != 0 || p.LagBytes != 0 || p.LagSeconds != 0 {
				return false
			}
		}
		return len(places) == 2
	}
	require.Eventually(t, idle, 2*poll, 50*time.Millisecond, "idle, and not at 0")
	require.NoError(t, cl.EndTransaction(t.Context(), kgo.TryAbort))
	m.caughtUp(t, topic)
	m.stop(t)
	requireCopy(t, k.Bootstrap(), k.Bootstrap(), topic, to, written)
}
