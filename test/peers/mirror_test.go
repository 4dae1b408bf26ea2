package peers_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/internal/kafkad"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// The two mirrors, as the table names them.
const (
	causeway    = "Causeway"
	mirrorMaker = "MirrorMaker 2"
)

// version is that of Kafka: of the brokers and of MirrorMaker 2.
const version = kafkatest.Kafka4

// mirror is a process that copies topics under their own names, and may be started again and again.
type mirror struct {
	kind     string
	alias    string // of the source; MirrorMaker 2 keeps its positions below it
	dir      string
	settings map[string]string // of MirrorMaker 2, beyond those of every case; SOURCE stands for the alias
	ends     [2]end            // source, target
	topics   []string
	jmx      string // where MirrorMaker 2 shows its figures

	run  *kafkatest.Program // the last start; nil before the first
	seen int                // length of the log before the last start
	mark int                // length of the log from which on it is searched; that of the last start if not set since
}

// end is how a mirror reaches a cluster.
type end struct {
	bootstrap         string
	ca, cert, keyFile string // PEM; empty without TLS
	store             string // certificate and key in one file
}

// start starts the process and does not wait for anything.
func (m *mirror) start(t *testing.T) {
	t.Helper()
	require.NoError(t, os.MkdirAll(m.dir, 0o750))
	var err error
	if m.kind == causeway {
		m.run = kafkatest.NewProgram(causeway, m.dir, program, "standalone", "--config", m.file(t), "--state", filepath.Join(m.dir, "state"), "--listen", "127.0.0.1:0")
	} else {
		var ports []int
		ports, err = kafkad.FreePorts(1)
		require.NoError(t, err)
		m.jmx = kafkad.Loopback(ports[0])
		m.run, err = kafkatest.MirrorMaker(version, m.dir, m.properties(), "-Dcom.sun.management.jmxremote.port="+strconv.Itoa(ports[0]),
			"-Dcom.sun.management.jmxremote.authenticate=false", "-Dcom.sun.management.jmxremote.ssl=false",
			"-Dcom.sun.management.jmxremote.host=127.0.0.1", "-Djava.rmi.server.hostname=127.0.0.1")
		require.NoError(t, err)
	}
	m.seen = len(m.run.Log())
	m.mark = m.seen
	require.NoError(t, m.run.Start())
}

