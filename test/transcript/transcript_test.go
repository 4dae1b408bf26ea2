package transcript

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/helix"
	"github.com/causeway-mirror/causeway/internal/kafkad"
	"github.com/causeway-mirror/causeway/internal/testkit"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// patience is how long a state that a GET shows may take to come about.
const patience = 20 * time.Second

// worker is a participant that does at once what it is told.
type worker struct{}

func (worker) Transition(context.Context, helix.Transition) error { return nil }
func (worker) Reset(context.Context, []helix.Partition)           {}
func (worker) Suspend()                                           {}
func (worker) Resume()                                            {}

// join lets a worker take part until the test ends.
func join(t *testing.T, zookeeper, cluster, name string) {
	t.Helper()
	cfg := helix.DefaultParticipantConfig()
	cfg.ZooKeeper, cfg.Cluster, cfg.Instance = zookeeper, helix.Cluster(cluster), name
	p := helix.NewParticipant(cfg, helix.ParticipantDeps{Handler: worker{}, Log: hclog.NewNullLogger(), Registerer: prometheus.NewRegistry()})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }() // owned by the test: its cleanup waits for it
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

// start builds and runs a program and gives its base URL, once a call is answered. portOption is followed by the port.
func start(t *testing.T, name, portOption, probe string, args ...string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "causeway-"+name)
	require.NoError(t, testkit.Build(t.Context(), name, binary))
	ports, err := kafkad.FreePorts(1)
	require.NoError(t, err)
	program := kafkatest.NewProgram(name, t.TempDir(), append([]string{binary, portOption, strconv.Itoa(ports[0])}, args...)...)
	require.NoError(t, program.Start())
	t.Cleanup(func() {
		err := program.Stop()
		if t.Failed() || err != nil || program.ExitCode() != 0 {
			t.Log(program.Log())
		}
		require.NoError(t, err)
		require.Zero(t, program.ExitCode())
	})
	base := fmt.Sprintf("http://127.0.0.1:%d", ports[0])
	require.Eventually(t, func() bool {
		a, err := Call{Method: http.MethodGet, Path: probe}.Do(http.DefaultClient, base)
		return err == nil && a.Status == http.StatusOK
	}, time.Minute, 100*time.Millisecond, "%s answers", name)
	return base
}

// startController gives it the options of uReplicator's start scripts.
func startController(t *testing.T, zookeeper, cluster string) string {
	t.Helper()
	return start(t, "controller", "-port", "/health",
		"-helixClusterName", cluster, "-zookeeper", zookeeper, "-instanceId", "ctl01", "-env", "dc1.lab",
		"-hostname", "127.0.0.1", "-srcKafkaZkPath", zookeeper, "-destKafkaZkPath", zookeeper, "-enableSrcKafkaValidation", "true",
		"-groupId", "urep-lab", "-offsetRefreshIntervalInSec", "1", "-autoRebalanceDelayInSeconds", "5",
		"-localBackupFilePath", t.TempDir(), "backUpToGit", "false",
	)
}

// startWorker gives it files as uReplicator's workers have them; no rate is configured.
func startWorker(t *testing.T, kafka *kafkatest.Cluster, cluster string) string {
	t.Helper()
	dir := t.TempDir()
	file := func(name string, lines ...string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
		return path
	}
	brokers, zookeeper := "bootstrap.servers="+strings.Join(kafka.Bootstrap(), ","), kafka.ZooKeeper().Addr()
	return start(t, "worker", "-worker_port", "/healthz",
		"-helix_config", file("helix.properties", "zkServer="+zookeeper, "instanceId=urepWorker_02", "helixClusterName="+cluster),
		"-consumer_config", file("consumer.properties", brokers, "zookeeper.connect="+zookeeper, "group.id=urep-lab"),
		"-producer_config", file("producer.properties", brokers),
		"-topic_mappings", file("mapping.properties", "alpha=alpha.copy"),
	)
}

// replay makes the calls of a section and compares the answers. What a GET shows may take a moment to come about.
func replay(t *testing.T, base string, calls []Call, allowed []*Difference) {
	t.Helper()
	for _, c := range calls {
		deadline := time.Now().Add(patience)
		for {
			a, err := c.Do(http.DefaultClient, base)
			require.NoError(t, err, c)
			differs, err := Judge(c, a, allowed)
			require.NoError(t, err, c)
			if differs == "" {
				break
			}
			if c.Method != http.MethodGet || time.Now().After(deadline) {
				t.Errorf("%s: %s", c, differs)
				break
			}
			<-time.After(50 * time.Millisecond)
		}
	}
}

func TestControllerAndWorkerAnswerAsUReplicators(t *testing.T) {
	kafkatest.Require(t)
	const cluster = "testMirrorMaker"
	calls, err := Calls("testdata/calls.jsonl")
	require.NoError(t, err)
	allowed, err := Differences("testdata/differences.tsv")
	require.NoError(t, err)
	sections := map[string][]Call{}
	for _, c := range calls {
		sections[c.Section] = append(sections[c.Section], c)
	}
	kafka := kafkatest.Start(t, kafkatest.Options{Version: kafkatest.Kafka3, Brokers: 1})
	for topic, partitions := range map[string]int{"alpha": 4, "beta": 2, "gamma": 3, "delta.v1": 8} {
		kafka.CreateTopic(t, topic, partitions, nil)
	}
	zookeeper := kafka.ZooKeeper().Addr()
	base := startController(t, zookeeper, cluster)
	replay(t, base, sections["A"], allowed)
	join(t, zookeeper, cluster, "urepWorker_01")
	replay(t, base, sections["B"], allowed)
	replay(t, base, sections["C"], allowed)
	replay(t, startWorker(t, kafka, cluster), sections["W"], allowed)
	require.Empty(t, Needed(allowed), "lines of differences.tsv that no call needs")
}
