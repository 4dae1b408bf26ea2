package walkthrough_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/causeway-mirror/causeway/internal/kafkad"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// TestADisasterIsPractised walks the drill of docs/operations.md: between a real cluster and one that answers from memory, both ways, under load that
// goes from the one to the other and home again. The mirror that is killed goes on where it was.
func TestADisasterIsPractised(t *testing.T) {
	home := kafkatest.Shared(t, kafkatest.Kafka3)
	away, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.ClusterID("away"), kfake.SeedTopics(2, "invoices"))
	require.NoError(t, err)
	t.Cleanup(away.Close)
	ports, err := kafkad.FreePorts(2)
	require.NoError(t, err)
	s := newSite(t, "operations.md",
		"kafka-a:9092", home.Bootstrap()[0], "kafka-b:9092", away.ListenAddrs()[0],
		"mirror-there:8080", kafkad.Loopback(ports[0]), "mirror-back:8080", kafkad.Loopback(ports[1]),
	)
	home.CreateTopic(t, "invoices", 2, nil)
	written := map[string]int64{}
	write := func(bootstrap []string, n int) {
		t.Helper()
		written[bootstrap[0]] += kafkatest.Load(t, bootstrap, kafkatest.LoadOptions{Topic: "invoices", First: int(written[bootstrap[0]]), Records: n}).Committed
	}

	starts, steps := s.section(t, "Two sites", 2), s.section(t, "Disaster drill", 3)
	require.Empty(t, s.blocks, "commands that no test runs")
	write(home.Bootstrap(), 300)
	there := s.start(t, "there", starts[0][0])
	s.start(t, "back", starts[1][0])
	s.write(t, ".") // commands read the files, too
	s.do(t, steps[0])
	require.FileExists(t, filepath.Join(s.dir, "before.json"))

	write(home.Bootstrap(), 200) // some of it is on its way
	require.NoError(t, there.Kill())
	write(away.ListenAddrs(), 150)
	s.do(t, steps[1])

	write(home.Bootstrap(), 50)
	require.NoError(t, there.Start())
	s.do(t, steps[2])
	kafkatest.AwaitRecords(t, away.ListenAddrs(), "sjc1.invoices", written[home.Bootstrap()[0]], patience)
	kafkatest.AwaitRecords(t, home.Bootstrap(), "dca1.invoices", written[away.ListenAddrs()[0]], patience)
}
