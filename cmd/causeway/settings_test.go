package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/internal/conf"
)

const fullFile = `
route:
  id: 7
  source: {name: sjc1, bootstrap: [kafka-a:9092], sasl: {mechanism: SCRAM-SHA-512, username: me, password: "hunter2"}, tls: {enabled: true}}
  target: {name: dca1, bootstrap: [kafka-b:9092]}
  topics: {include: ["orders", "payments\\..*"], exclude: [secret], rename: "{source}.{topic}", create: false, discover_interval: 10s, partition_mismatch: modulo, mapping: {orders: bestellungen}}
  start: 24h
  isolation: read_uncommitted
  delivery: exactly-once
  on: {diverged: halt}
  loops: refuse
worker:
  id: w9
  streams: 2
  fetchers: 3
  memory: 512MiB
  spill: {max_bytes: 0}
  in_flight: 8MiB
  ack_window: 32
  commit_interval: 1s
  shutdown_timeout: 20s
offsets: {store: file, dir: /var/lib/causeway}
server: {listen: ":8080", idle_timeout: 1m}
log: {level: debug, format: json}
`

func load(t *testing.T, args ...string) (settings, error) {
	t.Helper()
	var f settingFlags
	cmd := &cobra.Command{}
	f.all(cmd)
	require.NoError(t, cmd.ParseFlags(args))
	return f.load()
}

func writeFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "causeway.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestFileSetsEverything(t *testing.T) {
	t.Parallel()
	s, err := load(t, "--config", writeFile(t, fullFile))
	require.NoError(t, err)
	require.Equal(t, "@sjc1@dca1@7", s.RouteName().String())
	require.Equal(t, []string{"orders", `payments\..*`}, s.Route.Topics.Include)
	require.Equal(t, "{source}.{topic}", s.Route.Topics.Rename)
	require.Equal(t, "modulo", s.Route.Topics.PartitionMismatch)
	require.False(t, s.Route.Topics.Create)
	require.Equal(t, 10*time.Second, s.Route.Topics.DiscoverInterval.Duration())
	require.Equal(t, conf.Bytes(512<<20), s.Worker.Memory)
	inFlight, err := s.InFlight()
	require.NoError(t, err)
	require.Equal(t, int64(8<<20), inFlight)
	require.Equal(t, "w9", s.worker())
	require.Len(t, s.Route.On, 8, "what the file does not name keeps its default")
}

func TestFlagsWinOverFile(t *testing.T) {
	t.Parallel()
	s, err := load(t, "--config", writeFile(t, fullFile), "--topics", "a,b{1,2}", "--topics", "c", "--memory", "1GiB", "--start", "latest",
		"--create-topics=true", "--source", "x:1, y:2", "--commit-interval", "2s", "--listen", "127.0.0.1:0")
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b{1,2}", "c"}, s.Route.Topics.Include)
	require.Equal(t, conf.Bytes(1<<30), s.Worker.Memory)
	require.Equal(t, "latest", s.Route.Start)
	require.True(t, s.Route.Topics.Create)
	require.Equal(t, []string{"x:1", "y:2"}, s.Route.Source.Bootstrap)
	require.Equal(t, "me", s.Route.Source.SASL.Username, "brokers from the flag, the rest from the file")
	require.Equal(t, 2*time.Second, s.Worker.CommitInterval.Duration())
	require.Equal(t, "read_uncommitted", s.Route.Isolation, "a flag's default does not win over the file")
}

func TestDefaultsAreTheDocumentedOnes(t *testing.T) {
	t.Parallel()
	s, err := load(t, "--source", "a:1", "--target", "b:1", "--topics", "t")
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:8080", s.Server.Listen)
	require.Equal(t, "./causeway-state", s.Offsets.Dir)
	require.Equal(t, "exactly-once", s.Route.Delivery)
	require.Equal(t, "read_committed", s.Route.Isolation)
	require.Equal(t, "earliest", s.Route.Start)
	require.Equal(t, 5*time.Second, s.Worker.CommitInterval.Duration())
	require.Equal(t, 30*time.Second, s.Worker.ShutdownTimeout.Duration())
	require.Equal(t, conf.Bytes(256<<20), s.Worker.Memory)
	require.True(t, s.Route.Topics.Create)
}

func TestConfigShowMasksSecrets(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"table", "yaml", "json"} {
		code, stdout, stderr := command(t.Context(), "config", "show", "--config", writeFile(t, fullFile), "-o", form)
		require.Equal(t, 0, code, stderr)
		require.Contains(t, stdout, "SCRAM-SHA-512")
		require.NotContains(t, stdout, "hunter2")
	}
}

// What was shown of a cluster's file was what one process would have made of it, and a file that names the store of a cluster was refused.
func TestAClustersFileIsShownAsItsProcessesHaveIt(t *testing.T) {
	t.Parallel()
	const route = "route: {source: {bootstrap: [a:1]}, target: {bootstrap: [b:1]}}\ncoordination: {zookeeper: zk1}\n"
	for _, offsets := range []string{"", "offsets: {store: zookeeper}\n"} {
		file := writeFile(t, route+offsets)
		code, stdout, stderr := command(t.Context(), "config", "show", "--config", file)
		require.Equal(t, 0, code, stderr)
		require.Contains(t, stdout, "store: zookeeper")
		require.NotContains(t, stdout, "127.0.0.1:8080")
		code, stdout, _ = command(t.Context(), "config", "validate", "--config", file)
		require.Equal(t, 0, code)
		require.Equal(t, "valid\n", stdout)
		code, _, stderr = command(t.Context(), "verify", "--config", file, "--from", "checkpoint")
		require.Equal(t, exitIncomparable, code)
		require.Contains(t, stderr, `--from "checkpoint": is for the folder of one process; a cluster's positions are in ZooKeeper`)
		require.Contains(t, stderr, `route.topics.include (--topics) "": must name at least one topic or pattern`)
	}
	code, _, stderr := command(t.Context(), "config", "validate", "--config", writeFile(t, route+"offsets: {store: tape}\n"))
	require.Equal(t, exitFailure, code)
	require.Contains(t, stderr, `offsets.store "tape"`)
}

