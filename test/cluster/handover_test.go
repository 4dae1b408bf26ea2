package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// handoverPause is how much longer than in undisturbed time a partition's copy may stand in a test, where the machine does much else. What it is to be
// is measured by the benchmark.
const handoverPause = time.Second

// pulse is a steady stream into a topic, and when its copy's partitions advanced.
type pulse struct {
	mu    sync.Mutex
	beats [][]time.Time // guarded by mu; by partition
	fault error         // guarded by mu
}

// startPulse writes and reads until end is called.
func (l *lab) startPulse(t *testing.T, topic string, partitions, rate int) (p *pulse, end func()) {
	t.Helper()
	p = &pulse{beats: make([][]time.Time, partitions)}
	reader, err := kgo.NewClient(kgo.SeedBrokers(l.kafka.Bootstrap()...), kgo.ConsumeTopics(topic+".copy"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(t, err)
	feeding, stopFeed := context.WithCancel(t.Context())
	reading, stopRead := context.WithCancel(t.Context())
	var work sync.WaitGroup
	work.Go(func() {
		_, err := kafkatest.Generate(feeding, l.kafka.Bootstrap(), kafkatest.LoadOptions{Topic: topic, Records: 3600 * rate, Rate: rate})
		if !errors.Is(err, context.Canceled) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.fault = err
		}
	})
	var read sync.WaitGroup
	read.Go(func() {
		for reading.Err() == nil {
			fetches := reader.PollFetches(reading)
			now := time.Now()
			p.mu.Lock()
			fetches.EachPartition(func(part kgo.FetchTopicPartition) {
				if len(part.Records) > 0 {
					p.beats[part.Partition] = append(p.beats[part.Partition], now)
				}
			})
			p.mu.Unlock()
		}
	})
	end = sync.OnceFunc(func() {
		stopFeed()
		work.Wait()
		stopRead()
		read.Wait()
		reader.Close()
	})
	t.Cleanup(end)
	return p, end
}

// longest is the longest time from a moment to another in which a partition did not advance.
func (p *pulse) longest(from, to time.Time) (longest time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, beats := range p.beats {
		last := from
		for _, at := range append(slices.Clone(beats), to) {
			if at.After(from) && !at.After(to) {
				longest, last = max(longest, at.Sub(last)), at
			}
		}
	}
	return longest
}

// amended gives a process another configuration before it starts.
func (w *worker) amended(t *testing.T, pairs ...string) {
	t.Helper()
	path := filepath.Join(w.dir, "causeway.yaml")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte(strings.NewReplacer(pairs...).Replace(string(text))), 0o600))
}

