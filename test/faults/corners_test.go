package faults_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/causeway-mirror/causeway/internal/testkit"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// kept is a record as a reader sees it: its key, and the number that is its value.
type kept struct {
	key    string
	number int
}

// readAll reads a one-partition topic up to its end.
func readAll(t *testing.T, k *kafkatest.Cluster, topic string) (all []kept) {
	t.Helper()
	cl := k.Client(t, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	ends, err := kadm.NewClient(cl).ListEndOffsets(t.Context(), topic)
	require.NoError(t, err)
	end, _ := ends.Lookup(topic, 0)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for next := int64(0); next < end.Offset; {
		fetches := cl.PollFetches(ctx)
		require.NoError(t, fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) {
			number, err := strconv.Atoi(string(r.Value))
			require.NoError(t, err)
			all, next = append(all, kept{string(r.Key), number}), r.Offset+1
		})
	}
	return all
}

// author appends numbered records with keys in turn, fifty to a batch.
type author struct {
	cl   *kgo.Client
	keys []string
	next int // the number of the next record
}

func newAuthor(t *testing.T, k *kafkatest.Cluster, topic string, keys ...string) *author {
	t.Helper()
	return &author{cl: k.Client(t, kgo.DefaultProduceTopic(topic), kgo.ProducerBatchCompression(kgo.Lz4Compression())), keys: keys}
}

// write appends up to n records, fewer if it is stopped before.
func (w *author) write(ctx, stopped context.Context, n int) error {
	for end := w.next + n; w.next < end && stopped.Err() == nil; {
		var batch []*kgo.Record
		for number := w.next; len(batch) < 50 && number < end; number++ {
			batch = append(batch, kgo.KeySliceRecord([]byte(w.keys[number%len(w.keys)]), []byte(strconv.Itoa(number))))
		}
		if err := w.cl.ProduceSync(ctx, batch...).FirstErr(); err != nil {
			return err
		}
		w.next += len(batch)
	}
	return nil
}

// must appends n records.
func (w *author) must(t *testing.T, n int) {
	t.Helper()
	require.NoError(t, w.write(t.Context(), t.Context(), n))
}

// TestFilterIsAnotherAfterAKill: the sequences that the killed process gave say nothing any more, since another filter forwards other records. Up to
// some record the copy is what the old filter leaves, from there on what the new one does, without a record twice or missing in between.
func TestFilterIsAnotherAfterAKill(t *testing.T) {
	t.Parallel()
	k := kafkatest.Shared(t, kafkatest.Kafka4)
	const topic, to = "sieved", "sieved.copy"
	k.CreateTopic(t, topic, 1, nil)
	m := newMirrorer(t, "mirror", between(k.Bootstrap(), k.Bootstrap(), topic, "--rename", "{topic}.copy", "--commit-interval", "1h")...)
	files := []string{}
	for i, keys := range []string{"[ab]", "[bc]"} {
		files = append(files, filepath.Join(m.dir, strconv.Itoa(i)+".yaml"))
		text := fmt.Sprintf("route: {topics: {overrides: {%s: {filter: {key: {matches: %q}}}}}}\n", topic, keys)
		require.NoError(t, os.WriteFile(files[i], []byte(text), 0o600))
	}
	w := newAuthor(t, k, topic, "a", "b", "c")
	w.must(t, 600)
	m.start(t, "--config", files[0])
	m.caughtUp(t, topic)
	turns := rounds(4, 30)
	for turn := range turns {
		stopped, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- w.write(t.Context(), stopped, 1_000_000) }() // owned by this turn, which waits for it
		pass(t, 100*time.Millisecond+upTo(400*time.Millisecond))
		m.kill(t)
		m.start(t, "--config", files[(turn+1)%2])
		m.api(t)
		pass(t, upTo(time.Second))
		stop()
		require.NoError(t, <-done)
	}
	m.caughtUp(t, topic)
	_, told := get(t, m.api(t)+"/api/v1/events")
	require.NotContains(t, told, "duplicates_possible")
	m.stop(t)
	copied := readAll(t, k, to)
	seen := map[int]bool{}
	for i, r := range copied {
		require.False(t, seen[r.number], "record %d twice", r.number)
		seen[r.number] = true
		require.True(t, i == 0 || copied[i-1].number < r.number, "record %d behind %d", r.number, copied[max(0, i-1)].number)
	}
	changes, first := 0, true // the filter that each record tells of: a hole, or a record too many, would be a change there and back
	for number := range w.next {
		key := w.keys[number%3]
		if key == "b" {
			require.True(t, seen[number], "record %d, which both filters keep, is missing", number)
			continue
		}
		if by := seen[number] == (key == "a"); by != first {
			changes, first = changes+1, by
		}
	}
	require.LessOrEqual(t, changes, turns, "the filters took turns within one life")
	require.Positive(t, changes)
	t.Logf("%d records, %d of them copied, %d changes of the filter", w.next, len(copied), changes)
}

