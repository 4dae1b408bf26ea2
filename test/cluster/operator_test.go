package cluster_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/causeway-mirror/causeway/helix"
	"github.com/causeway-mirror/causeway/internal/kafkad"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// send calls the controller once.
func (b *boss) send(t *testing.T, method, path, body string) (code int, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, b.base+path, strings.NewReader(body))
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(text)
}

// shown is what an API says of a topic's partitions: state and acked offset.
func shown(t *testing.T, base, topic string) (states []string, acked int64) {
	t.Helper()
	var list struct {
		Items []struct {
			State string `json:"state"`
			Acked int64  `json:"acked"`
		} `json:"items"`
	}
	code, body := get(t, base+"/api/v1/partitions?topic="+topic)
	if code == http.StatusOK {
		require.NoError(t, json.Unmarshal([]byte(body), &list))
	}
	for _, p := range list.Items {
		states = append(states, p.State)
		acked += max(p.Acked, 0)
	}
	return states, acked
}

// desk is a cluster with one worker and a leader, and a topic of two partitions that it mirrors.
type desk struct {
	*lab

	look  *helix.Session
	boss  *boss
	one   *worker
	topic string
}

func newDesk(t *testing.T, topic string, limit int) *desk {
	t.Helper()
	l := &lab{kafka: kafkatest.Shared(t, kafkatest.Kafka3), zookeeper: kafkatest.SharedZooKeeper(t), cluster: strings.ToLower(t.Name())}
	d := &desk{lab: l, one: newWorker(t, "one", nativeFile(l, "one", l.zookeeper.Addr())), topic: topic}
	var err error
	d.look, err = helix.Open(t.Context(), helix.Config{
		ZooKeeper: l.zookeeper.Addr(), Cluster: helix.Cluster(l.cluster), SessionTimeout: time.Minute,
	}, hclog.NewNullLogger())
	require.NoError(t, err)
	t.Cleanup(d.look.Close)
	ports, err := kafkad.FreePorts(1)
	require.NoError(t, err)
	// the worker's file does for the controller, too, but for its port
	file := strings.ReplaceAll(nativeFile(l, "boss", l.zookeeper.Addr()), "127.0.0.1:0", kafkad.Loopback(ports[0])) + "controller: {id: boss, lag_interval: 1s}\n"
	d.boss = &boss{worker: newWorker(t, "boss", file), base: "http://" + kafkad.Loopback(ports[0])}
	d.kafka.CreateTopic(t, topic, 2, nil)
	d.kafka.CreateTopic(t, topic+".copy", 2, map[string]string{"max.message.bytes": strconv.Itoa(limit)})
	d.boss.start(t)
	d.one.start(t)
	d.one.ready(t)
	d.boss.post(t, "/topics", fmt.Sprintf(`{"topic":%q,"numPartitions":2}`, topic), http.StatusOK)
	return d
}

// copied counts the records of the copy.
func (d *desk) copied(t *testing.T) (sum int64) {
	t.Helper()
	ends, err := kadm.NewClient(d.kafka.Client(t)).ListEndOffsets(t.Context(), d.topic+".copy")
	require.NoError(t, err)
	require.NoError(t, ends.Error())
	ends.Each(func(o kadm.ListedOffset) { sum += o.Offset })
	return sum
}

// ask calls about the topic, or what is below it.
func (d *desk) ask(t *testing.T, method, below, body string) {
	t.Helper()
	code, answer := d.boss.send(t, method, "/api/v1/topics/"+d.topic+below, body)
	require.Equal(t, http.StatusAccepted, code, answer)
}

func (d *desk) load(t *testing.T, first, records int) {
	t.Helper()
	kafkatest.Load(t, d.kafka.Bootstrap(), kafkatest.LoadOptions{Topic: d.topic, First: first, Records: records, ValueBytes: 1000, Codec: "none", BatchBytes: 4 << 10})
}

// awaitCopied waits until the copy has so many records, and fails if it has more.
func (d *desk) awaitCopied(t *testing.T, records int64) {
	t.Helper()
	kafkatest.AwaitRecords(t, d.kafka.Bootstrap(), d.topic+".copy", records, caughtWithin)
	d.boss.caughtUp(t, d.topic)
	require.Equal(t, records, d.copied(t))
}

// commands says whether any waits.
func (d *desk) commands(t *testing.T) bool {
	t.Helper()
	names, err := d.look.Children(t.Context(), "/"+d.cluster+"/PROPERTYSTORE/causeway/commands", nil)
	if err != nil {
		require.ErrorIs(t, err, helix.ErrNotFound)
	}
	return len(names) > 0
}

