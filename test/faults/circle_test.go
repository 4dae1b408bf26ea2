package faults_test

import (
	"context"
	"net/http"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// TestC18TwoWayMirrorsOfOneName: what was copied there is not copied back, and both routes are named. Each record is once on the target; what else
// the route has is copied. Names that differ are no loop, unless they are taken again and again.
func TestC18TwoWayMirrorsOfOneName(t *testing.T) {
	t.Parallel()
	a, b := kafkatest.Shared(t, kafkatest.Kafka3), kafkatest.Shared(t, kafkatest.Kafka4)
	const same, pair, grows = "ways.same", "ways.pair", "ways.grows"
	for _, k := range []*kafkatest.Cluster{a, b} {
		for _, topic := range []string{same, pair} {
			k.CreateTopic(t, topic, 1, nil)
		}
	}
	a.CreateTopic(t, grows, 1, nil)
	load(t, a, same, 0, 100)
	load(t, a, pair, 0, 10)
	load(t, b, pair, 10, 20)
	load(t, a, grows, 0, 30)
	way := func(name string, from, to *kafkatest.Cluster, names ...string) *mirrorer {
		m := newMirrorer(t, name, between(from.Bootstrap(), to.Bootstrap(), `ways\.same,ways\.pair,(.*\.)?ways\.grows`,
			"--source-name", names[0], "--target-name", names[1])...)
		m.args = append(m.args, "--config",
			m.file(t, `route: {topics: {discover_interval: 1s, rename: "{source}.{topic}", mapping: {ways.same: ways.same}}}`))
		m.start(t)
		return m
	}
	there := way("there", a, b, "sjc", "dca")
	there.caughtUp(t, same)
	there.caughtUp(t, grows)
	back := way("back", b, a, "dca", "sjc")
	for _, topic := range []string{same, "sjc." + grows} {
		e := back.awaitEvent(t, "loop_refused", topic, 60*time.Second)
		require.Contains(t, e.Reason, "@sjc@dca@1")
		require.Contains(t, e.Reason, "@dca@sjc@1")
		for _, p := range back.places(t, topic) {
			require.Equal(t, "halted", p.State)
			require.Equal(t, e.Reason, p.Reason)
		}
		_, excluded := get(t, back.api(t)+"/api/v1/excluded-topics?filter="+topic)
		require.Contains(t, excluded, "@sjc@dca@1")
	}
	back.caughtUp(t, pair)
	there.caughtUp(t, pair)

	load(t, a, same, 100, 50)
	load(t, b, same, 1000, 7)
	there.caughtUp(t, same)
	pass(t, 3*time.Second) // in which a loop would run
	code, body := back.health(t)
	require.Equal(t, http.StatusOK, code, body)
	_, excluded := get(t, there.api(t)+"/api/v1/excluded-topics?filter=ways")
	require.NotContains(t, excluded, "@dca@sjc@1", "the route that was there goes on")
	there.stop(t)
	back.stop(t)
	require.EqualValues(t, 150, recordsOf(t, a, same))
	require.EqualValues(t, 157, recordsOf(t, b, same))
	require.EqualValues(t, 20, recordsOf(t, a, "dca."+pair))
	require.EqualValues(t, 10, recordsOf(t, b, "sjc."+pair))
	require.EqualValues(t, 30, recordsOf(t, b, "sjc."+grows))
}

// TestC18TwoWayMirrorsOfOneNameDropWhatComesBack: both clusters are written to, both routes copy the topic under its name, and each record stands once
// on each cluster, in the order of its writer, while one of the routes is killed and started again.
func TestC18TwoWayMirrorsOfOneNameDropWhatComesBack(t *testing.T) {
	t.Parallel()
	a, b := kafkatest.Shared(t, kafkatest.Kafka3), kafkatest.Shared(t, kafkatest.Kafka4)
	const topic, partitions, fromB = "both", 3, 500_000_000
	clusters := []*kafkatest.Cluster{a, b}
	for i, k := range clusters {
		k.CreateTopic(t, topic, partitions, nil)
		load(t, k, topic, 900_000_000+i*1_000_000, 1000) // what is there before
	}
	way := func(name, from, to string, src, dst *kafkatest.Cluster) *mirrorer {
		m := newMirrorer(t, name, between(src.Bootstrap(), dst.Bootstrap(), topic, "--source-name", from, "--target-name", to, "--commit-interval", "300ms")...)
		m.args = append(m.args, "--config", m.file(t, "route: {loops: drop, topics: {discover_interval: 1s}}"))
		m.start(t)
		return m
	}
	there, back := way("there", "sjc", "dca", a, b), way("back", "dca", "sjc", b, a)
	write := func(k *kafkatest.Cluster, first int) *feed {
		return feedTurns(t, k.Bootstrap(), func(turn int) kafkatest.LoadOptions {
			o := turnOf(topic, turn, 1000)
			if o.First += first; turn%3 == 2 {
				o.TxnRecords = 300
			}
			return o
		})
	}
	feeds := []*feed{write(a, 0), write(b, fromB)}
	for range rounds(3, 30) {
		pass(t, upTo(1500*time.Millisecond))
		there.kill(t)
		there.start(t)
	}
	written := int64(2000)
	for _, f := range feeds {
		written += f.end(t)
	}
	for range 2 { // what one brings the other has to read past
		there.caughtUp(t, topic)
		back.caughtUp(t, topic)
	}
	for _, k := range clusters {
		requireOnce(t, k, topic, int(written))
	}
	require.Positive(t, there.counter(t, "causeway_returned_records_total", topic))
	pass(t, time.Second) // in which a loop would run
	there.stop(t)
	back.stop(t)
	for _, k := range clusters {
		requireOnce(t, k, topic, int(written))
	}
}

// requireOnce fails unless a topic has so many numbered records, each once, and the records of each writer in order in each partition. A writer has
// numbers of its own, in millions.
func requireOnce(t *testing.T, k *kafkatest.Cluster, topic string, written int) {
	t.Helper()
	type place struct{ writer, partition int }
	seen, last := map[int]int{}, map[place]int{}
	for _, r := range committed(t, k, topic) {
		number, err := strconv.Atoi(string(r.Value[:12]))
		require.NoError(t, err)
		at := place{number / 1_000_000, int(r.Partition)}
		require.Greater(t, number, last[at]-1, "out of order in partition %d", r.Partition)
		last[at] = number
		seen[number]++
		require.Equal(t, 1, seen[number], "record %d", number)
	}
	require.Len(t, seen, written)
}

// committed are the records of a topic up to its end at the time of the call, as a read_committed consumer has them.
func committed(t *testing.T, k *kafkatest.Cluster, topic string) (all []*kgo.Record) {
	t.Helper()
	left := map[int32]int64{}
	for p, end := range endsOf(t, k, topic) {
		if end > 0 {
			left[int32(p)] = end
		}
	}
	cl := k.Client(t, kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for len(left) > 0 {
		fetched := cl.PollFetches(ctx)
		require.NoError(t, ctx.Err(), "%s can't be read to its end: %v", topic, left)
		fetched.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				all = append(all, r)
			}
			if r.Offset+1 >= left[r.Partition] {
				delete(left, r.Partition)
			}
		})
	}
	return all
}

// counter is the value of a topic's series.
func (m *mirrorer) counter(t *testing.T, name, topic string) float64 {
	t.Helper()
	_, body := get(t, m.api(t)+"/metrics")
	found := regexp.MustCompile(`(?m)^` + name + `\{[^}]*topic="` + regexp.QuoteMeta(topic) + `"\} (\S+)$`).FindStringSubmatch(body)
	require.NotNil(t, found, "no %s of %s", name, topic)
	value, err := strconv.ParseFloat(found[1], 64)
	require.NoError(t, err)
	return value
}
