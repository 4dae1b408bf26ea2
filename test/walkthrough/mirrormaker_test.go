package walkthrough_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/internal/kafkad"
	"github.com/causeway-mirror/causeway/internal/testkit"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// byMirrorMaker has MirrorMaker 2 itself copy the records of bills, with the document's properties on a cluster of one broker, and ends it. What it
// then keeps of its positions must be what the document shows.
func byMirrorMaker(t *testing.T, kafka *kafkatest.Cluster, records int64) {
	t.Helper()
	kafkatest.RequireMirrorMaker(t, kafkatest.Kafka4)
	text := documentText(t, "migrate-from-mirrormaker2.md")
	arrow := regexp.MustCompile("(?s)\n```\n(clusters = .*?)```").FindStringSubmatch(text)
	require.NotNil(t, arrow, "the document has no properties of MirrorMaker 2")
	properties := map[string]string{}
	for line := range strings.Lines(arrow[1]) {
		key, value, found := strings.Cut(strings.TrimSpace(line), " = ")
		require.True(t, found, line)
		properties[key] = strings.NewReplacer("kafka-a:9092", kafka.Bootstrap()[0], "kafka-b:9092", kafka.Bootstrap()[0]).Replace(value)
	}
	for _, of := range []string{"", "offset-syncs.topic.", "checkpoints.topic.", "heartbeats.topic.", "config.storage.", "offset.storage.", "status.storage."} {
		properties[of+"replication.factor"] = "1"
	}
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(dir, 0o750))
	mm2, err := kafkatest.MirrorMaker(kafkatest.Kafka4, dir, properties)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, mm2.Kill()) })
	require.NoError(t, mm2.Start())
	kafkatest.AwaitRecords(t, kafka.Bootstrap(), "sjc1.bills", records, 2*patience)
	require.NoError(t, mm2.Stop())

	kept := map[string]string{}
	for _, partition := range kafkatest.Records(t, kafka.Bootstrap(), "mm2-offsets.sjc1.internal") {
		for _, r := range partition {
			if strings.Contains(string(r.Key), `"topic":"bills"`) {
				kept[string(r.Key)] = string(r.Value)
			}
		}
	}
	shown := regexp.MustCompile(`(?m)^(\["MirrorSourceConnector",.*\])\t(.*)$`).FindAllStringSubmatch(text, -1)
	require.Len(t, kept, len(shown))
	for _, line := range shown {
		require.Equal(t, line[2], kept[line[1]], "position of %s", line[1])
	}
}

// TestMirrorMakerIsReplaced walks docs/migrate-from-mirrormaker2.md where MirrorMaker 2 has copied the first 30 records of each partition: what came
// since is copied, and nothing else. MirrorMaker 2 takes half a minute to copy them: at full length it does, and else the copy is put there as it would
// have left it.
func TestMirrorMakerIsReplaced(t *testing.T) {
	kafka := kafkatest.Shared(t, kafkatest.Kafka3)
	ports, err := kafkad.FreePorts(1)
	require.NoError(t, err)
	s := newSite(t, "migrate-from-mirrormaker2.md", "kafka-a:9092", kafka.Bootstrap()[0], "kafka-b:9092", kafka.Bootstrap()[0], "mirror-1:8080", kafkad.Loopback(ports[0]))
	kafka.CreateTopic(t, "bills", 2, nil)
	kafkatest.Load(t, kafka.Bootstrap(), kafkatest.LoadOptions{Topic: "bills", Records: 60})
	if testkit.Long() {
		byMirrorMaker(t, kafka, 60)
	} else {
		kafka.CreateTopic(t, "sjc1.bills", 2, nil)
		kafkatest.Load(t, kafka.Bootstrap(), kafkatest.LoadOptions{Topic: "sjc1.bills", Records: 60})
	}
	kafkatest.Load(t, kafka.Bootstrap(), kafkatest.LoadOptions{Topic: "bills", First: 60, Records: 40})

	blocks := s.section(t, "Go on where it was", 2)
	require.Empty(t, s.blocks, "commands that no test runs")
	s.start(t, "mirror-1", blocks[0][0])
	s.write(t, ".")
	s.do(t, blocks[1][:1])
	require.EqualValues(t, 60, records(t, kafka, "sjc1.bills"), "nothing is copied before the import")
	s.do(t, blocks[1][1:])
	kafkatest.AwaitRecords(t, kafka.Bootstrap(), "sjc1.bills", 100, patience)
	require.EqualValues(t, 100, records(t, kafka, "sjc1.bills"))
	d, err := kafkatest.CompareTopics(t.Context(), kafkatest.Comparison{
		Source: kafka.Bootstrap(), Target: kafka.Bootstrap(), Topic: "bills", ToTopic: "sjc1.bills", IgnoreTimestamps: !testkit.Long(),
	})
	require.NoError(t, err)
	require.True(t, d.Equal(), d.String())
}
