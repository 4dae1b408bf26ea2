package walkthrough_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/internal/kafkad"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// TestMirrorMakerIsReplaced walks docs/migrate-from-mirrormaker2.md where MirrorMaker 2 has copied the first 30 records of each partition: what came
// since is copied, and nothing else.
func TestMirrorMakerIsReplaced(t *testing.T) {
	kafka := kafkatest.Shared(t, kafkatest.Kafka3)
	ports, err := kafkad.FreePorts(1)
	require.NoError(t, err)
	s := newSite(t, "migrate-from-mirrormaker2.md", "kafka-a:9092", kafka.Bootstrap()[0], "kafka-b:9092", kafka.Bootstrap()[0], "mirror-1:8080", kafkad.Loopback(ports[0]))
	for _, topic := range []string{"bills", "sjc1.bills"} { // the copy is as MirrorMaker 2 left it
		kafka.CreateTopic(t, topic, 2, nil)
		kafkatest.Load(t, kafka.Bootstrap(), kafkatest.LoadOptions{Topic: topic, Records: 60})
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
		Source: kafka.Bootstrap(), Target: kafka.Bootstrap(), Topic: "bills", ToTopic: "sjc1.bills", IgnoreTimestamps: true,
	})
	require.NoError(t, err)
	require.True(t, d.Equal(), d.String())
}
