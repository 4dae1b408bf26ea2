package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/cmd/internal/program"
	"github.com/causeway-mirror/causeway/internal/graphite"
)

// files are the properties files of a uReplicator worker in a folder of their own.
type files struct {
	t   *testing.T
	dir string
}

func newFiles(t *testing.T) *files {
	t.Helper()
	f := &files{t: t, dir: t.TempDir()}
	f.write("helix.properties", "zkServer=zk1:2181,zk2:2181/helix/\ninstanceId=worker-7\nhelixClusterName=mirrors\n")
	f.write("consumer.properties", "bootstrap.servers=src1:9092,src2:9092\nzookeeper.connect=zk9:2181\ngroup.id=mirror-group\nauto.offset.reset=earliest\n")
	f.write("producer.properties", "bootstrap.servers=dst1:9092\nacks=all\n")
	return f
}

func (f *files) write(name, text string) string {
	f.t.Helper()
	path := filepath.Join(f.dir, name)
	require.NoError(f.t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// args are a start script's, with more behind.
func (f *files) args(more ...string) []string {
	args := []string{"-enable_filter", "true"}
	for _, name := range []string{"helix", "consumer", "producer"} {
		args = append(args, "-"+name+"_config", filepath.Join(f.dir, name+".properties"))
	}
	return append(args, more...)
}

func (f *files) read(more ...string) (settings, error) { return read(f.args(more...)) }

func TestOldOptionsAreUnderstood(t *testing.T) {
	t.Parallel()
	f := newFiles(t)
	f.write("consumer.properties", `bootstrap.servers=src1:9092, src2:9092
zookeeper.connect=zk8:2181
commit.zookeeper.connect=zk9:2181/commit/
group.id=mirror-group
auto.offset.reset=earliest
num.consumer.fetchers=5
consumer.num.of.messages.rate=1000
fetch.message.max.bytes=1048576
`)
	f.write("producer.properties", "bootstrap.servers=dst1:9092\nnum.of.producers=3\noffset.commit.interval.ms=5000\n")
	mapping := f.write("map.properties", "orders bestellungen\n")
	s, err := f.read("--worker_port=8090", "-topic_mappings", mapping, "-graphite_host", "g1", "-graphite_port", "2003", "-region", "eu", "-worker_hostname", "h1")
	require.NoError(t, err)
	require.Equal(t, "worker-7", s.id)
	require.Equal(t, "zk1:2181,zk2:2181/helix", s.Coordination.ZooKeeper)
	require.Equal(t, "mirrors", s.Coordination.Cluster)
	require.Equal(t, []string{"src1:9092", "src2:9092"}, s.Route.Source.Bootstrap)
	require.Equal(t, []string{"dst1:9092"}, s.Route.Target.Bootstrap)
	require.Equal(t, "zk9:2181/commit", s.OffsetsZooKeeper(), "the commit ZooKeeper wins")
	require.Equal(t, "mirror-group", s.Group())
	require.Equal(t, "earliest", s.Route.Start)
	require.Equal(t, []int{5, 3}, []int{s.Worker.Fetchers, s.Worker.Streams})
	require.Equal(t, 5*time.Second, s.Worker.CommitInterval.Duration())
	require.InDelta(t, 1000, s.Route.Limits.RecordsPerSecond, 0)
	require.True(t, s.rateable)
	require.Equal(t, ":8090", s.Server.Listen)
	require.False(t, s.mute)
	require.Equal(t, graphite.Config{Address: "g1:2003", Prefix: "stats.eu.counter.ureplicator-worker.h1", Interval: time.Minute}, s.graphite)
	require.Equal(t, []string{"fetch.message.max.bytes"}, s.Route.Source.Ignored, "what the worker reads itself is not called ignored")
	require.Equal(t, []string{"-enable_filter has no effect"}, s.warnings)
}

func TestOldDefaultsHold(t *testing.T) {
	t.Parallel()
	f := newFiles(t)
	f.write("helix.properties", "zkServer=zk1\n")
	f.write("consumer.properties", "bootstrap.servers=src1:9092\nzookeeper.connect=zk9:2181\n")
	s, err := f.read()
	require.NoError(t, err)
	require.Regexp(t, `^uReplicator-\d{13}$`, s.id)
	require.Equal(t, "testMirrorMaker", s.Coordination.Cluster)
	require.Equal(t, "ureplicator", s.Group())
	require.Equal(t, "latest", s.Route.Start)
	require.Equal(t, "read_uncommitted", s.Route.Isolation)
	require.Equal(t, []int{3, 2}, []int{s.Worker.Fetchers, s.Worker.Streams})
	require.Equal(t, time.Minute, s.Worker.CommitInterval.Duration())
	require.True(t, s.mute, "without worker_port there is no REST")
	require.Zero(t, s.Route.Limits)
	require.False(t, s.rateable)
	require.Empty(t, s.graphite.Address)
}

func TestValuesThatWereReplacedSilentlyWarnOnce(t *testing.T) {
	t.Parallel()
	f := newFiles(t)
	f.write("consumer.properties", "bootstrap.servers=src1:9092\nzookeeper.connect=zk9:2181\nnum.consumer.fetchers=many\n")
	f.write("producer.properties", "bootstrap.servers=dst1:9092\nacks=1\nproducer.type=sync\n")
	s, err := f.read("-worker_port", "http", "-federated_enabled", "maybe", "-abort_on_send_failure", "false", "-enable_jmx_report", "true")
	require.NoError(t, err)
	require.Equal(t, 3, s.Worker.Fetchers)
	require.True(t, s.mute)
	all := strings.Join(s.warnings, "\n")
	for _, about := range []string{"worker_port", "federated_enabled", "num.consumer.fetchers", "acks", "producer.type", "abort_on_send_failure", "enable_jmx_report"} {
		require.Equal(t, 1, strings.Count(all, about), "%s in\n%s", about, all)
	}
}

func TestWrongOptionsAreRefused(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change func(f *files)
		more   []string
		code   int
		says   []string
	}{
		"federation":      {more: []string{"-federated_enabled", "TRUE"}, code: 1, says: []string{"-federated_enabled", "not possible yet"}},
		"unknown option":  {more: []string{"-wroker_port", "1"}, code: 2, says: []string{"-wroker_port", "no such option"}},
		"no value":        {more: []string{"-region"}, code: 2, says: []string{"-region"}},
		"config and more": {more: []string{"--config", "f.yaml"}, code: 2, says: []string{"-config"}},
		"absent file":     {more: []string{"-consumer_config", "absent.properties"}, code: 1, says: []string{"-consumer_config", "absent.properties"}},
		"all faults at once": {change: func(f *files) {
			f.write("helix.properties", "instanceId=x\n")
			f.write("consumer.properties", "auto.offset.reset=none\nisolation.level=dirty\n")
			f.write("producer.properties", "client.id=p\n")
		}, code: 1, says: []string{"zkServer", "commit.zookeeper.connect", "auto.offset.reset", "isolation.level", "consumer.properties: bootstrap", "producer.properties: bootstrap"}},
		"port": {more: []string{"-worker_port", "70000"}, code: 1, says: []string{"-worker_port", "70000"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFiles(t)
			if row.change != nil {
				row.change(f)
			}
			var out, errs bytes.Buffer
			require.Equal(t, row.code, run(t.Context(), f.args(row.more...), &out, &errs), errs.String())
			require.Empty(t, out.String())
			for _, text := range row.says {
				require.Contains(t, errs.String(), text)
			}
		})
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"-help"}, {"--help"}, {"-worker_port", "1", "-help"}} {
		var out, errs bytes.Buffer
		require.Equal(t, 0, run(t.Context(), args, &out, &errs))
		require.Empty(t, errs.String())
		for _, o := range options() {
			require.Contains(t, out.String(), "-"+o.Name)
		}
		require.Contains(t, out.String(), "usage: causeway-worker --config causeway.yaml\n")
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"-version", "--version"} {
		var out, errs bytes.Buffer
		require.Equal(t, program.OK, run(t.Context(), []string{word}, &out, &errs))
		require.Regexp(t, `^causeway-worker dev \S+ go1\.\S+\n$`, out.String())
		require.Empty(t, errs.String())
	}
}

