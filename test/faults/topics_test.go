package faults_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
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

// load writes numbered records.
func load(t *testing.T, k *kafkatest.Cluster, topic string, first, records int) {
	t.Helper()
	kafkatest.Load(t, k.Bootstrap(), kafkatest.LoadOptions{Topic: topic, First: first, Records: records})
}

// numbers are those of the n records of a topic of one partition, in order, as a read_committed consumer has them. That there are more is a failure.
func numbers(t *testing.T, k *kafkatest.Cluster, topic string, n int) (all []int) {
	t.Helper()
	require.EqualValues(t, n, recordsOf(t, k, topic), topic)
	cl := k.Client(t, kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for len(all) < n {
		fetched := cl.PollFetches(ctx)
		require.NoError(t, ctx.Err(), "%s has %d records, not %d", topic, len(all), n)
		fetched.EachRecord(func(r *kgo.Record) {
			number, err := strconv.Atoi(string(r.Value[:12]))
			require.NoError(t, err)
			all = append(all, number)
		})
	}
	return all
}

// ranges are the numbers of some ranges, each from one to but not including another.
func ranges(bounds ...[2]int) (all []int) {
	for _, b := range bounds {
		for i := b[0]; i < b[1]; i++ {
			all = append(all, i)
		}
	}
	return all
}

// file writes the native file.
func (m *mirrorer) file(t *testing.T, text string) (path string) {
	t.Helper()
	path = filepath.Join(m.dir, "causeway.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// discoverOften is a file for tests that don't wait for the default of 30 s.
const discoverOften = "route: {topics: {discover_interval: 1s}}\n"

// happening is an event as the API gives it.
type happening struct {
	Type        string `json:"type"`
	Topic       string `json:"topic"`
	Partition   *int32 `json:"partition"`
	FirstOffset *int64 `json:"first_offset"`
	LastOffset  *int64 `json:"last_offset"`
	Reason      string `json:"reason"`
}

// awaitEvent waits until there is an event of a type about a topic.
func (m *mirrorer) awaitEvent(t *testing.T, kind, topic string, within time.Duration) (e happening) {
	t.Helper()
	require.Eventually(t, func() bool {
		var list struct {
			Items []happening `json:"items"`
		}
		code, body := get(t, m.api(t)+"/api/v1/events?limit=1000&type="+kind)
		if code != http.StatusOK || json.Unmarshal([]byte(body), &list) != nil {
			return false
		}
		for _, e = range list.Items {
			if e.Topic == topic {
				return true
			}
		}
		return false
	}, within, 50*time.Millisecond, "no %s of %s", kind, topic)
	return e
}

// place is a partition as the API gives it.
type place struct {
	State      string  `json:"state"`
	Reason     string  `json:"reason"`
	Position   int64   `json:"position"`
	Acked      int64   `json:"acked"`
	Committed  int64   `json:"committed"`
	LagRecords int64   `json:"lag_records"`
	LagBytes   int64   `json:"lag_bytes"`
	LagSeconds float64 `json:"lag_seconds"`

	SpilledBytes int64 `json:"spilled_bytes"`
}

// places are the partitions of a topic, in order.
func (m *mirrorer) places(t *testing.T, topic string) []place {
	t.Helper()
	var list struct {
		Items []place `json:"items"`
	}
	if code, body := get(t, m.api(t)+"/api/v1/partitions?limit=1000&topic="+topic); code == http.StatusOK {
		require.NoError(t, json.Unmarshal([]byte(body), &list))
	}
	return list.Items
}

// health is what /readyz says.
func (m *mirrorer) health(t *testing.T) (code int, body string) {
	t.Helper()
	return get(t, m.api(t)+"/readyz")
}

// endsOf are a topic's end offsets by partition, 0 where it is not known yet.
func endsOf(t *testing.T, k *kafkatest.Cluster, topic string) (ends []int64) {
	t.Helper()
	list, err := kadm.NewClient(k.Client(t)).ListEndOffsets(t.Context(), topic)
	require.NoError(t, err)
	for p := range int32(len(list[topic])) {
		end, _ := list.Lookup(topic, p)
		ends = append(ends, max(end.Offset, 0))
	}
	return ends
}

// TestC6PurgedBeforeTheyWereCopied: what the source deletes while the mirror is away is told with its offsets, and nothing else is missing.
func TestC6PurgedBeforeTheyWereCopied(t *testing.T) {
	t.Parallel()
	k := kafkatest.Shared(t, kafkatest.Kafka4)
	const topic, to = "purged", "purged.copy"
	k.CreateTopic(t, topic, 1, nil)
	load(t, k, topic, 0, 100)
	m := newMirrorer(t, "mirror", between(k.Bootstrap(), k.Bootstrap(), topic, "--rename", "{topic}.copy")...)
	m.start(t)
	m.caughtUp(t, topic)
	m.stop(t)
	load(t, k, topic, 100, 900)
	var before kadm.Offsets
	before.AddOffset(topic, 0, 600, -1)
	_, err := kadm.NewClient(k.Client(t)).DeleteRecords(t.Context(), before)
	require.NoError(t, err)

	m.start(t)
	m.api(t)
	for _, kind := range []string{"source_truncated", "range_skipped"} {
		e := m.awaitEvent(t, kind, topic, 10*time.Second)
		require.Equal(t, [3]int64{0, 100, 599}, [3]int64{int64(*e.Partition), *e.FirstOffset, *e.LastOffset})
	}
	m.caughtUp(t, topic)
	require.Equal(t, "offsets 100 to 599 were skipped: source_truncated", m.places(t, topic)[0].Reason)
	_, metrics := get(t, m.api(t)+"/metrics")
	require.Regexp(t, `causeway_skipped_records_total\{reason="source_truncated"[^}]*\} 500\n`, metrics)
	m.stop(t)
	require.Equal(t, ranges([2]int{0, 100}, [2]int{600, 1000}), numbers(t, k, to, 500))
}

// TestC14RecreatedWhileAway: a topic that was made anew is copied from its first record, also where the old one's position lies within it.
func TestC14RecreatedWhileAway(t *testing.T) {
	t.Parallel()
	k := kafkatest.Shared(t, kafkatest.Kafka4)
	topics := map[string]int{"reborn-shorter": 200, "reborn-longer": 800}
	m := newMirrorer(t, "mirror", between(k.Bootstrap(), k.Bootstrap(), "reborn-shorter,reborn-longer", "--rename", "{topic}.copy")...)
	for topic := range topics {
		k.CreateTopic(t, topic, 1, nil)
		load(t, k, topic, 0, 500)
	}
	m.start(t)
	for topic := range topics {
		m.caughtUp(t, topic)
	}
	m.stop(t)
	for topic, n := range topics {
		k.Remake(t, topic, 1)
		load(t, k, topic, 1000, n)
	}
	m.start(t)
	for topic, n := range topics {
		m.awaitEvent(t, "topic_recreated", topic, 30*time.Second)
		m.caughtUp(t, topic)
		require.Equal(t, ranges([2]int{0, 500}, [2]int{1000, 1000 + n}), numbers(t, k, topic+".copy", 500+n))
	}
	m.stop(t)
}

// TestC15NewTopicsAndLatest: a topic that appears is copied from its first record; one that was there begins where it ended, and a restart does not
// change that.
func TestC15NewTopicsAndLatest(t *testing.T) {
	t.Parallel()
	k := kafkatest.Shared(t, kafkatest.Kafka4)
	const old, fresh = "appear.old", "appear.fresh"
	k.CreateTopic(t, old, 1, nil)
	load(t, k, old, 0, 100)
	m := newMirrorer(t, "mirror", between(k.Bootstrap(), k.Bootstrap(), `appear\..*`, "--rename", "copy.{topic}", "--start", "latest")...)
	m.args = append(m.args, "--config", m.file(t, discoverOften))
	m.start(t)
	require.Eventually(t, func() bool {
		p := m.places(t, old)
		return len(p) == 1 && p[0].State == "mirroring" && p[0].Acked == 100
	}, upWithin, 50*time.Millisecond)

	began := time.Now()
	k.CreateTopic(t, fresh, 1, nil)
	load(t, k, fresh, 0, 1000)
	m.awaitEvent(t, "topic_discovered", fresh, 10*time.Second)
	kafkatest.AwaitRecords(t, k.Bootstrap(), "copy."+fresh, 1000, 10*time.Second-time.Since(began))
	load(t, k, old, 100, 50)
	m.caughtUp(t, old)
	m.stop(t)
	load(t, k, old, 150, 50)
	m.start(t)
	m.caughtUp(t, old)
	m.caughtUp(t, fresh)
	m.stop(t)
	require.Equal(t, ranges([2]int{100, 200}), numbers(t, k, "copy."+old, 100))
	requireCopy(t, k.Bootstrap(), k.Bootstrap(), fresh, "copy."+fresh, 1000)
}

// keyed writes records with keys to a topic, whatever partitions it has at the time, until it is ended.
func keyed(t *testing.T, k *kafkatest.Cluster, topic string) (end func() int64) {
	t.Helper()
	cl := k.Client(t, kgo.DefaultProduceTopic(topic), kgo.MetadataMaxAge(time.Second), kgo.MetadataMinAge(100*time.Millisecond))
	ctx, stop := context.WithCancel(t.Context())
	ended, written := make(chan struct{}), int64(0)
	go func() { // owned by the test: end and the cleanup wait for it
		defer close(ended)
		for i := 0; ctx.Err() == nil; i++ {
			r := &kgo.Record{Key: fmt.Appendf(nil, "k%d", i%100), Value: fmt.Appendf(nil, "%012d", i)}
			if cl.ProduceSync(context.WithoutCancel(ctx), r).FirstErr() == nil {
				written++
			}
			await(ctx, 2*time.Millisecond)
		}
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	return func() int64 {
		stop()
		<-ended
		return written
	}
}

// TestC16PartitionsAreAdded: those that are added under load are copied whole, each to the one with its number. A target that has more keeps the
// numbers, one that has fewer and can't be grown gets nothing.
func TestC16PartitionsAreAdded(t *testing.T) {
	t.Parallel()
	k := kafkatest.Shared(t, kafkatest.Kafka4)
	const grown, wider, narrower = "grown.keyed", "grown.wider", "grown.narrower"
	k.CreateTopic(t, grown, 2, nil)
	k.CreateTopic(t, wider, 2, nil)
	k.CreateTopic(t, "copy."+wider, 4, nil)
	k.CreateTopic(t, narrower, 4, nil)
	k.CreateTopic(t, "copy."+narrower, 2, nil)
	load(t, k, wider, 0, 1000)
	load(t, k, narrower, 0, 1000)
	m := newMirrorer(t, "mirror", between(k.Bootstrap(), k.Bootstrap(), grown+","+wider, "--rename", "copy.{topic}")...)
	m.args = append(m.args, "--config", m.file(t, discoverOften))
	m.start(t)
	fixed := newMirrorer(t, "fixed", between(k.Bootstrap(), k.Bootstrap(), narrower, "--rename", "copy.{topic}", "--create-topics=false")...)
	fixed.start(t)
	end := keyed(t, k, grown)
	m.caughtUp(t, grown)

	admin := kadm.NewClient(k.Client(t))
	_, err := admin.CreatePartitions(t.Context(), 4, grown)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		topics, err := admin.ListTopics(t.Context(), "copy."+grown)
		return err == nil && len(topics["copy."+grown].Partitions) == 6
	}, 10*time.Second, 50*time.Millisecond)
	require.Eventually(t, func() bool { return !slices.Contains(endsOf(t, k, grown), 0) }, 30*time.Second, 50*time.Millisecond,
		"nobody writes to the new partitions")
	written := end()
	m.caughtUp(t, grown)
	m.caughtUp(t, wider)
	e := fixed.awaitEvent(t, "partition_halted", narrower, 30*time.Second)
	require.Contains(t, e.Reason, "partitions")
	for _, p := range fixed.places(t, narrower) {
		require.Equal(t, "halted", p.State)
	}
	m.stop(t)
	fixed.stop(t)
	requireCopy(t, k.Bootstrap(), k.Bootstrap(), grown, "copy."+grown, written)
	require.Equal(t, append(endsOf(t, k, wider), 0, 0), endsOf(t, k, "copy."+wider))
	require.Equal(t, []int64{0, 0}, endsOf(t, k, "copy."+narrower))
}

// TestC17NamesThatLookLikeCopies: a dot makes no topic a copy, nor does a target's name before it.
func TestC17NamesThatLookLikeCopies(t *testing.T) {
	t.Parallel()
	k := kafkatest.Shared(t, kafkatest.Kafka4)
	topics := []string{"backup.orders", "a.b.c", "orders.replica", "x-internal"}
	for _, topic := range topics {
		k.CreateTopic(t, topic, 1, nil)
		load(t, k, topic, 0, 10)
	}
	patterns := strings.ReplaceAll(strings.Join(topics, ","), ".", `\.`)
	m := newMirrorer(t, "mirror", between(k.Bootstrap(), k.Bootstrap(), patterns, "--target-name", "backup", "--rename", "copy.{topic}")...)
	m.start(t)
	for _, topic := range topics {
		m.caughtUp(t, topic)
		requireCopy(t, k.Bootstrap(), k.Bootstrap(), topic, "copy."+topic, 10)
	}
	m.stop(t)
}