func TestConfigShowIsAFileAgain(t *testing.T) {
	t.Parallel()
	_, shown, _ := command(t.Context(), "config", "show", "--source", "a:1", "--target", "b:1", "--topics", "t")
	again, err := load(t, "--config", writeFile(t, shown))
	require.NoError(t, err, shown)
	want, err := load(t, "--source", "a:1", "--target", "b:1", "--topics", "t")
	require.NoError(t, err)
	require.Equal(t, want.Worker, again.Worker)
	require.Equal(t, want.Route.Topics.Include, again.Route.Topics.Include)
}

func TestFaultyFilesLeaveFlagsToBeJudged(t *testing.T) {
	t.Parallel()
	properties := filepath.Join(t.TempDir(), "absent.properties")
	_, err := load(t, "--config", writeFile(t, "rout: {}\n"), "--source", "a:1", "--source-config", properties, "--start", "soon", "--streams", "0", "--log-level", "loud")
	for _, key := range []string{"rout:", "absent.properties", "--start", "--streams", "--log-level"} {
		require.ErrorContains(t, err, key)
	}
	require.NotContains(t, err.Error(), "at least one topic", "the file may name some")

	_, err = load(t, "--source", "a:1", "--source-config", properties, "--target", "b:1", "--topics", "t")
	require.ErrorContains(t, err, "absent.properties")
	require.NotContains(t, err.Error(), "bootstrap", "--source names a broker")
}

// TestUnknownKeysHideNoWrongValues: whoever mends a file wants to know all that is wrong with it.
func TestUnknownKeysHideNoWrongValues(t *testing.T) {
	t.Parallel()
	_, err := load(t, "--config", writeFile(t, `
route:
  sorce: {bootstrap: [a:1]}
  target: {bootstrap: ["b"], sasl: {mechanism: GSSAPI}}
  topics: {include: ["(", orders], discover_interval: 0s, partition_mismatch: maybe}
  start: soon
  on: {diverged: resend}
worker: {stream: 2, fetchers: 0, memory: 1MiB, commit_interval: lots}
server: {listen: here}
log: {level: loud}
`))
	for _, want := range []string{
		"route.sorce: unknown key", "worker.stream: unknown key", "worker.commit_interval: want a duration", // of the form
		`route.target (--target): bootstrap "b"`, "GSSAPI", "route.topics.include[0]", "route.topics.discover_interval", "partition_mismatch", "route.start", "route.on.diverged",
		"worker.fetchers", "worker.memory", "server.listen", "log.level",
	} {
		require.ErrorContains(t, err, want)
	}
	require.NotContains(t, err.Error(), "route.source", "the misspelt key names it")
}

// TestUnreadableValuesHideNothingElse: a value that cannot be read excuses its own key, and not all others that are missing.
func TestUnreadableValuesHideNothingElse(t *testing.T) {
	t.Parallel()
	_, err := load(t, "--config", writeFile(t, "route:\n  source: {name: sjc1, bootstrap: ['${CAUSEWAY_NO_SUCH_VARIABLE}']}\n"))
	require.ErrorContains(t, err, "route.source.bootstrap[0]: environment variable CAUSEWAY_NO_SUCH_VARIABLE is not set")
	require.ErrorContains(t, err, "route.target (--target): bootstrap: no broker is named")
	require.ErrorContains(t, err, "route.topics.include (--topics)")
	require.NotContains(t, err.Error(), "route.source (--source)", "told already")
}

func TestEmptyRenameKeepsNamesAndIsShownSo(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := command(t.Context(), "config", "show", "--source", "a:1", "--target", "b:1", "--topics", "t", "--rename", "")
	require.Equal(t, 0, code, stderr)
	require.Contains(t, stdout, "rename: '{topic}'")
	code, _, stderr = command(t.Context(), "config", "validate", "--source", "a:1", "--target", "a:1", "--topics", "t", "--rename", "")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "onto itself")
}

// TestFaultyPropertiesBringNoFalseSecondFault: the brokers stand in the file that is at fault.
func TestFaultyPropertiesBringNoFalseSecondFault(t *testing.T) {
	t.Parallel()
	properties := filepath.Join(t.TempDir(), "client.properties")
	require.NoError(t, os.WriteFile(properties, []byte("bootstrap.servers=a:1\nsecurity.protocol=SASL_SLS\nsasl.mechanism=GSSAPI\nssl.protcol=TLS\n"), 0o600))
	for _, file := range []string{properties, properties + ".absent"} {
		_, err := load(t, "--source-config", file, "--topics", "t")
		require.ErrorContains(t, err, "--source-config")
		require.NotContains(t, err.Error(), "route.source (--source): bootstrap")
		require.ErrorContains(t, err, "route.target (--target): bootstrap: no broker is named")
	}
	_, err := load(t, "--source-config", properties, "--topics", "t")
	for _, want := range []string{"security.protocol", `sasl.mechanism "GSSAPI"`, "ssl.protcol"} {
		require.ErrorContains(t, err, want)
	}
}
