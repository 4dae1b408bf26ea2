package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/api"
	"github.com/causeway-mirror/causeway/cmd/internal/program"
	"github.com/causeway-mirror/causeway/controller"
	"github.com/causeway-mirror/causeway/internal/graphite"
	"github.com/causeway-mirror/causeway/route"
)

// least is what a command line needs.
func least(more ...string) []string {
	return append([]string{"-helixClusterName", "mirrors", "-zookeeper", "zk:2181/helix/", "-port", "9000"}, more...)
}

func TestRunEndsWithItsExitCode(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	for _, row := range []struct {
		name string
		args []string
		code int
		says []string
	}{
		{"nothing", nil, program.OK, []string{"-helixClusterName", "-c3Port"}},
		{"help", []string{"-help"}, program.OK, []string{"usage: causeway-controller --config causeway.yaml\n"}},
		{"version", []string{"--version"}, program.OK, []string{"causeway-controller dev "}},
		{"a file without config", []string{"causeway.yaml"}, program.Usage, []string{`unexpected argument "causeway.yaml"; a file is named by --config: try -help`}},
		{"a native file and more", []string{"--config", "causeway.yaml", "extra"}, program.Usage, []string{"-config causeway.yaml goes alone, without other options and arguments"}},
		{"a native file and options", least("--config", "causeway.yaml"), program.Usage, []string{"-config causeway.yaml goes alone"}},
		{"help with two dashes", least("--help"), program.OK, []string{"usage: causeway-controller"}},
		{"unknown option", least("-nosuch", "1"), program.Usage, []string{"-nosuch: there is no such option"}},
		{"option without value", least("-env"), program.Usage, []string{"-env: needs a value"}},
		{"federated", least("-enableFederated", "true"), program.Failure, []string{"-enableFederated", "federation is not possible yet"}},
		{
			"all faults at once",
			[]string{"-port", "many", "-enableAutoWhitelist", "true", "-patternToExcludeTopics", "(", "-backUpToGit", "true", "-autoRebalanceDelayInSeconds", "-5"},
			program.Failure,
			[]string{"-helixClusterName: is required", "-zookeeper: is required", `-port "many"`, "-patternToExcludeTopics", "-remoteBackupRepo", "-localGitRepoClonePath", "-srcKafkaZkPath"},
		},
		{"negative delay", least("-autoRebalanceDelayInSeconds", "-5"), program.Failure, []string{"rebalance.delay: -5s"}},
		{"file that is not there", least("-config", filepath.Join(dir, "no.properties")), program.Failure, []string{"-config"}},
		{"native file with an unknown key", []string{"--config", file("bad.yaml", "controler: {}\n")}, program.Failure, []string{"controller"}},
		{
			"native file with what can't be read, and wrong values",
			[]string{"--config", file("both.yaml", "route: {source: {bootstrap: [a:1]}, target: {bootstrap: [b:1]}, strt: latest}\n"+
				"coordination: {session_timeout: 1ms}\ncontroller: {lag_interval: often, rebalance: {threshold: 0.5}}\n")},
			program.Failure,
			[]string{"route.strt: unknown key", "controller.lag_interval: want a duration", "controller.rebalance.threshold", "coordination.session_timeout"},
		},
		{"native file without coordination", []string{"--config", file("none.yaml", "route: {source: {bootstrap: [a:1]}, target: {bootstrap: [b:1]}}\n")}, program.Failure, []string{"coordination.zookeeper"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			var out, errOut bytes.Buffer
			require.Equal(t, row.code, run(t.Context(), row.args, &out, &errOut), errOut.String())
			for _, text := range row.says {
				require.Contains(t, out.String()+errOut.String(), text)
			}
			require.NotContains(t, errOut.String(), "internal fault")
		})
	}
}

