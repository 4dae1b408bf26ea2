package deploy_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.yaml.in/yaml/v3"

	"github.com/causeway-mirror/causeway/internal/kafkad"
)

// get asks a server; one that is not there yet is status 0.
func get(t *testing.T, address string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	require.NoError(t, err)
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(text)
}

// series are the names and label sets that a process serves.
type series map[string][]map[string]string

// scrape reads what a process serves, and has promtool look at it where there is one.
func scrape(t *testing.T, address string) series {
	t.Helper()
	status, body := get(t, address+"/metrics")
	require.Equal(t, http.StatusOK, status, body)
	if _, err := exec.LookPath("promtool"); err == nil {
		promtool(t, body, "check", "metrics")
	}
	found := series{}
	for line := range strings.Lines(body) {
		m := regexp.MustCompile(`^([a-z_0-9]+)(?:\{(.*)\})? `).FindStringSubmatch(line)
		if m == nil {
			continue
		}
		labels := map[string]string{}
		for _, l := range regexp.MustCompile(`([a-z_]+)="((?:[^"\\]|\\.)*)"`).FindAllStringSubmatch(m[2], -1) {
			labels[l[1]] = l[2]
		}
		found[m[1]] = append(found[m[1]], labels)
	}
	return found
}

// requireListed compares the metrics of a process with the list: names, and exactly these labels.
func (s series) requireListed(t *testing.T, listed map[string]metric) {
	t.Helper()
	for name, all := range s {
		if !strings.HasPrefix(name, "causeway_") {
			continue
		}
		base := name
		if _, ok := listed[name]; !ok {
			base = regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
		}
		require.Contains(t, listed, base)
		for _, labels := range all {
			require.NotEmpty(t, labels["route"], name)
			delete(labels, "le")
			got := slices.DeleteFunc(slices.Sorted(maps.Keys(labels)), func(l string) bool { return l == "route" })
			require.ElementsMatch(t, listed[base].labels, got, name)
		}
	}
}

// has says whether a metric is served, as it is or as a histogram.
func (s series) has(name string) bool { return len(s[name]) > 0 || len(s[name+"_count"]) > 0 }

// TestProgramsServeWhatIsListed scrapes the demo, and a worker and a controller that reach nobody. Whatever the alerts look for is there from the
// start, so that none of them waits for a series that never comes.
func TestProgramsServeWhatIsListed(t *testing.T) {
	t.Parallel()
	needs(t, "promtool")
	listed := metrics(t)
	ports, err := kafkad.FreePorts(3)
	require.NoError(t, err)
	config := func(port int) string {
		return write(t, t.TempDir(), "causeway.yaml", `
route: {source: {name: a, bootstrap: ["127.0.0.1:1"]}, target: {name: b, bootstrap: ["127.0.0.1:2"]}, topics: {include: [x]}}
worker: {shutdown_timeout: 1s}
coordination: {zookeeper: "127.0.0.1:3"}
server: {listen: "`+kafkad.Loopback(port)+`"}
`)
	}
	start(t, "demo", binary(t, "causeway"), "demo", "--listen", kafkad.Loopback(ports[0]))
	start(t, "worker", binary(t, "causeway-worker"), "--config", config(ports[1]))
	start(t, "controller", binary(t, "causeway-controller"), "--config", config(ports[2]))

	served := series{}
	for i, port := range ports {
		address := "http://" + kafkad.Loopback(port)
		eventually(t, address+" serves", func() bool {
			status, body := get(t, address+"/metrics")
			return status == http.StatusOK && (i > 0 || regexp.MustCompile(`causeway_replication_latency_seconds_count\S* [1-9]`).MatchString(body))
		})
		found := scrape(t, address)
		found.requireListed(t, listed)
		for name, all := range found {
			served[name] = append(served[name], all...)
		}
	}
	for name, m := range listed {
		if coordinated := regexp.MustCompile("^causeway_(controller|gateway|helix)_").MatchString(name); !m.later && !coordinated {
			require.True(t, served.has(name), "%s is served by no process; does docs/metrics.md say since when?", name)
		}
	}
	for _, r := range alerts(t) {
		all, _ := uses(r.Expr)
		for _, u := range all {
			for label, values := range u.labels {
				if label == "job" || strings.HasPrefix(u.name, "causeway_controller_") {
					continue
				}
				for _, value := range values {
					require.True(t, slices.ContainsFunc(served[u.name], func(l map[string]string) bool { return l[label] == value }),
						"%s looks for %s{%s=%q}, which is not served", r.Alert, u.name, label, value)
				}
			}
		}
	}
}

// hurried writes the rules in a sixtieth of their time: what takes minutes takes seconds.
func hurried(t *testing.T, dir string) {
	t.Helper()
	var file rules
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "deploy/prometheus/alerts.yaml")), &file))
	faster := func(text string) string {
		return regexp.MustCompile(`\b([0-9]+)m\b`).ReplaceAllString(strings.ReplaceAll(text, "[1h]", "[60m]"), "${1}s")
	}
	seconds := regexp.MustCompile(`(_seconds\)? > )([0-9]+)`)
	for _, g := range file.Groups {
		for i := range g.Rules {
			r := &g.Rules[i]
			r.For = faster(r.For)
			r.Expr = seconds.ReplaceAllStringFunc(faster(r.Expr), func(bound string) string {
				m := seconds.FindStringSubmatch(bound)
				n, err := strconv.Atoi(m[2])
				require.NoError(t, err)
				return m[1] + strconv.Itoa(max(1, n/60))
			})
		}
	}
	text, err := yaml.Marshal(file)
	require.NoError(t, err)
	write(t, dir, "alerts.yaml", string(text))
}

