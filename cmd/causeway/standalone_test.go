package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
)

// process is a causeway command that runs beside the test.
type process struct {
	out, errs safeBuffer
	stop      context.CancelFunc
	done      chan int
}

func start(t *testing.T, args ...string) *process {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	p := &process{stop: cancel, done: make(chan int, 1)}
	go func() { p.done <- run(ctx, args, &p.out, &p.errs) }()
	t.Cleanup(cancel)
	return p
}

// api waits until the process says where its API is.
func (p *process) api(t *testing.T) string {
	t.Helper()
	address := regexp.MustCompile(`http://[0-9.:]+`)
	require.Eventually(t, func() bool { return address.MatchString(p.out.String()) }, 20*time.Second, 5*time.Millisecond, "stderr: %s", p.errs.String())
	return address.FindString(p.out.String())
}

// end interrupts the process as a signal does and returns its exit code.
func (p *process) end(t *testing.T) int {
	t.Helper()
	p.stop()
	select {
	case code := <-p.done:
		return code
	case <-time.After(40 * time.Second):
		t.Fatalf("the process did not stop; stderr: %s", p.errs.String())
		return 0
	}
}

func get(t *testing.T, url string) (code int, body string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	resp, err := client.Do(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(text)
}

func TestStandaloneMirrorsStopsAndResumes(t *testing.T) {
	t.Parallel()
	source, target := embedded(t, "orders", "secret"), embedded(t)
	fill(t, source, "orders", sampleRecords()...)
	clusters := []string{"--source", strings.Join(source.ListenAddrs(), ","), "--target", strings.Join(target.ListenAddrs(), ",")}
	args := append([]string{
		"standalone", "--listen", "127.0.0.1:0", "--state", filepath.Join(t.TempDir(), "state"), "--topics", ".*,absent",
		"--exclude", "secret", "--rename", "{source}.{topic}",
	}, clusters...)
	for round := range 3 {
		p := start(t, args...)
		api := p.api(t)
		code, stdout, stderr := command(t.Context(), "wait", "--topic", "orders", "--timeout", "30s", "--api", api)
		require.Equal(t, 0, code, stdout+stderr+p.errs.String())
		fill(t, source, "orders", sampleRecords()...) // while it runs
		code, stdout, stderr = command(t.Context(), "wait", "--timeout", "10s", "--api", api)
		if code != 0 {
			_, parts, _ := command(t.Context(), "partitions", "list", "-o", "json", "--api", api)
			t.Log(round, parts)
		}
		require.Equal(t, 0, code, stdout+stderr+p.errs.String())
		_, stdout, _ = command(t.Context(), "topics", "list", "--excluded", "--api", api)
		require.Regexp(t, `secret +matches the exclude pattern`, stdout)
		require.Regexp(t, `absent +does not exist on the source`, stdout)
		status, body := get(t, api+"/readyz")
		require.Equal(t, http.StatusOK, status, body)
		require.Equal(t, 0, p.end(t), p.errs.String())
		require.Contains(t, p.errs.String(), "absent", "a topic that is named and not there is warned of")

		code, stdout, stderr = command(t.Context(), append([]string{"verify", "--topics", "orders", "--rename", "source.{topic}"}, clusters...)...)
		require.Equal(t, 0, code, stdout+stderr)
		require.Contains(t, stdout, "equal: "+strconv.Itoa(5*(round+2))+" records", "each record once, over every restart")
		require.Nil(t, target.TopicInfo("secret"))
	}
}

// TestStandaloneTellsOfTopicsWithoutAName: others are mirrored, and nothing says that all is well.
func TestStandaloneTellsOfTopicsWithoutAName(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("l", 245)
	source, target := embedded(t, "orders", long), embedded(t)
	fill(t, source, "orders", sampleRecords()...)
	p := start(t, "standalone", "--listen", "127.0.0.1:0", "--state", filepath.Join(t.TempDir(), "state"), "--topics", ".*", "--rename", "{source}.{topic}",
		"--source", source.ListenAddrs()[0], "--target", target.ListenAddrs()[0])
	api := p.api(t)
	code, stdout, stderr := command(t.Context(), "wait", "--topic", "orders", "--timeout", "30s", "--api", api)
	require.Equal(t, 0, code, stdout+stderr+p.errs.String())
	code, _, stderr = command(t.Context(), "wait", "--timeout", "100ms", "--api", api)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "topic "+long+" cannot be mirrored: rename: ")
	status, body := get(t, api+"/readyz")
	require.Equal(t, http.StatusOK, status, "single halted partitions are listed only")
	require.Contains(t, body, `"halted":["`+long+`-0","`+long+`-1"]`)
	_, stdout, _ = command(t.Context(), "status", "--api", api)
	require.Contains(t, stdout, "2 halted, 2 mirroring")
	require.Contains(t, stdout, "warning partition_halted "+long+" topic cannot be mirrored: rename: ")
	require.Equal(t, 0, p.end(t), p.errs.String())
}

