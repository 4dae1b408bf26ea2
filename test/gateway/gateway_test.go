package gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// within is for all that one client does.
const within = 2 * time.Minute

// gate is a gateway at work.
type gate struct {
	at, metrics string // host:port
	run         *kafkatest.Program
}

// open starts `causeway gateway` before a cluster, with the first broker alone to ask.
func open(t *testing.T, c *kafkatest.Cluster) *gate {
	t.Helper()
	g := &gate{run: kafkatest.NewProgram("gateway", t.TempDir(), program, "gateway", "--upstream", c.Bootstrap()[0], "--listen", "127.0.0.1:0",
		"--advertise", "127.0.0.1", "--metrics", "127.0.0.1:0")}
	require.NoError(t, g.run.Start())
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(g.run.Log())
		}
		require.NoError(t, g.run.Kill())
	})
	said := regexp.MustCompile(`(?s)will show \S+ at (\S+) as .*metrics at http://(\S+)/metrics`)
	require.Eventually(t, func() bool {
		m := said.FindStringSubmatch(g.run.Log())
		if m != nil {
			g.at, g.metrics = m[1], m[2]
		}
		return m != nil
	}, within, 10*time.Millisecond)
	return g
}

// metric is the value of one of the gateway's metrics, labels included.
func (g *gate) metric(t *testing.T, name string) float64 {
	t.Helper()
	resp, err := http.Get("http://" + g.metrics + "/metrics")
	require.NoError(t, err)
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			v, err := strconv.ParseFloat(value, 64)
			require.NoError(t, err)
			return v
		}
	}
	require.NoError(t, lines.Err())
	return 0
}

// java runs one of Kafka's own programs to its end and returns what it printed.
func java(t *testing.T, version string, stdin io.Reader, class string, args ...string) (string, error) {
	t.Helper()
	program, err := kafkatest.JDK("java")
	if err != nil {
		return "", err
	}
	libs, err := kafkatest.Libs(version)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, append([]string{"-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", filepath.Join(libs, "*"), class}, args...)...)
	cmd.Stdin = stdin
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", class, err, out)
	}
	return string(out), err
}

const (
	topicTool    = "org.apache.kafka.tools.TopicCommand"
	groupTool    = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
	consumerTool = "org.apache.kafka.tools.consumer.ConsoleConsumer"
	shareTool    = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
)

func producerTool(version string) string {
	if version == kafkatest.Kafka3 {
		return "kafka.tools.ConsoleProducer"
	}
	return "org.apache.kafka.tools.ConsoleProducer"
}

// numbers are lines from one number to before another.
func numbers(from, to int) (lines []string) {
	for i := from; i < to; i++ {
		lines = append(lines, fmt.Sprintf("record %06d", i))
	}
	return lines
}

func viaKgo(t *testing.T, at, topic string, lines []string) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(at))
	require.NoError(t, err)
	defer cl.Close()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	var records []*kgo.Record
	for _, line := range lines {
		records = append(records, &kgo.Record{Topic: topic, Value: []byte(line)})
	}
	require.NoError(t, cl.ProduceSync(ctx, records...).FirstErr())
}

// viaSarama also reads one record back.
func viaSarama(t *testing.T, at, topic string, lines []string) {
	t.Helper()
	cfg := sarama.NewConfig()
	cfg.Version, cfg.Producer.Return.Successes = sarama.V2_8_0_0, true
	producer, err := sarama.NewSyncProducer([]string{at}, cfg)
	require.NoError(t, err)
	defer producer.Close()
	var messages []*sarama.ProducerMessage
	for _, line := range lines {
		messages = append(messages, &sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder(line)})
	}
	require.NoError(t, producer.SendMessages(messages))
	consumer, err := sarama.NewConsumer([]string{at}, cfg)
	require.NoError(t, err)
	defer consumer.Close()
	reader, err := consumer.ConsumePartition(topic, messages[0].Partition, messages[0].Offset)
	require.NoError(t, err)
	defer reader.Close()
	select {
	case m := <-reader.Messages():
		require.Equal(t, lines[0], string(m.Value))
	case <-time.After(within):
		require.Fail(t, "nothing comes")
	}
}