func TestAFileWithoutConfigIsNamed(t *testing.T) {
	t.Parallel()
	for line, says := range map[string]string{
		"causeway.yaml":                  `causeway-worker: unexpected argument "causeway.yaml"; a file is named by --config: try -help`,
		"--config causeway.yaml extra":   "causeway-worker: -config goes alone, without other options and arguments: try -help",
		"extra --config causeway.yaml":   "causeway-worker: -config goes alone, without other options and arguments: try -help",
		"causeway.yaml and more of them": `unexpected argument "causeway.yaml"`,
	} {
		var out, errs bytes.Buffer
		require.Equal(t, program.Usage, run(t.Context(), strings.Fields(line), &out, &errs), line)
		require.Contains(t, errs.String(), says)
	}
	s, err := newFiles(t).read("stray")
	require.NoError(t, err, "uReplicator passes it over")
	require.Contains(t, s.warnings, `"stray" is no option and is passed over`)
}

const nativeText = `route:
  source: {name: sjc1, bootstrap: [a:9092]}
  target: {name: dca1, bootstrap: [b:9092]}
worker: {id: w9}
coordination: {zookeeper: "zk1:2181", cluster: mirrors, session_timeout: 6s}
`

func TestNativeFile(t *testing.T) {
	t.Parallel()
	f := newFiles(t)
	path := f.write("causeway.yaml", nativeText)
	for _, args := range [][]string{{"--config", path}, {"-config=" + path}} {
		s, err := read(args)
		require.NoError(t, err)
		require.Equal(t, "w9", s.id)
		require.Equal(t, "causeway-sjc1-dca1", s.Group())
		require.Equal(t, ":8080", s.Server.Listen)
		require.Equal(t, "read_committed", s.Route.Isolation)
	}
	wrong := f.write("wrong.yaml", strings.Replace(nativeText, "cluster: mirrors, session_timeout: 6s", "cluster: a/b, session_timeout: 1ms", 1))
	var out, errs bytes.Buffer
	require.Equal(t, 1, run(t.Context(), []string{"--config", wrong}, &out, &errs))
	require.Equal(t, 2, strings.Count(errs.String(), "\n"), errs.String())
	require.Contains(t, errs.String(), fmt.Sprintf("%s: coordination.cluster %q", wrong, "a/b"))
}

// TestWhatCannotBeReadHidesNoWrongValues: an unknown key or a malformed duration was all that was told of a file.
func TestWhatCannotBeReadHidesNoWrongValues(t *testing.T) {
	t.Parallel()
	path := newFiles(t).write("causeway.yaml", strings.Replace(nativeText, "worker: {id: w9}", "worker: {stream: 2, fetchers: 0, commit_interval: soon}", 1))
	_, err := read([]string{"--config", path})
	for _, want := range []string{"worker.stream: unknown key", "worker.commit_interval: want a duration", `worker.fetchers "0"`} {
		require.ErrorContains(t, err, want)
	}
	_, err = read([]string{"--config", newFiles(t).write("causeway.yaml", "rout: {}\nlog: {level: loud}\n")})
	require.ErrorContains(t, err, "rout: unknown key")
	require.ErrorContains(t, err, "log.level")
	require.NotContains(t, err.Error(), "bootstrap", "the misspelt key may name it")
}