func TestOldOptionsKeepTheirDefaults(t *testing.T) {
	s, err := read(least())
	require.NoError(t, err)
	require.Equal(t, "zk:2181/helix", s.coordination.ZooKeeper)
	require.Equal(t, ":9000", s.server.Listen)
	c := s.controller
	require.Equal(t, controller.Rebalance{Delay: 2 * time.Minute, MinInterval: 10 * time.Minute, Threshold: 1.2}, c.Rebalance)
	require.Equal(t, controller.Lag{Interval: 5 * time.Minute, MinRecords: 100_000, MinTime: 15 * time.Minute, Valid: 30 * time.Minute}, c.Lag)
	require.Equal(t, controller.Stuck{After: 20 * time.Minute, MaxMoves: 3}, c.Stuck)
	require.Equal(t, 10*time.Minute, c.Discovery.Interval)
	require.Equal(t, 2*time.Minute, c.Discovery.First)
	require.Nil(t, c.Discovery.Refuse)
	require.False(t, s.compares)
	require.Equal(t, defaultBackupDir, c.Backup.Dir)
	require.Equal(t, "env-mirrors", c.Backup.Name)
	require.Empty(t, s.positions.Address, "without a group nothing is measured")
	require.False(t, s.source.known())
	require.Empty(t, s.warnings)
}

func TestOldOptionsMeanWhatTheyMeant(t *testing.T) {
	s, err := read(least(
		"-srcKafkaZkPath", "zk:2181/sjc", "--destKafkaZkPath", "zk:2181/dca/", "-groupId", "g", "-enableAutoWhitelist", "TRUE", "-enableAutoTopicExpansion", "true",
		"-patternToExcludeTopics", "tmp.*", "-refreshTimeInSeconds", "60", "-maxWorkingInstances", "3", "-instanceId", "c7", "-backUpToGit", "perhaps", "-localBackupFilePath", "backups",
		"-numOffsetThread", "20", "-offsetRefreshIntervalInSec", "soon", "-c3Port", "80",
	))
	require.NoError(t, err)
	require.Equal(t, "c7", s.coordination.Name)
	require.Equal(t, "sjc", s.route.Source)
	require.Equal(t, "dca", s.route.Target)
	require.Equal(t, "zk:2181/sjc", s.positions.Address)
	require.Equal(t, 3, s.controller.Rebalance.MaxActive)
	d := s.controller.Discovery
	require.Equal(t, time.Minute, d.First, "the first look is not later than the second would be")
	require.True(t, d.Expand)
	require.True(t, d.NeedTarget)
	require.Empty(t, d.Refuse("orders"))
	require.NotEmpty(t, d.Refuse("tmp.orders"))
	require.NotEmpty(t, d.Refuse("__consumer_offsets"))
	require.True(t, s.compares)
	require.Equal(t, "localhost:80", s.chaperone)
	warnings := strings.Join(s.warnings, "\n")
	for _, text := range []string{"-backUpToGit", "-numOffsetThread", "-offsetRefreshIntervalInSec"} {
		require.Contains(t, warnings, text)
	}
	require.Equal(t, 5*time.Minute, s.controller.Lag.Interval)
}

func TestCapacityOfAWorkerIsThatOfItsRegion(t *testing.T) {
	capacity := func(source, target string) float64 {
		s, err := read(least("-srcKafkaZkPath", source, "-destKafkaZkPath", target, "-maxWorkloadPerWorkerByteWithinRegion", "300", "-maxWorkloadPerWorkerByteCrossRegion", "100"))
		require.NoError(t, err)
		return s.compat.WorkerCapacity
	}
	require.InDelta(t, 300, capacity("zk:2181/sjc1", "zk:2181/sjc-agg"), 0)
	require.InDelta(t, 100, capacity("zk:2181/sjc1", "zk:2181/dca1"), 0)
	require.InDelta(t, 100, capacity("zk:2181", "zk:2181"), 0, "clusters without a name")
	require.InDelta(t, 100, capacity("", ""), 0)
}

func TestOptionsOfFederatedModeAreWarnedOf(t *testing.T) {
	s, err := read(least("-deploymentName", "d", "-srcClusters", "a", "-destClusters", "b"))
	require.NoError(t, err)
	require.Len(t, s.warnings, 3)
	for _, name := range []string{"-deploymentName", "-srcClusters", "-destClusters"} {
		require.Contains(t, strings.Join(s.warnings, "\n"), name+" has no effect: it belongs to federated mode")
	}
}