// TestEverybodyWorksThroughTheGateway has a gateway before a cluster of each kind, and brokers that are started anew meanwhile.
func TestEverybodyWorksThroughTheGateway(t *testing.T) {
	clusters, gates := map[string]*kafkatest.Cluster{}, map[string]*gate{}
	for version, brokers := range map[string]int{kafkatest.Kafka3: 1, kafkatest.Kafka4: 3} {
		clusters[version] = kafkatest.Start(t, kafkatest.Options{Version: version, Brokers: brokers})
		gates[version] = open(t, clusters[version])
		t.Run("clients of "+version, func(t *testing.T) { clients(t, clusters[version], gates[version]) })
	}
	t.Run("the mirror", func(t *testing.T) {
		src, dst := kafkatest.Kafka3, kafkatest.Kafka4
		mirrors(t, clusters[src], clusters[dst], gates[src], gates[dst])
	})
	for _, g := range gates {
		require.NoError(t, g.run.Stop())
		require.Equal(t, 0, g.run.ExitCode())
	}
}

// clients has Kafka's tools, Java's consumers in a group, franz-go and sarama do what they do.
func clients(t *testing.T, c *kafkatest.Cluster, g *gate) {
	t.Helper()
	const each = 500
	version, brokers := c.Version(), len(c.Brokers())
	_, err := java(t, version, nil, topicTool, "--bootstrap-server", g.at, "--create", "--topic", "words", "--partitions", "6",
		"--replication-factor", strconv.Itoa(brokers))
	require.NoError(t, err)
	type output struct {
		text string
		err  error
	}
	read := make(chan output, 1)
	go func() {
		text, err := java(t, version, nil, consumerTool, "--bootstrap-server", g.at, "--topic", "words", "--group", "readers", "--from-beginning",
			"--max-messages", strconv.Itoa(4*each), "--timeout-ms", strconv.Itoa(int(within/time.Millisecond)))
		read <- output{text, err}
	}()
	typed := strings.NewReader(strings.Join(numbers(0, each), "\n") + "\n")
	_, err = java(t, version, typed, producerTool(version), "--bootstrap-server", g.at, "--topic", "words")
	require.NoError(t, err)
	viaKgo(t, g.at, "words", numbers(each, 2*each))
	require.NoError(t, c.Broker(brokers-1).Stop())
	require.NoError(t, c.Broker(brokers-1).Start(t.Context()))
	viaKgo(t, g.at, "words", numbers(2*each, 3*each))
	viaSarama(t, g.at, "words", numbers(3*each, 4*each))
	got := <-read
	require.NoError(t, got.err)
	lines := strings.Split(strings.TrimSpace(got.text), "\n")
	slices.Sort(lines)
	require.Equal(t, numbers(0, 4*each), slices.Compact(lines))

	topics, err := java(t, version, nil, topicTool, "--bootstrap-server", g.at, "--list")
	require.NoError(t, err)
	require.Contains(t, strings.Split(topics, "\n"), "words")
	groups, err := java(t, version, nil, groupTool, "--bootstrap-server", g.at, "--list")
	require.NoError(t, err)
	require.Contains(t, strings.Split(groups, "\n"), "readers")

	if version == kafkatest.Kafka4 {
		newGroups(t, g, numbers(0, 4*each))
	}
	require.InDelta(t, brokers, g.metric(t, `causeway_gateway_brokers{route="gateway"}`), 0)
	require.Zero(t, g.metric(t, `causeway_gateway_requests_refused_total{route="gateway"}`))
	for _, kind := range []string{"Produce", "Fetch", "JoinGroup", "OffsetCommit", "FindCoordinator", "ListGroups", "CreateTopics"} {
		require.Positive(t, g.metric(t, fmt.Sprintf(`causeway_gateway_requests_total{request=%q,route="gateway"}`, kind)), kind)
	}
}