func TestStartLatestAppliesToFirstTopicsOnly(t *testing.T) {
	t.Parallel()
	source, target := embedded(t, "orders"), embedded(t)
	fill(t, source, "orders", sampleRecords()...)
	config := writeFile(t, "route: {topics: {include: [.*], discover_interval: 50ms}, start: latest}")
	p := start(t, "standalone", "--config", config, "--listen", "127.0.0.1:0", "--state", filepath.Join(t.TempDir(), "state"),
		"--source", source.ListenAddrs()[0], "--target", target.ListenAddrs()[0])
	api := p.api(t)
	code, _, stderr := command(t.Context(), "wait", "--topic", "orders", "--api", api)
	require.Equal(t, 0, code, stderr+p.errs.String())
	require.NoError(t, source.CreateTopic("later", 1, nil))
	fill(t, source, "later", sampleRecords()[:3]...)
	code, _, stderr = command(t.Context(), "wait", "--topic", "later", "--api", api)
	require.Equal(t, 0, code, stderr)
	require.Equal(t, 0, p.end(t), p.errs.String())
	ends := func(topic string) (sum int64) {
		for _, info := range target.PartitionInfos(topic) {
			sum += info.HighWatermark
		}
		return sum
	}
	require.Equal(t, int64(0), ends("orders"), "latest: what was there before the first discovery stays behind")
	require.Equal(t, int64(3), ends("later"), "a topic found later is copied from its beginning")
}

func TestStandaloneKeepsTryingAndSaysWhy(t *testing.T) {
	t.Parallel()
	reserved, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := reserved.Addr().String()
	require.NoError(t, reserved.Close())
	target := embedded(t)
	p := start(t, "standalone", "--topics", "orders", "--source", address, "--target", target.ListenAddrs()[0],
		"--listen", "127.0.0.1:0", "--state", filepath.Join(t.TempDir(), "state"))
	api := p.api(t)
	require.Eventually(t, func() bool {
		code, body := get(t, api+"/readyz")
		return code == http.StatusServiceUnavailable && strings.Contains(body, `: source (`+address+`): unreachable: dial tcp `+address+`: connect: connection refused"`)
	}, 30*time.Second, 20*time.Millisecond)
	code, _ := get(t, api+"/healthz")
	require.Equal(t, http.StatusOK, code)
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	n, err := strconv.Atoi(port)
	require.NoError(t, err)
	source, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(n))
	require.NoError(t, err)
	t.Cleanup(source.Close)
	require.NoError(t, source.CreateTopic("orders", 2, nil))
	fill(t, source, "orders", sampleRecords()...)
	exit, stdout, stderr := command(t.Context(), "wait", "--topic", "orders", "--timeout", "30s", "--api", api)
	require.Equal(t, 0, exit, stdout+stderr+p.errs.String())
	require.Equal(t, 0, p.end(t), p.errs.String())
}

func TestDemoEndToEnd(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := command(t.Context(), "demo", "--for", "3s", "--rate", "3000", "--listen", "127.0.0.1:0")
	require.Equal(t, 0, code, stdout+stderr)
	require.Contains(t, stdout, "verdict: equal: ")
	require.Contains(t, stdout, "API and UI      http://127.0.0.1:")
	require.Empty(t, stderr)
}

func TestDemoKeepsItsFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	counts := regexp.MustCompile(`equal: ([0-9,]+) records`)
	var seen []int
	for range 2 {
		code, stdout, stderr := command(t.Context(), "demo", "--for", "500ms", "--rate", "500", "--listen", "127.0.0.1:0", "--dir", dir)
		require.Equal(t, 0, code, stdout+stderr)
		n, err := strconv.Atoi(strings.ReplaceAll(counts.FindStringSubmatch(stdout)[1], ",", ""))
		require.NoError(t, err, stdout)
		seen = append(seen, n)
	}
	require.Greater(t, seen[1], seen[0], "the second demo goes on where the first one stopped")
}

// TestAResetInTheDemoStopsNoOtherPartition: embedded clusters keep one epoch for all partitions of a producer, and would refuse the others'.
func TestAResetInTheDemoStopsNoOtherPartition(t *testing.T) {
	t.Parallel()
	p := start(t, "demo", "--listen", "127.0.0.1:0")
	api := p.api(t)
	code, stdout, stderr := command(t.Context(), "wait", "--lag", "1000", "--timeout", "30s", "--api", api)
	require.Equal(t, 0, code, stdout+stderr)
	code, _, stderr = command(t.Context(), "partitions", "reset", "--topic", "orders", "--partition", "0", "--to", "earliest", "--api", api)
	require.Equal(t, exitFailure, code)
	require.Contains(t, stderr, "keep one epoch for all partitions of a producer, so that a reset of one would stop the others; "+
		"try it with demo --kafka (conflict, http 409)")
	file := filepath.Join(t.TempDir(), "offsets.json")
	stored := regexp.MustCompile(`json: ([2-9]|[0-9]{2,}) positions written`)
	require.Eventually(t, func() bool {
		_, stdout, _ = command(t.Context(), "offsets", "export", "--output", file, "--api", api)
		return stored.MatchString(stdout)
	}, time.Minute, 20*time.Millisecond)
	code, _, stderr = command(t.Context(), "offsets", "import", file, "--api", api)
	require.Equal(t, exitFailure, code)
	require.Equal(t, 1, strings.Count(stderr, "demo --kafka"), "one reason is told once: "+stderr)
	code, stdout, stderr = command(t.Context(), "wait", "--lag", "1000", "--timeout", "30s", "--api", api)
	require.Equal(t, 0, code, stdout+stderr)
	_, stdout, _ = command(t.Context(), "partitions", "list", "--api", api)
	require.NotContains(t, stdout, "halted")
	require.Equal(t, 0, p.end(t), p.errs.String())
}

func TestEndlessDemoEndsCleanly(t *testing.T) {
	t.Parallel()
	p := start(t, "demo", "--listen", "127.0.0.1:0")
	api := p.api(t)
	code, stdout, stderr := command(t.Context(), "wait", "--topic", "orders", "--timeout", "30s", "--api", api)
	require.Equal(t, 0, code, stdout+stderr)
	require.Equal(t, 0, p.end(t), p.errs.String())
}