// What a topic is called on the target was shown as its own name until a worker had told.
func TestTargetTopicIsNamedBeforeAWorkerTells(t *testing.T) {
	file := func(topics string) settings {
		path := filepath.Join(t.TempDir(), "causeway.yaml")
		text := "route: {source: {name: sjc1, bootstrap: [a:9092]}, target: {name: dca1, bootstrap: [b:9092]}, topics: {" + topics + "}}\n" +
			"coordination: {zookeeper: zk, cluster: mirrors}\n"
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		s, err := read([]string{"--config", path})
		require.NoError(t, err)
		return s
	}
	s := file(`rename: "{source}.{topic}", mapping: {clicks: views}`)
	topic := controller.Topic{Name: "orders", Partitions: 1, Assigned: map[int32]map[string]string{0: {"w1": controller.Online}}}
	state := &controller.State{Workers: map[string]controller.Worker{"w1": {Live: true}}}
	p := route.Partition{Topic: "orders"}
	v := &view{mapped: s.mapped, crew: &crew{}}
	one, told := v.shown(state, topic, p, api.Partition{})
	require.False(t, told)
	require.Equal(t, "sjc1.orders", one.TargetTopic)
	require.Equal(t, "views", s.mapped("clicks"))

	v.mapped = file(`mapping_file: "only-workers-have-it.properties"`).mapped
	one, _ = v.shown(state, topic, p, api.Partition{})
	require.Empty(t, one.TargetTopic, "not known")
	one, told = v.shown(state, topic, p, api.Partition{Worker: "w0", TargetTopic: "x", TargetPartition: 7})
	require.False(t, told, "it is w1's")
	require.Equal(t, "x", one.TargetTopic)
	require.EqualValues(t, 7, one.TargetPartition)
	one, told = v.shown(state, topic, p, api.Partition{Worker: "w1", State: api.StateMirroring, TargetTopic: "x", LagRecords: 5})
	require.True(t, told)
	require.EqualValues(t, 5, one.LagRecords)
}

func TestFiguresGoToGraphiteUnderTheOldNames(t *testing.T) {
	s, err := read(least("-graphiteHost", "g", "-graphitePort", "2003", "-env", "sjc1.main", "-hostname", "h1"))
	require.NoError(t, err)
	require.Equal(t, graphite.Config{Address: "g:2003", Prefix: "stats.sjc1.counter.kafka-mirror-maker-controller.main.h1", Interval: time.Minute}, s.graphite)
	s, err = read(least("-graphiteHost", "g", "-graphitePort", "2003"))
	require.NoError(t, err, "metrics never decide whether the controller starts")
	require.Empty(t, s.graphite.Address)
	require.Contains(t, strings.Join(s.warnings, ""), "-env")
	s, err = read(least("-graphiteHost", "g", "-graphitePort", "2003", "-env", "a.b", "-enableGraphiteReport", "false"))
	require.NoError(t, err)
	require.Empty(t, s.graphite.Address)
}

func TestAPropertiesFileHoldsWhereNoOptionIsGiven(t *testing.T) {
	path := filepath.Join(t.TempDir(), "controller.properties")
	text := "controller.port=9001\ncontroller.zk.str=zk:2181\ncontroller.helix.cluster.name=fromFile\ncontroller.auto.rebalance.delay.in.seconds=7\n"
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	s, err := read([]string{"-config", path, "-port", "9002"})
	require.NoError(t, err)
	require.Equal(t, ":9002", s.server.Listen)
	require.EqualValues(t, "fromFile", s.coordination.Cluster)
	require.Equal(t, 7*time.Second, s.controller.Rebalance.Delay)
}