// TestPartitionIsResetByItsWorker resets a partition to its beginning while it runs, and while nobody runs it: it is copied again, once each time,
// and told.
func TestPartitionIsResetByItsWorker(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "reset-by-worker", 1<<20)
	const records = 1000
	d.load(t, 0, records)
	d.awaitCopied(t, records)
	ends, err := kadm.NewClient(d.kafka.Client(t)).ListEndOffsets(t.Context(), d.topic)
	require.NoError(t, err)
	first, _ := ends.Lookup(d.topic, 0)

	d.ask(t, http.MethodPost, "/partitions/0/reset", `{"to":"earliest"}`)
	d.awaitCopied(t, records+first.Offset)
	require.Eventually(t, func() bool { return !d.commands(t) }, upWithin, 20*time.Millisecond, "the command stays")
	for _, kind := range []string{"checkpoint_overridden", "duplicates_possible"} {
		_, body := get(t, d.one.api(t)+"/api/v1/events?type="+kind)
		require.Contains(t, body, `"topic":"reset-by-worker"`)
		require.Contains(t, body, fmt.Sprintf("reset to earliest; it was %d", first.Offset))
	}

	// nobody is there to do it: it waits, and is done once although the worker comes twice
	d.one.stop(t)
	d.ask(t, http.MethodPost, "/partitions/0/reset", `{"to":"earliest"}`)
	pass(t, time.Second)
	require.True(t, d.commands(t))
	d.one.start(t)
	require.Eventually(t, func() bool { return !d.commands(t) }, upWithin, 20*time.Millisecond)
	d.one.stop(t)
	d.one.start(t)
	d.load(t, records, records)
	d.awaitCopied(t, 2*records+2*first.Offset)

	// killed in the middle of it, at any time: once as well
	d.ask(t, http.MethodPost, "/partitions/0/reset", `{"to":0}`)
	pass(t, 30*time.Millisecond)
	d.one.kill(t)
	d.one.start(t)
	ends, err = kadm.NewClient(d.kafka.Client(t)).ListEndOffsets(t.Context(), d.topic)
	require.NoError(t, err)
	second, _ := ends.Lookup(d.topic, 0)
	d.awaitCopied(t, 2*records+2*first.Offset+second.Offset)

	// what can't be is refused where it is known
	code, answer := d.boss.send(t, http.MethodPost, "/api/v1/topics/"+d.topic+"/partitions/0/reset", `{"to":1000000}`)
	require.Equal(t, http.StatusUnprocessableEntity, code)
	require.Contains(t, answer, "to: 1000000: the source ends at")
	for _, below := range []string{d.topic + "/partitions/2", "nowhere/partitions/0"} {
		code, answer = d.boss.send(t, http.MethodPost, "/api/v1/topics/"+below+"/reset", `{"to":"latest"}`)
		require.Equal(t, http.StatusNotFound, code, answer)
	}
}

// TestHaltedPartitionIsRetriedAtOnce: an operator need not wait for the worker's own timer.
func TestHaltedPartitionIsRetriedAtOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "retried-at-once", 3000)
	cl := d.kafka.Client(t, kgo.DefaultProduceTopic(d.topic), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression()))
	require.NoError(t, cl.ProduceSync(t.Context(), &kgo.Record{Value: make([]byte, 10_000), Partition: 1}).FirstErr())
	require.Eventually(t, func() bool { return d.one.states(t)["halted"] == 1 }, upWithin, 20*time.Millisecond)
	changed, err := kadm.NewClient(cl).AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Name: "max.message.bytes", Value: new("100000")}}, d.topic+".copy")
	require.NoError(t, err)
	require.NoError(t, changed[0].Err)
	require.Eventually(t, func() bool {
		d.ask(t, http.MethodPost, "/partitions/1/retry", "")
		return d.one.states(t)["mirroring"] == 2
	}, 5*time.Second, 500*time.Millisecond, "its own timer is twice as slow")
	d.awaitCopied(t, 1)
}

// TestLimitsAndPausesHoldOverRestarts sets a limit and a pause, and has the worker killed: they hold until they are taken back.
func TestLimitsAndPausesHoldOverRestarts(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "limits-hold", 1<<20)
	const limit, records = 100, 20_000
	d.ask(t, http.MethodPut, "/limits", fmt.Sprintf(`{"records_per_second":%d}`, limit))
	d.load(t, 0, records)
	slow := func() { // soon, and as long as there is more to copy
		t.Helper()
		for deadline := time.Now().Add(upWithin); ; {
			began := time.Now()
			_, before := shown(t, d.one.api(t), d.topic)
			pass(t, 3*time.Second)
			_, after := shown(t, d.one.api(t), d.topic)
			require.Less(t, after, int64(records), "all was copied in no time")
			if after > before && float64(after-before)/time.Since(began).Seconds() < 3*limit {
				return
			}
			require.True(t, time.Now().Before(deadline), "%d records after %d in %v", after, before, time.Since(began))
		}
	}
	slow()
	d.one.kill(t)
	d.one.start(t)
	slow()

	// paused: nothing moves, also not on a worker that begins with it
	d.ask(t, http.MethodPost, "/partitions/1/pause", "")
	d.ask(t, http.MethodPost, "/pause", "")
	paused := func(base string) func() bool {
		return func() bool { states, _ := shown(t, base, d.topic); return strings.Join(states, " ") == "paused paused" }
	}
	require.Eventually(t, paused(d.boss.base), upWithin, 20*time.Millisecond)
	d.ask(t, http.MethodPut, "/limits", `{"records_per_second":0}`)
	d.one.kill(t)
	d.one.start(t)
	require.Eventually(t, func() bool { return d.one.states(t)["paused"] == 1 }, upWithin, 20*time.Millisecond)
	held := d.copied(t)
	pass(t, 2*time.Second)
	require.Equal(t, held, d.copied(t), "copies although it is paused")

	// the topic goes on, and the partition that was paused by itself does not
	d.ask(t, http.MethodPost, "/resume", "")
	require.Eventually(t, func() bool {
		states, _ := shown(t, d.boss.base, d.topic)
		return strings.Join(states, " ") == "mirroring paused"
	}, upWithin, 20*time.Millisecond)
	require.Equal(t, map[string]int{"mirroring": 1}, d.one.states(t))
	d.ask(t, http.MethodPost, "/partitions/1/resume", "")
	d.boss.caughtUp(t, d.topic)
	d.requireCopy(t, d.topic, records)
}