// file is Causeway's: its defaults but for how soon it looks for topics.
func (m *mirror) file(t *testing.T) string {
	t.Helper()
	of := func(name string, e end) string {
		tls := ""
		if e.ca != "" {
			tls = fmt.Sprintf(", tls: {ca_file: %s, cert_file: %s, key_file: %s}", e.ca, e.cert, e.keyFile)
		}
		return fmt.Sprintf("{name: %s, bootstrap: [%q]%s}", name, e.bootstrap, tls)
	}
	path := filepath.Join(m.dir, "causeway.yaml")
	text := fmt.Sprintf("route:\n  source: %s\n  target: %s\n  topics: {include: [%s], discover_interval: 5s}\nworker: {memory: 128MiB}\n",
		of(m.alias, m.ends[0]), of("target", m.ends[1]), strings.Join(m.topics, ", "))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// properties are MirrorMaker 2's: its defaults but for the names, one replica of everything, and how soon it looks for topics.
func (m *mirror) properties() map[string]string {
	p := map[string]string{
		"clusters": "SOURCE, target", "SOURCE->target.enabled": "true", "target->SOURCE.enabled": "false", "SOURCE->target.topics": strings.Join(m.topics, ", "),
		"replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy", "refresh.topics.interval.seconds": "5",
	}
	for _, key := range []string{
		"replication.factor", "offset-syncs.topic.replication.factor", "checkpoints.topic.replication.factor", "heartbeats.topic.replication.factor",
		"config.storage.replication.factor", "offset.storage.replication.factor", "status.storage.replication.factor",
	} {
		p[key] = "1"
	}
	for i, name := range []string{"SOURCE", "target"} {
		e := m.ends[i]
		if e.bootstrap != "" {
			p[name+".bootstrap.servers"] = e.bootstrap
		}
		if e.ca != "" {
			maps.Copy(p, map[string]string{
				name + ".security.protocol": "SSL", name + ".ssl.truststore.type": "PEM", name + ".ssl.truststore.location": e.ca,
				name + ".ssl.keystore.type": "PEM", name + ".ssl.keystore.location": e.store, name + ".ssl.endpoint.identification.algorithm": "",
			})
		}
	}
	maps.Copy(p, m.settings)
	named := map[string]string{}
	for k, v := range p {
		named[strings.ReplaceAll(k, "SOURCE", m.alias)] = strings.ReplaceAll(v, "SOURCE", m.alias)
	}
	return named
}

// stop ends the process with SIGTERM.
func (m *mirror) stop(t *testing.T) {
	t.Helper()
	require.True(t, m.run.Running(), "%s ended by itself:\n%s", m.kind, m.run.Tail())
	require.NoError(t, m.run.Stop())
}

// told is the first line of the log since the mark that matches, without what is this run's alone; empty if there is none.
func (m *mirror) told(pattern string) string {
	line := regexp.MustCompile(`(?m)^.*(?:` + pattern + `).*$`).FindString(m.run.Log()[m.mark:])
	return clean(line)
}

var (
	stamps = regexp.MustCompile(`^\d{4}-\d\d-\d\d[T ][\d:,.]+(?:Z|[+-]\d{4})? `)
	inside = regexp.MustCompile(`\[[^\]]*\] ?|FetchPosition\{|, offsetEpoch=.*?currentLeader=.*?\}+|\(org\.apache[^)]*\)`)
)

// clean shortens a line of a log to its level and what it says.
func clean(line string) string {
	line = inside.ReplaceAllString(stamps.ReplaceAllString(line, ""), "")
	line = strings.Join(strings.Fields(line), " ")
	if len(line) > 200 {
		line = line[:200] + "…"
	}
	if line == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(line, "`", "'") + "`"
}

// api is Causeway's answer to a call; code 0 if it does not answer, or is no Causeway.
func (m *mirror) api(t *testing.T, path string) (code int, body string) {
	t.Helper()
	address := regexp.MustCompile(`http://127\.0\.0\.1:[0-9]+`).FindString(m.run.Log()[m.seen:])
	if address == "" {
		return 0, ""
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+path, http.NoBody)
	require.NoError(t, err)
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(text)
}

// happening is an event of Causeway.
type happening struct {
	Type        string `json:"type"`
	Topic       string `json:"topic"`
	Partition   int    `json:"partition"`
	FirstOffset *int64 `json:"first_offset"`
	LastOffset  *int64 `json:"last_offset"`
	Reason      string `json:"reason"`
}

// event is an event of Causeway of some type about a topic, in short; empty if there is none.
func (m *mirror) event(t *testing.T, kind, topic string) string {
	t.Helper()
	var list struct {
		Items []happening `json:"items"`
	}
	if code, body := m.api(t, "/api/v1/events?limit=1000&type="+kind); code != http.StatusOK || json.Unmarshal([]byte(body), &list) != nil {
		return ""
	}
	for _, e := range list.Items {
		if e.Topic == topic && e.FirstOffset != nil && e.LastOffset != nil {
			return fmt.Sprintf("`%s` %s-%d [%d, %d]", e.Type, e.Topic, e.Partition, *e.FirstOffset, *e.LastOffset)
		}
		if e.Topic == topic {
			return fmt.Sprintf("`%s` %s-%d", e.Type, e.Topic, e.Partition)
		}
	}
	return ""
}

// figures asks MirrorMaker 2 through JMX for an attribute of all beans that match, as the tool prints them; nil if it does not answer.
func (m *mirror) figures(t *testing.T, beans, attribute string) (values map[string]string) {
	t.Helper()
	java, err := kafkatest.JDK("java")
	require.NoError(t, err)
	libs, err := kafkatest.Libs(version)
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), java, "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", filepath.Join(libs, "*"), "org.apache.kafka.tools.JmxTool",
		"--jmx-url", "service:jmx:rmi:///jndi/rmi://"+m.jmx+"/jmxrmi", "--object-name", beans, "--attributes", attribute, "--one-time", "--report-format", "properties")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Logf("JMX: %v\n%s", err, out)
		return nil
	}
	values = map[string]string{}
	for line := range strings.Lines(string(out)) {
		if name, value, found := strings.Cut(strings.TrimSpace(line), ":"+attribute+"="); found {
			values[name] = value
		}
	}
	return values
}

// tasks are the states of the tasks that copy, as JMX has them: running, failed.
func (m *mirror) tasks(t *testing.T) string {
	t.Helper()
	found := m.figures(t, "kafka.connect:type=connector-task-metrics,connector=MirrorSourceConnector,task=*", "status")
	if found == nil {
		return "unknown"
	}
	states := slices.Compact(slices.Sorted(maps.Values(found)))
	return strings.Join(states, ", ")
}