func TestTheExamplesNeedNoOtherOption(t *testing.T) {
	s, err := read([]string{"-example1"})
	require.NoError(t, err)
	require.Equal(t, ":9000", s.server.Listen)
	require.EqualValues(t, exampleCluster, s.coordination.Cluster)
	require.Nil(t, s.controller.Discovery.Refuse)
	s, err = read([]string{"-example2", "-port", "9009"})
	require.NoError(t, err)
	require.Equal(t, ":9009", s.server.Listen)
	require.NotNil(t, s.controller.Discovery.Refuse)
	require.Equal(t, 10*time.Second, s.controller.Discovery.First)
	require.Equal(t, "localhost:2181/cluster1", s.source.zookeeper)
}

func TestBrokersDoForAClusterWithoutZooKeeper(t *testing.T) {
	s, err := read(least("-srcBootstrapServers", "a:9092, b:9092", "-enableSrcKafkaValidation", "true", "-groupId", "g", "-consumerCommitZkPath", "zk:2181"))
	require.NoError(t, err)
	require.Equal(t, []string{"a:9092", "b:9092"}, s.source.cluster.Bootstrap)
	require.Equal(t, "zk:2181", s.positions.Address)
	require.Empty(t, s.warnings)

	s, err = read(least("-srcBootstrapServers", "a:9092", "-groupId", "g"))
	require.NoError(t, err)
	require.Contains(t, strings.Join(s.warnings, "\n"), "-groupId g: without -consumerCommitZkPath", "that lag is not measured was told nowhere")
}

func TestTheNativeFileIsUnderstood(t *testing.T) {
	path := filepath.Join(t.TempDir(), "causeway.yaml")
	text := `
route:
  source: {name: sjc1, bootstrap: [a:9092]}
  target: {name: dca1, bootstrap: [b:9092]}
  topics: {include: ["orders.*"], exclude: ["orders.tmp"]}
coordination: {zookeeper: "zk:2181/x", cluster: mirrors, session_timeout: 6s}
controller: {id: c1, rebalance: {delay: 3s}, standby_workers: 1, stuck: {after: 5m}}
server: {listen: "127.0.0.1:0"}
`
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	for _, args := range [][]string{{"--config", path}, {"-config", path}, {"--config=" + path}} {
		s, err := read(args)
		require.NoError(t, err)
		require.Equal(t, "c1", s.coordination.Name)
		require.Equal(t, 6*time.Second, s.coordination.SessionTimeout)
		require.Equal(t, 3*time.Second, s.controller.Rebalance.Delay)
		require.Equal(t, 1, s.controller.Rebalance.Standbys)
		require.Equal(t, controller.Stuck{After: 5 * time.Minute, MaxMoves: 3}, s.controller.Stuck)
		require.Empty(t, s.controller.Discovery.Refuse("orders.eu"))
		require.NotEmpty(t, s.controller.Discovery.Refuse("orders.tmp"))
		require.Equal(t, "causeway-sjc1-dca1", s.positions.Group)
		require.Equal(t, "zk:2181/x", s.positions.Address)
		require.True(t, s.committed)
	}
}

func TestAPortThatIsTakenIsToldInOneLine(t *testing.T) {
	s, err := read(least())
	require.NoError(t, err)
	s.server.Listen = "256.0.0.1:1"
	var out bytes.Buffer
	require.Equal(t, program.Failure, this().Report(serve(context.Background(), s, &out), &out))
	require.Contains(t, out.String(), `server.listen "256.0.0.1:1": listen tcp`)
}

// A controller that had to stop ended as one that was configured wrongly.
func TestOwnFaultHasItsExitCode(t *testing.T) {
	s, err := read([]string{"-helixClusterName", "mirrors", "-zookeeper", "127.0.0.1:1", "-port", "0"})
	require.NoError(t, err)
	s.server.Listen = "127.0.0.1:0"
	v, err := open(t.Context(), s, s.logger(io.Discard))
	require.NoError(t, err)
	require.NoError(t, v.listener.Close()) // nobody will ever be served
	var out bytes.Buffer
	require.Equal(t, program.Fault, this().Report(v.run(t.Context()), &out))
	require.Contains(t, out.String(), "internal fault: serve http on 127.0.0.1:")
}