// TestMoveWithOverlapPausesNothing moves the partitions of a topic between two workers under load, where the old owner stays until the new one has begun.
func TestMoveWithOverlapPausesNothing(t *testing.T) {
	t.Parallel()
	l := &lab{kafka: kafkatest.Shared(t, kafkatest.Kafka3), zookeeper: kafkatest.SharedZooKeeper(t), cluster: strings.ToLower(t.Name())}
	b := newBoss(t, l, "boss", l.zookeeper.Addr())
	b.amended(t, "controller: {", "controller: {rebalance: {handover: overlap}, ")
	b.start(t)
	const topic, parts = "overlapped", 4
	workers := map[string]*worker{}
	for _, id := range []string{"w_1", "w_2"} {
		w := newWorker(t, id, nativeFile(l, id, l.zookeeper.Addr())+"controller: {rebalance: {handover: overlap}}\n")
		w.start(t)
		workers[id] = w
	}
	for _, w := range workers {
		w.ready(t)
	}
	l.kafka.CreateTopic(t, topic, parts, nil)
	p, end := l.startPulse(t, topic, parts, 400)
	b.post(t, "/topics", fmt.Sprintf(`{"topic":%q,"numPartitions":%d}`, topic, parts), http.StatusOK)
	require.Eventually(t, func() bool { return len(b.owners(t, topic)) == parts }, upWithin, 50*time.Millisecond)
	b.caughtUp(t, topic)
	for round := range rounds(1, 10) {
		const lasts = 4 * time.Second
		calm := time.Now()
		pass(t, lasts)
		began := time.Now()
		for part, owner := range b.owners(t, topic) {
			to := map[string]string{"w_1": "w_2", "w_2": "w_1"}[owner]
			code, answer := b.send(t, http.MethodPost, fmt.Sprintf("/api/v1/topics/%s/partitions/%d/move", topic, part), fmt.Sprintf(`{"worker":%q}`, to))
			require.Equal(t, http.StatusAccepted, code, answer)
		}
		pass(t, time.Until(began.Add(lasts)))
		usual, moved := p.longest(calm, began), p.longest(began, began.Add(lasts))
		t.Logf("round %d: longest pause %v, undisturbed %v", round, moved.Round(time.Millisecond), usual.Round(time.Millisecond))
		require.Less(t, moved, usual+handoverPause)
		require.Eventually(t, func() bool {
			n := 0
			for _, w := range workers {
				n += w.states(t)["mirroring"]
			}
			return n == parts
		}, upWithin, 50*time.Millisecond, "an old owner has stayed")
	}
	end()
	b.caughtUp(t, topic)
	l.requireCopy(t, topic, 1)
}

// TestKilledWorkerOfAHotStandbyTopicPausesNothing kills one worker of each pair: the other one goes on long before anybody knows of the death.
func TestKilledWorkerOfAHotStandbyTopicPausesNothing(t *testing.T) {
	t.Parallel()
	l := &lab{kafka: kafkatest.Shared(t, kafkatest.Kafka3), zookeeper: kafkatest.SharedZooKeeper(t), cluster: strings.ToLower(t.Name())}
	const topic, parts = "hot", 3
	pairs := []string{`rename: "{topic}.copy"`, `rename: "{topic}.copy", overrides: {hot: {replicas: 2}}`}
	b := newBoss(t, l, "boss", l.zookeeper.Addr())
	b.amended(t, pairs...)
	b.start(t)
	workers := map[string]*worker{}
	for _, id := range []string{"w_1", "w_2", "w_3"} {
		w := newWorker(t, id, nativeFile(l, id, l.zookeeper.Addr()))
		w.amended(t, pairs...)
		w.start(t)
		workers[id] = w
	}
	for _, w := range workers {
		w.ready(t)
	}
	l.kafka.CreateTopic(t, topic, parts, nil)
	p, end := l.startPulse(t, topic, parts, 300)
	b.post(t, "/topics", fmt.Sprintf(`{"topic":%q,"numPartitions":%d}`, topic, parts), http.StatusOK)
	paired := func() bool {
		n := 0
		for _, w := range workers {
			n += w.states(t)["mirroring"]
		}
		return n == 2*parts
	}
	for round := range rounds(1, 10) {
		require.Eventually(t, paired, upWithin, 50*time.Millisecond, "not every partition has two workers")
		b.caughtUp(t, topic)
		const lasts = session - time.Second // so that the others have not been told yet
		calm := time.Now()
		pass(t, lasts)
		began := time.Now()
		dead := workers[b.owners(t, topic)[0]]
		dead.kill(t)
		pass(t, time.Until(began.Add(lasts)))
		usual, after := p.longest(calm, began), p.longest(began, began.Add(lasts))
		t.Logf("round %d: longest pause %v, undisturbed %v", round, after.Round(time.Millisecond), usual.Round(time.Millisecond))
		require.Less(t, after, usual+handoverPause)
		delete(workers, dead.id)
		require.Eventually(t, paired, upWithin, 50*time.Millisecond, "the dead worker has no successor")
		workers[dead.id] = dead
		dead.start(t)
	}
	end()
	b.caughtUp(t, topic)
	l.requireCopy(t, topic, 1)
}
