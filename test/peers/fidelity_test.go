package peers_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

func sorted(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

// abortedTransactions is C1: 10 transactions committed and 10 aborted, of 10 records each, and one that is left open and committed later.
func abortedTransactions(t *testing.T, s *site) {
	t.Helper()
	s.NoEvent = true
	s.create(t, 1, nil, "t")
	cl := s.source.Client(t, kgo.TransactionalID(s.alias), kgo.DefaultProduceTopic(s.topic("t")))
	begin := func(first int) {
		require.NoError(t, cl.BeginTransaction())
		require.NoError(t, cl.ProduceSync(t.Context(), s.records(first, 10)...).FirstErr())
	}
	for i := range 20 {
		begin(10 * i)
		require.NoError(t, cl.EndTransaction(t.Context(), kgo.TransactionEndTry(i%2 == 0)))
	}
	begin(200)
	s.start(t)
	s.settle(t, "t", 100)
	early := s.copied(t, "t")
	s.must(early == 100, "%d records on the target while 100 are committed", early)
	require.NoError(t, cl.EndTransaction(t.Context(), kgo.TryCommit))
	s.settle(t, "t", 110)
	s.equal(t, "t")
}

// timestampTypes is C4: topics whose brokers keep timestamps or set them, on either side, uncompressed and compressed.
func timestampTypes(t *testing.T, s *site) {
	t.Helper()
	s.NoEvent = true
	const key, create, appended = "message.timestamp.type", "CreateTime", "LogAppendTime"
	type pair struct{ topic, source, target string }
	var pairs []pair
	for _, codec := range []string{"none", "lz4"} {
		for _, source := range []string{create, appended} {
			for _, target := range []string{create, appended} {
				p := pair{strings.ToLower(source[:1] + "2" + target[:1] + "-" + codec), source, target}
				s.create(t, 1, map[string]string{key: source}, p.topic)
				s.target.CreateTopic(t, s.topic(p.topic), 1, map[string]string{key: target})
				compression := kgo.NoCompression()
				if codec == "lz4" {
					compression = kgo.Lz4Compression()
				}
				s.produce(t, p.topic, 0, 100, kgo.ProducerBatchCompression(compression))
				pairs = append(pairs, p)
			}
		}
	}
	began := time.Now()
	s.start(t)
	for _, p := range pairs {
		s.must(s.settle(t, p.topic, 100), "%s to %s: not all records arrive", p.source, p.target)
		s.weigh(t, p.topic, texts(kafkatest.Records(t, s.source.Bootstrap(), s.topic(p.topic)), p.target == create), p.target == create)
		if p.target == appended {
			for _, r := range kafkatest.Records(t, s.target.Bootstrap(), s.topic(p.topic))[0] {
				s.must(r.Timestamp.After(began), "%s to %s: not the time at which the target appended", p.source, p.target)
			}
		}
	}
	s.must(s.told("INVALID_TIMESTAMP|InvalidTimestamp") == "", "INVALID_TIMESTAMP")
}

// nothingMore is C29: logs whose last thing is nothing that readers see.
func nothingMore(t *testing.T, s *site) {
	t.Helper()
	s.NoEvent = true
	s.create(t, 1, nil, "committed", "aborted")
	s.create(t, 1, map[string]string{"cleanup.policy": "compact", "segment.ms": "200", "min.cleanable.dirty.ratio": "0.01", "delete.retention.ms": "0"}, "emptied")
	kafkatest.Load(t, s.source.Bootstrap(), kafkatest.LoadOptions{Topic: s.topic("committed"), Records: 1000, TxnRecords: 10})
	kafkatest.Load(t, s.source.Bootstrap(), kafkatest.LoadOptions{Topic: s.topic("aborted"), Records: 100, TxnRecords: 10, AbortEvery: 10})
	s.empty(t, "emptied")
	s.start(t)
	s.must(s.settle(t, "committed", 1000), "not all records arrive")
	s.settle(t, "aborted", 90)
	pass(t, 10*time.Second) // for positions to be stored, and figures to be what they will be
	lags := s.lags(t)
	for _, topic := range []string{"committed", "aborted", "emptied"} {
		s.equal(t, topic)
		lag, ok := lags[s.topic(topic)]
		switch {
		case !ok:
			s.must(false, "%s: no lag is reported", topic)
		case lag != 0:
			s.must(false, "%s: a lag of %v is reported", topic, lag)
		}
	}
	require.NoError(t, s.run.Stop()) // so that positions are stored, whatever the interval
	stable, err := kadm.NewClient(s.source.Client(t)).ListCommittedOffsets(t.Context(), s.topic("committed"), s.topic("aborted"), s.topic("emptied"))
	require.NoError(t, err)
	if s.kind == mirrorMaker {
		positions := kafkatest.Positions(t, s.target.Bootstrap(), "mm2-offsets."+s.alias+".internal")
		stable.Each(func(o kadm.ListedOffset) {
			if at, stored := positions[o.Topic][o.Partition]; !stored || at+1 < o.Offset {
				s.must(false, "stored positions stay at the last record, before what ends the log")
			}
		})
	}
}

// empty leaves a compacted topic with nothing but headers of batches and markers.
func (s *site) empty(t *testing.T, topic string) {
	t.Helper()
	name := s.topic(topic)
	cl := s.source.Client(t, kgo.DefaultProduceTopic(name))
	require.NoError(t, cl.ProduceSync(t.Context(), &kgo.Record{Key: []byte("k"), Value: []byte("v")}, &kgo.Record{Key: []byte("k")}).FirstErr())
	rolling := s.source.Client(t, kgo.TransactionalID(s.alias+"-rolling"), kgo.DefaultProduceTopic(name))
	require.True(t, within(t, time.Minute, func() bool {
		require.NoError(t, rolling.BeginTransaction()) // since the newest segment is never cleaned
		require.NoError(t, rolling.ProduceSync(t.Context(), &kgo.Record{Key: []byte("aborted"), Value: []byte("x")}).FirstErr())
		require.NoError(t, rolling.EndTransaction(t.Context(), kgo.TryAbort))
		return len(kafkatest.Records(t, s.source.Bootstrap(), name)[0]) == 0
	}), "the cleaner has not emptied the topic")
}

// lags are the lags in records that a mirror reports itself, by topic, the highest of its partitions: Causeway by its metrics, MirrorMaker 2 by those of
// its consumer.
func (s *site) lags(t *testing.T) map[string]float64 {
	t.Helper()
	found := map[string]float64{}
	take := func(topic, value string) {
		n, err := strconv.ParseFloat(value, 64)
		require.NoError(t, err)
		found[topic] = max(found[topic], n)
	}
	if s.kind == mirrorMaker {
		for bean, value := range s.figures(t, "kafka.consumer:type=consumer-fetch-manager-metrics,client-id=*,topic=*,partition=*", "records-lag") {
			_, topic, _ := strings.Cut(bean, "topic=")
			topic, _, _ = strings.Cut(topic, ",")
			if value != "NaN" {
				take(strings.Trim(topic, `"`), value)
			}
		}
		return found
	}
	var list struct {
		Items []struct {
			Topic string      `json:"topic"`
			Lag   json.Number `json:"lag_records"`
		} `json:"items"`
	}
	code, body := s.api(t, "/api/v1/partitions?limit=1000")
	require.Equal(t, http.StatusOK, code, body)
	require.NoError(t, json.Unmarshal([]byte(body), &list))
	for _, p := range list.Items {
		take(p.Topic, p.Lag.String())
	}
	return found
}