// TestSourceIsCompactedBeforeTheRestart: the mirror dies with all its records stored beyond its checkpoint, and the cleaner has taken most of them
// from the source when it comes back. Counting what the source still has would take new records for stored ones.
func TestSourceIsCompactedBeforeTheRestart(t *testing.T) {
	t.Parallel()
	if !testkit.Long() { // a new leader of the source may know less for a while, so that each round is a minute of waiting
		t.Skip("at full length only; mirror.TestWalkThatTheSourceCannotEndIsEnded has the same cases without brokers")
	}
	k := kafkatest.Shared(t, kafkatest.Kafka3)
	const topic, to = "thinned", "thinned.copy"
	k.CreateTopic(t, topic, 1, map[string]string{
		"cleanup.policy": "compact", "segment.ms": "200", "min.cleanable.dirty.ratio": "0.01", "delete.retention.ms": "0", "segment.bytes": "1048576",
	})
	k.CreateTopic(t, to, 1, nil)
	m := newMirrorer(t, "mirror", between(k.Bootstrap(), k.Bootstrap(), topic, "--rename", "{topic}.copy", "--commit-interval", "1h")...)
	m.start(t)
	w, others, rolling := newAuthor(t, k, topic, "a", "b", "c", "d"), newAuthor(t, k, topic, "e", "f"), newAuthor(t, k, topic, "rolling")
	copied, count := []kept{}, func(of *author, n int) {
		of.must(t, n)
		w.next, others.next, rolling.next = of.next, of.next, of.next
	}
	for range 5 {
		count(w, 2000)
		m.caughtUp(t, topic)
		m.kill(t)
		copied = readAll(t, k, to)
		before := len(readAll(t, k, topic))
		require.Eventually(t, func() bool {
			count(rolling, 1) // since the newest segment is never cleaned
			return len(readAll(t, k, topic)) < before/2
		}, time.Minute, 300*time.Millisecond, "the cleaner has left all records")
		left := readAll(t, k, topic)
		count(others, 500)
		m.start(t)
		m.caughtUp(t, topic)
		t.Logf("of %d records %d were left", w.next-500, len(left))
	}
	_, told := get(t, m.api(t)+"/api/v1/events")
	require.NotContains(t, told, "range_skipped")
	m.stop(t)
	all, seen, last := readAll(t, k, to), map[int]int{}, -1
	require.Equal(t, copied, all[:len(copied)], "what was copied before the mirror died")
	for _, r := range all {
		seen[r.number]++
		require.Greater(t, r.number, last, "twice, or out of order")
		last = r.number
	}
	for _, r := range readAll(t, k, topic) {
		require.Equal(t, 1, seen[r.number], "record %d, which the source has", r.number)
	}
}

// TestKilledWhereTheTargetDoesNotSayWhatItHas: the target's brokers know no DescribeProducers (KIP-664), as those before Kafka 2.8, so that its log
// must tell what is stored beyond the checkpoint.
func TestKilledWhereTheTargetDoesNotSayWhatItHas(t *testing.T) {
	t.Parallel()
	src := kafkatest.Shared(t, kafkatest.Kafka3)
	dst := kafkatest.Start(t, kafkatest.Options{Version: kafkatest.Kafka3, Proxy: true, Heap: "192m"})
	dst.Broker(0).Proxy().LimitVersions(map[int16]int16{int16(kmsg.DescribeProducers): -1})
	const topic = "taciturn"
	src.CreateTopic(t, topic, 3, nil)
	m := newMirrorer(t, "mirror", between(src.Bootstrap(), dst.ProxyBootstrap(), topic)...)
	m.start(t)
	m.flowing(t, src, topic)
	f := startFeed(t, src.Bootstrap(), topic, 3000)
	for round := range rounds(5, 50) {
		pass(t, upTo(time.Second))
		m.kill(t)
		m.start(t, "--commit-interval", []string{"1h", "300ms"}[round%2])
		m.api(t)
	}
	written := f.end(t)
	m.caughtUp(t, topic)
	m.stop(t)
	requireCopy(t, src.Bootstrap(), dst.Bootstrap(), topic, "", written)
}
