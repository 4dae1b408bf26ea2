package walkthrough_test

import (
	"errors"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/helix"
	"github.com/causeway-mirror/causeway/internal/kafkad"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// TestAClusterIsStartedLookedAtAndChanged walks docs/cluster.md with one controller and two workers, the second of which comes when the first has
// been looked at. Then it changes the cluster as docs/cli.md does.
func TestAClusterIsStartedLookedAtAndChanged(t *testing.T) {
	kafka := kafkatest.Shared(t, kafkatest.Kafka3)
	ports, err := kafkad.FreePorts(3)
	require.NoError(t, err)
	s := newSite(t, "cluster.md",
		"zk1:2181", kafka.ZooKeeper().Addr(), "kafka-a:9092", kafka.Bootstrap()[0], "kafka-b:9092", kafka.Bootstrap()[0],
		"controller-1:8080", kafkad.Loopback(ports[0]),
	)
	kafka.CreateTopic(t, "clicks", 2, nil)
	kafka.CreateTopic(t, "audit", 3, nil)
	written := kafkatest.Load(t, kafka.Bootstrap(), kafkatest.LoadOptions{Topic: "clicks", Records: 300}).Committed

	blocks := s.section(t, "Start", 2)
	listen := func(port int) []string { return []string{`":8080"`, `"` + kafkad.Loopback(port) + `"`} }
	s.start(t, "controller-1", blocks[0][0], listen(ports[0])...)
	s.start(t, "mirror-1", blocks[1][0], append(listen(ports[1]), "memory: 512MiB", "memory: 128MiB, id: mirror-1")...)
	for _, b := range s.section(t, "Look", 1) {
		s.do(t, b)
	}
	s.start(t, "mirror-2", blocks[1][0], append(listen(ports[2]), "memory: 512MiB", "memory: 128MiB, id: mirror-2")...)
	for _, b := range s.section(t, "Change", 3) {
		s.do(t, b)
	}
	require.Empty(t, s.blocks, "commands that no test runs")
	for _, b := range readDocument(t, "cli.md").blocks["Changes"] {
		s.do(t, b)
	}
	awaitCommands(t, kafka.ZooKeeper().Addr(), "sjc1-dca1")
	written += kafkatest.Load(t, kafka.Bootstrap(), kafkatest.LoadOptions{Topic: "clicks", First: int(written), Records: 100}).Committed
	kafkatest.AwaitRecords(t, kafka.Bootstrap(), "sjc1.clicks", written, patience)
	d := kafkatest.Compare(t, kafka.Bootstrap(), kafka.Bootstrap(), "clicks", "sjc1.clicks")
	require.True(t, d.Equal(), d.String())
	require.Equal(t, written, d.Records)
}

// awaitCommands waits until workers have done all that was asked of them: a reset to the latest that waits for a partition on its way from one worker to
// another would leave out what is written meanwhile.
func awaitCommands(t *testing.T, zookeeper, cluster string) {
	t.Helper()
	look, err := helix.Open(t.Context(), helix.Config{ZooKeeper: zookeeper, Cluster: helix.Cluster(cluster), SessionTimeout: time.Minute}, hclog.NewNullLogger())
	require.NoError(t, err)
	defer look.Close()
	require.Eventually(t, func() bool {
		waiting, err := look.Children(t.Context(), "/"+cluster+"/PROPERTYSTORE/causeway/commands", nil)
		return err == nil && len(waiting) == 0 || errors.Is(err, helix.ErrNotFound)
	}, patience, 50*time.Millisecond, "what operators asked for is not done")
}