// newGroups has Kafka 4's kinds of groups read what is in the topic: that of which the brokers assign the partitions (KIP-848), and a share group
// (KIP-932), whose answers name brokers in fields of their own.
func newGroups(t *testing.T, g *gate, want []string) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(g.at))
	require.NoError(t, err)
	defer cl.Close()
	earliest := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	earliest.Name, earliest.Value = "share.auto.offset.reset", new("earliest")
	group := kmsg.NewIncrementalAlterConfigsRequestResource()
	group.ResourceType, group.ResourceName, group.Configs = kmsg.ConfigResourceTypeGroupConfig, "sharers",
		[]kmsg.IncrementalAlterConfigsRequestResourceConfig{earliest}
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	req.Resources = append(req.Resources, group)
	resp, err := req.RequestWith(t.Context(), cl)
	require.NoError(t, err)
	require.NoError(t, kerr.ErrorForCode(resp.Resources[0].ErrorCode))
	for class, args := range map[string][]string{
		consumerTool: {"--group", "assigned", "--from-beginning", "--command-property", "group.protocol=consumer"},
		shareTool:    {"--group", "sharers"},
	} {
		args = append(args, "--bootstrap-server", g.at, "--topic", "words", "--max-messages", strconv.Itoa(len(want)),
			"--timeout-ms", strconv.Itoa(int(within/time.Millisecond)))
		text, err := java(t, kafkatest.Kafka4, nil, class, args...)
		require.NoError(t, err)
		lines := strings.Split(strings.TrimSpace(text), "\n")
		slices.Sort(lines)
		require.Equal(t, want, slices.Compact(lines), class)
	}
	for _, kind := range []string{"ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "ShareFetch"} {
		require.Positive(t, g.metric(t, fmt.Sprintf(`causeway_gateway_requests_total{request=%q,route="gateway"}`, kind)), kind)
	}
}

// mirrors has the mirror reach neither its source nor its target otherwise.
func mirrors(t *testing.T, src, dst *kafkatest.Cluster, from, to *gate) {
	t.Helper()
	const records, size = 20000, 500
	src.CreateTopic(t, "mirrored", 4, nil)
	kafkatest.Load(t, src.Bootstrap(), kafkatest.LoadOptions{Topic: "mirrored", Records: records, ValueBytes: size, Codec: "none"})
	bytes := func(g *gate, direction string) float64 {
		return g.metric(t, fmt.Sprintf(`causeway_gateway_bytes_total{direction=%q,route="gateway"}`, direction))
	}
	read, written := bytes(from, "out"), bytes(to, "in")
	mirror := kafkatest.NewProgram("mirror", t.TempDir(), program, "standalone", "--source", from.at, "--target", to.at, "--topics", "mirrored",
		"--listen", "127.0.0.1:0", "--memory", "128MiB")
	require.NoError(t, mirror.Start())
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(mirror.Log())
		}
		require.NoError(t, mirror.Kill())
	})
	require.Eventually(t, func() bool { return bytes(to, "in")-written > records*size && copied(t, src, dst) }, within, 500*time.Millisecond)
	require.Greater(t, bytes(from, "out")-read, float64(records*size))
	require.NoError(t, mirror.Stop())
	require.Equal(t, 0, mirror.ExitCode())
}

// copied says whether all has arrived; what is different is a failure.
func copied(t *testing.T, src, dst *kafkatest.Cluster) bool {
	t.Helper()
	d, err := kafkatest.CompareTopics(t.Context(), kafkatest.Comparison{Source: src.Bootstrap(), Target: dst.Bootstrap(), Topic: "mirrored"})
	if err != nil {
		return false // the topic is not there yet
	}
	require.Zero(t, d.Extra, d.String())
	require.Zero(t, d.Disordered, d.String())
	return d.Equal()
}