// lame is a mirror whose target takes no orders, for lack of replicas in sync, and has fewer partitions of payments than the source. It returns the
// API's address.
func lame(t *testing.T) string {
	t.Helper()
	source, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(4, "orders", "payments"))
	require.NoError(t, err)
	t.Cleanup(source.Close)
	target, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(4, "orders"), kfake.SeedTopics(3, "payments"))
	require.NoError(t, err)
	t.Cleanup(target.Close)
	target.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
		target.KeepControl()
		return refused(req.(*kmsg.ProduceRequest)), nil, true
	})
	ports, err := kafkad.FreePorts(1)
	require.NoError(t, err)
	dir := t.TempDir()
	config := write(t, dir, "causeway.yaml", `
route:
  source: {name: sjc1, bootstrap: ["`+strings.Join(source.ListenAddrs(), `", "`)+`"]}
  target: {name: dca1, bootstrap: ["`+strings.Join(target.ListenAddrs(), `", "`)+`"]}
  topics: {include: [orders, payments], create: false}
offsets: {dir: "`+filepath.Join(dir, "state")+`"}
server: {listen: "`+kafkad.Loopback(ports[0])+`"}
`)
	feed(t, source.ListenAddrs())
	start(t, "standalone", binary(t, "causeway"), "standalone", "--config", config)
	return "http://" + kafkad.Loopback(ports[0])
}

// refused is a target's answer while too few of its replicas are in sync.
func refused(req *kmsg.ProduceRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.ProduceResponse)
	for _, asked := range req.Topics {
		topic := kmsg.NewProduceResponseTopic()
		topic.Topic, topic.TopicID = asked.Topic, asked.TopicID
		for _, p := range asked.Partitions {
			partition := kmsg.NewProduceResponseTopicPartition()
			partition.Partition, partition.ErrorCode = p.Partition, kerr.NotEnoughReplicas.Code
			topic.Partitions = append(topic.Partitions, partition)
		}
		resp.Topics = append(resp.Topics, topic)
	}
	return resp
}

// feed writes some hundred records a second, a batch each, until the test ends.
func feed(t *testing.T, bootstrap []string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap...), kgo.DefaultProduceTopic("orders"), kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	var feeding sync.WaitGroup
	feeding.Go(func() {
		for rest(ctx) == nil {
			for range 40 {
				client.Produce(ctx, &kgo.Record{Value: []byte("an order")}, nil)
			}
		}
	})
	t.Cleanup(func() {
		stop()
		feeding.Wait()
		client.Close()
	})
}

// TestPrometheusRousesPeople has a real Prometheus scrape a lame mirror, by the rules in a sixtieth of their time. Then the runbook's commands are
// typed.
func TestPrometheusRousesPeople(t *testing.T) {
	t.Parallel()
	needs(t, "prometheus")
	api := lame(t)
	dir := t.TempDir()
	hurried(t, dir)
	config := write(t, dir, "prometheus.yml", `
global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}
rule_files: [alerts.yaml]
scrape_configs: [{job_name: causeway, static_configs: [{targets: ["`+strings.TrimPrefix(api, "http://")+`"]}]}]
`)
	ports, err := kafkad.FreePorts(1)
	require.NoError(t, err)
	prometheus := "http://" + kafkad.Loopback(ports[0])
	start(t, "prometheus", "prometheus", "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+kafkad.Loopback(ports[0]))

	missing := []string{"CausewayLagGrows", "CausewayPartitionHalted"}
	eventually(t, "both alerts fire", func() bool {
		_, body := get(t, prometheus+"/api/v1/alerts")
		var answer struct {
			Data struct {
				Alerts []struct {
					State       string            `json:"state"`
					Labels      map[string]string `json:"labels"`
					Annotations map[string]string `json:"annotations"`
				} `json:"alerts"`
			} `json:"data"`
		}
		if json.Unmarshal([]byte(body), &answer) != nil {
			return false
		}
		for _, a := range answer.Data.Alerts {
			if name := a.Labels["alertname"]; a.State == "firing" && slices.Contains(missing, name) {
				missing = slices.DeleteFunc(missing, func(m string) bool { return m == name })
				require.Contains(t, a.Annotations["summary"], "@sjc1@dca1@1")
				t.Log(a.Annotations["summary"])
			}
		}
		return len(missing) == 0
	})
	// Workers are a cluster's, and the clusters here keep one epoch for all partitions, so that a reset would stop the others.
	consult(t, api, func(words []string) bool { return words[1] != "workers" && !slices.Contains(words, "reset") })
}

// consult types the runbook's commands for one mirror, those that are wanted.
func consult(t *testing.T, api string, wanted func(words []string) bool) {
	t.Helper()
	program := binary(t, "causeway")
	typed := 0
	inShell := false
	lines := bufio.NewScanner(strings.NewReader(read(t, "docs/runbook.md")))
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "```") {
			inShell = line == "```sh"
			continue
		}
		words := strings.Fields(line)
		switch {
		case !inShell || words[0] == "export":
		case words[0] == "curl":
			status, body := get(t, strings.Replace(strings.Trim(words[1], "'"), "http://127.0.0.1:8080", api, 1))
			require.Contains(t, []int{http.StatusOK, http.StatusServiceUnavailable}, status, "%s: %s", line, body)
		case wanted(words):
			require.Equal(t, "causeway", words[0], line)
			run := exec.CommandContext(t.Context(), program, words[1:]...)
			run.Env = append(run.Environ(), "CAUSEWAY_API="+api)
			out, err := run.CombinedOutput()
			require.NoError(t, err, "%s: %s", line, out)
			typed++
		}
	}
	require.Greater(t, typed, 20)
}
