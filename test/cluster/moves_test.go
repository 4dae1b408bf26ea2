package cluster_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/causeway-mirror/causeway/internal/testkit"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// rounds is how often something is done: more often in long runs.
func rounds(short, long int) int {
	if testkit.Long() {
		return long
	}
	return short
}

// crew starts a controller and so many workers in a cluster of their own.
func crew(t *testing.T, workers int) (l *lab, b *boss, all []*worker) {
	t.Helper()
	l = &lab{kafka: kafkatest.Shared(t, kafkatest.Kafka3), zookeeper: kafkatest.SharedZooKeeper(t), cluster: strings.ToLower(t.Name())}
	b = newBoss(t, l, "boss", l.zookeeper.Addr())
	b.start(t)
	for i := range workers {
		id := fmt.Sprintf("w_%d", i+1)
		w := newWorker(t, id, nativeFile(l, id, l.zookeeper.Addr()))
		w.start(t)
		all = append(all, w)
	}
	for _, w := range all {
		w.ready(t)
	}
	return l, b, all
}

// owners are the workers of a topic's partitions, as the controller has it from them.
func (b *boss) owners(t *testing.T, topic string) map[int]string {
	t.Helper()
	var list struct {
		Items []struct {
			Partition int    `json:"partition"`
			Worker    string `json:"worker"`
		} `json:"items"`
	}
	if code, body := get(t, b.base+"/api/v1/partitions?limit=1000&topic="+topic); code == http.StatusOK {
		require.NoError(t, json.Unmarshal([]byte(body), &list))
	}
	ids := map[int]string{}
	for _, p := range list.Items {
		ids[p.Partition] = p.Worker
	}
	return ids
}

// TestC12MovedAgainAndAgain moves partitions from worker to worker through the API while records flow: each partition has all of its records once.
func TestC12MovedAgainAndAgain(t *testing.T) {
	t.Parallel()
	l, b, workers := crew(t, 3)
	const topic, parts = "moved", 12
	l.kafka.CreateTopic(t, topic, parts, nil)
	f := l.startFeed(t, topic, 1000)
	b.post(t, "/topics", fmt.Sprintf(`{"topic":%q,"numPartitions":%d}`, topic, parts), http.StatusOK)
	b.caughtUp(t, topic)
	want := b.owners(t, topic)
	require.Len(t, want, parts)
	for i := range rounds(5, 50) {
		p := i % parts
		next := workers[rand.IntN(len(workers))]
		for next.id == want[p] {
			next = workers[rand.IntN(len(workers))]
		}
		want[p] = next.id
		code, answer := b.send(t, http.MethodPost, fmt.Sprintf("/api/v1/topics/%s/partitions/%d/move", topic, p), fmt.Sprintf(`{"worker":%q}`, next.id))
		require.Equal(t, http.StatusAccepted, code, answer)
		pass(t, 100*time.Millisecond)
	}
	require.Eventually(t, func() bool { return maps.Equal(b.owners(t, topic), want) }, upWithin, 50*time.Millisecond, "not everything has moved")
	written := f.end(t)
	b.caughtUp(t, topic)
	l.requireCopy(t, topic, written)
	for _, w := range workers {
		w.stop(t)
	}
	l.requireCopy(t, topic, written)
}

// counted are the partitions by state, as the controller's metric has them.
func (b *boss) counted(t *testing.T) map[string]string {
	t.Helper()
	states := map[string]string{}
	_, body := get(t, b.base+"/metrics")
	for _, found := range regexp.MustCompile(`causeway_controller_partitions\{[^}]*state="(\w+)"\} (\S+)\n`).FindAllStringSubmatch(body, -1) {
		states[found[1]] = found[2]
	}
	return states
}

// ends are a topic's end offsets by partition; nil while the topic is not whole.
func (l *lab) ends(t *testing.T, topic string) (all []int64) {
	t.Helper()
	list, err := kadm.NewClient(l.kafka.Client(t)).ListEndOffsets(t.Context(), topic)
	require.NoError(t, err)
	if list.Error() != nil {
		return nil
	}
	for p := range int32(len(list[topic])) {
		end, _ := list.Lookup(topic, p)
		all = append(all, end.Offset)
	}
	return all
}

// advance waits until each partition of a topic has records behind its former end, and returns how long that took.
func (l *lab) advance(t *testing.T, topic string, former []int64, within time.Duration) time.Duration {
	t.Helper()
	for began := time.Now(); ; pass(t, 100*time.Millisecond) {
		behind := len(former)
		for p, end := range l.ends(t, topic) {
			if end > former[p] {
				behind--
			}
		}
		if behind == 0 {
			return time.Since(began)
		}
		require.Less(t, time.Since(began), within, "%d of %d partitions do not advance", behind, len(former))
	}
}

// TestC9AllPartitionsAdvanceAfterEachDeath kills one of three workers again and again: soon after each death every partition advances.
func TestC9AllPartitionsAdvanceAfterEachDeath(t *testing.T) {
	t.Parallel()
	l, b, workers := crew(t, 3)
	const topic, parts = "deaths", 300
	l.kafka.CreateTopic(t, topic, parts, nil)
	// A broker waits for the disk at the first entry of a partition's index, and everybody with it: that is over when this is copied.
	kafkatest.Load(t, l.kafka.Bootstrap(), kafkatest.LoadOptions{Topic: topic, Records: 20 * parts, ValueBytes: 1000, Codec: "none", BatchBytes: 4 << 10})
	b.post(t, "/topics", fmt.Sprintf(`{"topic":%q,"numPartitions":%d}`, topic, parts), http.StatusOK)
	b.caughtUp(t, topic)
	f := l.startFeed(t, topic, 900)
	within := upWithin // other tests keep the machine busy meanwhile
	if testkit.Long() {
		within = 15 * time.Second
	}
	for round := range rounds(2, 20) {
		w := workers[rand.IntN(len(workers))]
		w.kill(t)
		pass(t, 5*time.Second)
		w.start(t)
		took := l.advance(t, topic+".copy", l.ends(t, topic+".copy"), within)
		t.Logf("round %d: all %d advance after %v", round, parts, took.Round(10*time.Millisecond))
	}
	want := map[string]string{"all": strconv.Itoa(parts), "online": strconv.Itoa(parts), "offline": "0", "error": "0"}
	for deadline := time.Now().Add(upWithin); !maps.Equal(b.counted(t), want); pass(t, 200*time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "the controller counts partitions that nobody mirrors: %v", b.counted(t))
	}
	written := f.end(t)
	b.caughtUp(t, topic)
	l.requireCopy(t, topic, written)
	for _, w := range workers {
		w.stop(t)
	}
}
