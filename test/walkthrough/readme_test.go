package walkthrough_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/causeway-mirror/causeway/internal/kafkad"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// told asks a document for the only block of commands below a heading ("" = before the first).
func (*site) told(t *testing.T, name, heading string) block {
	t.Helper()
	blocks := readDocument(t, name).blocks[heading]
	require.Len(t, blocks, 1, "%s: %s", name, heading)
	return blocks[0]
}

// TestANewcomerTypesTheReadme types what the README tells who has two clusters, and what docs/troubleshooting.md and docs/events.md tell who looks at
// the mirror afterwards, between clusters that answer from memory. Its lines for a cluster of workers are those of docs/cluster.md.
func TestANewcomerTypesTheReadme(t *testing.T) { // not parallel: it changes the environment
	if testing.Short() {
		t.Skip("programs are built and run")
	}
	ports, err := kafkad.FreePorts(1)
	require.NoError(t, err)
	listen := kafkad.Loopback(ports[0])
	t.Setenv("CAUSEWAY_API", "http://"+listen) // where the README has port 8080
	var hosts []string
	for _, name := range []string{"kafka-a", "kafka-b"} {
		options := []kfake.Opt{kfake.NumBrokers(1), kfake.ClusterID(name)}
		if name == "kafka-a" {
			options = append(options, kfake.SeedTopics(2, "orders", "payments.eu"))
		}
		c, err := kfake.NewCluster(options...)
		require.NoError(t, err)
		t.Cleanup(c.Close)
		hosts = append(hosts, name+":9092", c.ListenAddrs()[0], name+":9093", c.ListenAddrs()[0])
	}
	source := []string{hosts[1]}
	for _, topic := range []string{"orders", "payments.eu"} {
		require.EqualValues(t, 200, kafkatest.Load(t, source, kafkatest.LoadOptions{Topic: topic, Records: 200}).Committed)
	}
	s := newSite(t, "../README.md", hosts...)
	quick := s.section(t, "Quick start", 4)
	require.Equal(t, []string{"make", "demo"}, quick[0][0].words)
	require.Equal(t, []string{"make", "build"}, quick[1][0].words)
	for _, c := range s.section(t, "A cluster of workers", 1)[0] {
		require.Contains(t, documentText(t, "cluster.md"), strings.Join(c.words, " "))
	}
	require.Equal(t, []string{"make", "test"}, s.section(t, "Tests", 1)[0][0].words)
	require.Empty(t, s.blocks, "commands that no test runs")

	mirror := quick[1][1]
	mirror.words = append(slices.Clone(mirror.words), "--listen", listen)
	s.start(t, "mirror", mirror)
	s.do(t, quick[2][1:]) // it waits until all is there, and compares
	s.shows(t, quick[2][0], "4 mirroring")
	for _, name := range []string{"client-a.properties", "client-b.properties"} {
		require.NoError(t, os.WriteFile(filepath.Join(s.dir, name), []byte("security.protocol=PLAINTEXT\n"), 0o600))
	}
	secure := quick[3][0]
	secure.words = slices.Clone(secure.words)
	secure.words[1], secure.body = "check", "ok " // takes the flags of standalone
	s.ends(t, secure)

	file := fmt.Sprintf("route: {source: {bootstrap: [%q]}, target: {bootstrap: [%q]}, topics: {include: [orders, payments.eu]}}\n", hosts[1], hosts[5])
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "causeway.yaml"), []byte(file), 0o600))
	s.do(t, s.told(t, "troubleshooting.md", ""))
	s.do(t, s.told(t, "troubleshooting.md", "The copy is not what was expected"))
	s.ends(t, s.told(t, "events.md", "")[0]) // the other one follows, and shows nothing where nothing halts
}

// shows runs a program that shows what it sees until it is stopped, and waits until it shows a text.
func (s *site) shows(t *testing.T, c command, text string) {
	t.Helper()
	run := s.start(t, "watch", c)
	deadline := time.Now().Add(patience)
	for !strings.Contains(run.Log(), text) {
		require.True(t, time.Now().Before(deadline), "%v printed %s", c.words, run.Log())
		<-time.After(often)
	}
}
