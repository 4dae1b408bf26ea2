package cluster_test

import (
	"context"
	"encoding/json"
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

	"github.com/causeway-mirror/causeway/internal/kafkad"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// leaveIdealState writes a topic as uReplicator's controller has it: owners are by partition, "-" before one takes the partition off.
func (l *lab) leaveIdealState(t *testing.T, topic string, owners ...string) {
	t.Helper()
	parts := map[string]map[string]string{}
	for p, owner := range owners {
		state := "ONLINE"
		if id, off := strings.CutPrefix(owner, "-"); off {
			owner, state = id, "OFFLINE"
		}
		parts[strconv.Itoa(p)] = map[string]string{owner: state}
	}
	n := strconv.Itoa(len(owners))
	l.leave(t, "/"+l.cluster+"/IDEALSTATES/"+topic, map[string]any{
		"id": topic, "mapFields": parts, "listFields": map[string]any{},
		"simpleFields": map[string]string{
			"IDEAL_STATE_MODE": "CUSTOMIZED", "MAX_PARTITIONS_PER_INSTANCE": n, "NUM_PARTITIONS": n, "REBALANCE_MODE": "CUSTOMIZED", "REPLICAS": "1",
			"STATE_MODEL_DEF_REF": "OnlineOffline", "STATE_MODEL_FACTORY_NAME": "DEFAULT",
		},
	})
}

// leaveWorker writes a worker's configuration as Helix 0.6.8 has it, and the folders that every participant finds.
func (l *lab) leaveWorker(t *testing.T, id string, tags ...string) {
	t.Helper()
	host, port, _ := strings.Cut(id, "_")
	l.leave(t, "/"+l.cluster+"/CONFIGS/PARTICIPANT/"+id, map[string]any{
		"id": id, "mapFields": map[string]any{}, "listFields": map[string]any{"TAG_LIST": append([]string{}, tags...)},
		"simpleFields": map[string]string{"HELIX_ENABLED": "true", "HELIX_HOST": host, "HELIX_PORT": port},
	})
	for _, folder := range []string{"MESSAGES", "CURRENTSTATES", "ERRORS", "STATUSUPDATES"} {
		require.NoError(t, l.session.CreateAll(t.Context(), "/"+l.cluster+"/INSTANCES/"+id+"/"+folder, nil))
	}
}

func (l *lab) leave(t *testing.T, path string, record map[string]any) {
	t.Helper()
	text, err := json.MarshalIndent(record, "", "  ")
	require.NoError(t, err)
	require.NoError(t, l.session.CreateAll(t.Context(), path, text))
}

// values reads a topic to its end: the values of each partition, in order.
func values(t *testing.T, kafka *kafkatest.Cluster, topic string, records int) map[int32][]string {
	t.Helper()
	all := map[int32][]string{}
	if records == 0 {
		return all
	}
	cl := kafka.Client(t, kgo.ConsumeTopics(topic))
	ctx, cancel := context.WithTimeout(t.Context(), caughtWithin)
	defer cancel()
	for n := 0; n < records; {
		fetches := cl.PollFetches(ctx)
		require.NoError(t, ctx.Err(), "%s has %d records, not %d", topic, n, records)
		fetches.EachRecord(func(r *kgo.Record) {
			all[r.Partition] = append(all[r.Partition], string(r.Value))
			n++
		})
	}
	return all
}

// total counts a topic's records.
func total(t *testing.T, kafka *kafkatest.Cluster, topic string) (sum int64) {
	t.Helper()
	ends, err := kadm.NewClient(kafka.Client(t)).ListEndOffsets(t.Context(), topic)
	require.NoError(t, err)
	require.NoError(t, ends.Error())
	ends.Each(func(o kadm.ListedOffset) { sum += o.Offset })
	return sum
}

// TestTreeOfUReplicatorIsTakenOver starts a controller and three workers, by uReplicator's options, on a ZooKeeper as it leaves it: topics with
// their owners, offsets, a partition, a topic and a worker on the black lists. Each partition goes on where it was: nothing is copied from the
// start, nothing is left out, and what was on a black list stays there.
func TestTreeOfUReplicatorIsTakenOver(t *testing.T) {
	t.Parallel()
	kafka := kafkatest.Start(t, kafkatest.Options{Version: kafkatest.Kafka3}) // topics are discovered, and others' would be, too
	zookeeper := kafka.ZooKeeper()
	l := &lab{kafka: kafka, zookeeper: zookeeper, servers: zookeeper.Addr(), cluster: "taken"}
	l.setUp(t)
	left := map[string][]int{"orders": {150, 120}, "refunds": {20, 30}, "idle": {50}}
	const records = 400 // of each topic
	for _, topic := range []string{"orders", "refunds", "idle", "gone", "found"} {
		kafka.CreateTopic(t, topic, max(1, len(left[topic])), nil)
		kafka.CreateTopic(t, "copy."+topic, max(1, len(left[topic])), nil)
		kafkatest.Load(t, kafka.Bootstrap(), kafkatest.LoadOptions{Topic: topic, Records: records, Keys: -1})
		for p, offset := range left[topic] {
			require.NoError(t, l.session.CreateAll(t.Context(), l.offsetPath(topic, p), []byte(strconv.Itoa(offset))))
		}
	}
	l.leaveIdealState(t, "orders", "w_1", "w_2")
	l.leaveIdealState(t, "refunds", "w_2", "-w_1")
	l.leaveIdealState(t, "idle", "w_1")
	require.NoError(t, l.session.CreateAll(t.Context(), "/taken/BLACKLISTED_TOPICS/gone", nil))
	l.leaveWorker(t, "w_1")
	l.leaveWorker(t, "w_2")
	l.leaveWorker(t, "w_3", "blacklisted")

	ports, err := kafkad.FreePorts(1)
	require.NoError(t, err)
	b := &boss{worker: prepareWorker(t, "ctl"), base: "http://" + kafkad.Loopback(ports[0])}
	b.args = []string{
		"-helixClusterName", "taken", "-zookeeper", l.servers, "-port", strconv.Itoa(ports[0]), "-instanceId", "ctl", "-env", "dc1.taken",
		"-srcKafkaZkPath", l.servers, "-destKafkaZkPath", l.servers, "-groupId", l.cluster, "-enableAutoWhitelist", "true",
		"-patternToExcludeTopics", `copy\..*`, "-initWaitTimeInSeconds", "2", "-refreshTimeInSeconds", "2", "-autoRebalanceDelayInSeconds", "2",
		"-offsetRefreshIntervalInSec", "1", "-localBackupFilePath", filepath.Join(b.dir, "backup"),
	}
	b.start(t)
	var mapping strings.Builder
	for _, topic := range []string{"orders", "refunds", "idle", "gone", "found"} {
		mapping.WriteString(topic + " copy." + topic + "\n")
	}
	var crew []*worker
	for _, id := range []string{"w_1", "w_2", "w_3"} {
		w := prepareWorker(t, id)
		oldFiles(t, l, w, mapping.String())
		file := filepath.Join(w.dir, "consumer.properties")
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(text), "=latest", "=earliest", 1)), 0o600)) // so that a lost offset shows
		w.start(t)
		crew = append(crew, w)
	}
	answers := func(path string, want ...string) {
		t.Helper()
		for deadline := time.Now().Add(upWithin); ; pass(t, 10*poll) {
			code, body := get(t, b.base+path)
			if code == http.StatusOK && !slices.ContainsFunc(want, func(text string) bool { return !strings.Contains(body, text) }) {
				return
			}
			require.True(t, time.Now().Before(deadline), "GET %s: %d %s", path, code, body)
		}
	}
	answers("/topics", "[found, idle, orders, refunds]")
	answers("/blacklist", `{"blacklist":[{"partition":1,"topic":"refunds"}]}`)
	answers("/instances", `"blacklisted":["w_3"]`)
	for _, topic := range []string{"orders", "idle", "found"} {
		b.caughtUp(t, topic)
	}
	copied := func(topic string, from []int) {
		t.Helper()
		source := values(t, kafka, topic, records)
		n := 0
		for p, offset := range from {
			source[int32(p)] = source[int32(p)][offset:]
			n += len(source[int32(p)])
		}
		kafkatest.AwaitRecords(t, kafka.Bootstrap(), "copy."+topic, int64(n), caughtWithin)
		require.EqualValues(t, n, total(t, kafka, "copy."+topic), topic)
		require.Equal(t, source, values(t, kafka, "copy."+topic, n), topic)
	}
	copied("orders", left["orders"])
	copied("idle", left["idle"])
	copied("found", []int{0})
	kafkatest.AwaitRecords(t, kafka.Bootstrap(), "copy.refunds", records/2-20, caughtWithin)
	require.Equal(t, "30", l.stored(t, "refunds", 1), "blacklisted")
	_, owned := get(t, b.base+"/topics/orders")
	require.Contains(t, owned, `"0":{"w_1":"ONLINE"}`, "nothing that runs well moves")
	require.Contains(t, owned, `"1":{"w_2":"ONLINE"}`)
	_, owned = get(t, b.base+"/instances")
	require.NotContains(t, owned, `"w_3":[`)

	b.post(t, "/blacklist?topic=refunds&partition=1&opt=whitelist", "", http.StatusOK)
	copied("refunds", left["refunds"])
	require.Zero(t, total(t, kafka, "copy.gone"), "deleted by an operator, and found again")
	for _, w := range crew {
		require.NoError(t, w.run.Stop())
		require.Equal(t, 0, w.run.ExitCode())
	}
	b.worker.stop(t)
}
