package walkthrough_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/helix"
	"github.com/causeway-mirror/causeway/internal/kafkad"
	"github.com/causeway-mirror/causeway/test/helix/peers"
	"github.com/causeway-mirror/causeway/test/kafkatest"
	"github.com/causeway-mirror/causeway/test/transcript"
)

// session is that of the old processes: short, or waiting for its end would take long.
const session = 6 * time.Second

// leave writes the offsets that uReplicator has committed when it is replaced.
func leave(t *testing.T, zookeeper, topic string, offsets ...int) {
	t.Helper()
	s, err := helix.Open(t.Context(), helix.Config{ZooKeeper: zookeeper, Cluster: "mirrors", SessionTimeout: time.Minute}, hclog.NewNullLogger())
	require.NoError(t, err)
	defer s.Close()
	for p, offset := range offsets {
		require.NoError(t, s.CreateAll(t.Context(), "/consumers/mirror-group/offsets/"+topic+"/"+strconv.Itoa(p), []byte(strconv.Itoa(offset))))
	}
}

// TestUReplicatorIsReplaced walks docs/migrate-from-ureplicator.md: in a cluster that Helix 0.6.8 leads, with its participants, the workers are
// replaced one by one and then the controller. What uReplicator has committed does not come again, and what it has not comes once.
func TestUReplicatorIsReplaced(t *testing.T) {
	peers.Require(t)
	kafka := kafkatest.Shared(t, kafkatest.Kafka3)
	zookeeper := kafka.ZooKeeper().Addr()
	ports, err := kafkad.FreePorts(3)
	require.NoError(t, err)
	first, second, controller := strconv.Itoa(ports[0]), strconv.Itoa(ports[1]), strconv.Itoa(ports[2])
	s := newSite(t, "migrate-from-ureplicator.md",
		"zk1:2181", zookeeper, "kafka-a:9092", kafka.Bootstrap()[0], "kafka-b:9092", kafka.Bootstrap()[0],
		"mirror-1:8090", kafkad.Loopback(ports[0]), "mirror-2:8090", kafkad.Loopback(ports[1]), "controller-1:9000", kafkad.Loopback(ports[2]),
	)
	kafka.CreateTopic(t, "orders", 2, nil)
	kafka.CreateTopic(t, "payments", 2, nil)
	kafka.CreateTopic(t, "refunds", 1, nil)
	written := kafkatest.Load(t, kafka.Bootstrap(), kafkatest.LoadOptions{Topic: "orders", Records: 400, Keys: -1}).Committed
	leave(t, zookeeper, "orders", 150, 120)
	const committed = 150 + 120

	// what stands there before: a controller and two workers of Helix 0.6.8
	java := peers.Start(t, peers.Helix06, zookeeper, session)
	admin := java.Admin(t, "mirrors")
	admin.AddCluster(map[string]string{"allowParticipantAutoJoin": "true"})
	leader := java.Controller(t, "mirrors", "old_1")
	old := []*peers.Participant{java.Participant(t, "mirrors", "mirror_1"), java.Participant(t, "mirrors", "mirror_2")}
	owners := map[string]map[string]string{"0": {"mirror_1": "ONLINE"}, "1": {"mirror_2": "ONLINE"}}
	admin.AddResource("orders", peers.Record{Simple: map[string]string{"REPLICAS": "1"}, Replicas: owners})
	off := map[string]map[string]string{"0": {"mirror_1": "OFFLINE"}}
	admin.AddResource("refunds", peers.Record{Simple: map[string]string{"REPLICAS": "1"}, Replicas: off})
	settled := func() {
		t.Helper()
		require.Eventually(t, func() bool {
			view := admin.ExternalView("orders").Replicas
			return view["0"]["mirror_1"] == "ONLINE" && view["1"]["mirror_2"] == "ONLINE" && len(view["0"]) == 1 && len(view["1"]) == 1
		}, patience, often)
	}
	settled()
	more := func() {
		t.Helper()
		written += kafkatest.Load(t, kafka.Bootstrap(), kafkatest.LoadOptions{Topic: "orders", First: int(written), Records: 100, Keys: -1}).Committed
	}

	blocks := s.section(t, "One worker", 2)
	old[0].Stop()
	s.start(t, "mirror_1", blocks[0][0], "-worker_port\x008090", "-worker_port\x00"+first)
	s.do(t, blocks[1])
	settled()
	more()

	ready := s.section(t, "The other workers", 1)
	old[1].Stop()
	s.start(t, "mirror_2", blocks[0][0], "-worker_port\x008090", "-worker_port\x00"+second, "instanceId=mirror_1", "instanceId=mirror_2")
	s.do(t, ready[0])
	settled()
	more()

	blocks = s.section(t, "The controllers", 3)
	s.start(t, "controller_1", blocks[0][0], "-port\x009000", "-port\x00"+controller)
	s.do(t, blocks[1])
	leader.Stop()
	s.do(t, blocks[2])
	more()

	s.do(t, s.section(t, "Automation", 1)[0])
	require.Empty(t, s.blocks, "commands that no test runs")
	more()
	kafkatest.AwaitRecords(t, kafka.Bootstrap(), "sjc1.orders", written-committed, patience)
	require.Eventually(t, func() bool {
		_, body := fetch(t, "GET", kafkad.Loopback(ports[2])+"/validation", "")
		return strings.Contains(body, `"numOnlineTopicPartitions":4`) && strings.Contains(body, `"numErrorTopicPartitions":0`)
	}, patience, often)
	require.Equal(t, written-committed, records(t, kafka, "sjc1.orders"), "each record that uReplicator has not committed, once")
}

// TestDifferencesAreDocumented finds each difference that the transcript of uReplicator's answers allows in the document's table.
func TestDifferencesAreDocumented(t *testing.T) {
	allowed, err := transcript.Differences("../transcript/testdata/differences.tsv")
	require.NoError(t, err)
	require.NotEmpty(t, allowed)
	section := tableOf(t, "migrate-from-ureplicator.md", "Differences of the REST")
	for _, d := range allowed {
		resource, _, _ := strings.Cut(strings.Trim(d.Path, "/"), "?")
		resource, rest, _ := strings.Cut(resource, "/")
		call := d.Method + " /" + resource
		if resource == "offset" && rest != "" {
			call += "/{topic}/{partition}"
		}
		require.Contains(t, section, "`"+call+"`", "line %d of differences.tsv", d.Line)
	}
}

// tableOf is the text below a heading of a document.
func tableOf(t *testing.T, name, heading string) string {
	t.Helper()
	text := documentText(t, name)
	_, rest, found := strings.Cut(text, "\n## "+heading+"\n")
	require.True(t, found, heading)
	if end := regexp.MustCompile(`(?m)^## `).FindStringIndex(rest); end != nil {
		rest = rest[:end[0]]
	}
	return rest
}
