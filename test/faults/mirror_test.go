package faults_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

const (
	upWithin     = 60 * time.Second  // until a process serves its API; several start on few cores
	stopWithin   = 32 * time.Second  // from SIGTERM to the end: the default shutdown timeout and a little
	caughtWithin = 120 * time.Second // until everything is on the target after the last fault
	logLines     = 150               // of each process, printed by a failed test
)

// mirrorer is a `causeway standalone` that is started again and again from one state folder.
type mirrorer struct {
	name string
	dir  string // state and logs
	args []string
	run  *kafkatest.Program // the last start; nil before the first
	seen int                // length of the log before the last start
}

// newMirrorer prepares a process; flags are those of standalone but for --state and --listen. It is killed with the test.
func newMirrorer(t *testing.T, name string, flags ...string) *mirrorer {
	t.Helper()
	m := &mirrorer{name: name, dir: filepath.Join(t.ArtifactDir(), name), args: flags}
	require.NoError(t, os.MkdirAll(m.dir, 0o750))
	t.Cleanup(func() {
		if m.run == nil {
			return
		}
		require.NoError(t, m.run.Kill())
		if t.Failed() {
			lines := strings.Split(strings.TrimSpace(m.run.Log()), "\n")
			t.Logf("--- %s, last lines of its log (all of it with -artifacts) ---\n%s", name, strings.Join(lines[max(0, len(lines)-logLines):], "\n"))
		}
	})
	return m
}

func (m *mirrorer) state() string { return filepath.Join(m.dir, "state") }

// start starts the process, with more flags if there are any, and does not wait for anything.
func (m *mirrorer) start(t *testing.T, more ...string) {
	t.Helper()
	args := append([]string{program, "standalone", "--state", m.state(), "--listen", "127.0.0.1:0", "--memory", "128MiB"}, m.args...)
	next := kafkatest.NewProgram(m.name, m.dir, append(args, more...)...)
	m.seen = len(next.Log())
	m.run = next
	require.NoError(t, next.Start())
}

// kill ends the process with SIGKILL. That it ended by itself before is a failure.
func (m *mirrorer) kill(t *testing.T) {
	t.Helper()
	require.True(t, m.run.Running(), "%s ended by itself", m.name)
	require.NoError(t, m.run.Kill())
}

// stop ends the process with SIGTERM, which it must heed in time and with exit code 0, and returns how long that took.
func (m *mirrorer) stop(t *testing.T) time.Duration {
	t.Helper()
	require.True(t, m.run.Running(), "%s ended by itself", m.name)
	began := time.Now()
	require.NoError(t, m.run.Stop())
	took := time.Since(began)
	require.Equal(t, 0, m.run.ExitCode(), "exit code of %s after SIGTERM", m.name)
	require.Less(t, took, stopWithin, "shutdown of %s", m.name)
	return took
}

func (m *mirrorer) pause(t *testing.T) {
	t.Helper()
	require.True(t, m.run.Running(), "%s ended by itself", m.name)
	require.NoError(t, m.run.Pause())
}

func (m *mirrorer) resume(t *testing.T) {
	t.Helper()
	require.NoError(t, m.run.Resume())
}

// copyTo gives another process a copy of this one's state. This one must be stopped or paused.
func (m *mirrorer) copyTo(t *testing.T, other *mirrorer) {
	t.Helper()
	require.NoError(t, os.RemoveAll(other.state()))
	require.NoError(t, os.CopyFS(other.state(), os.DirFS(m.state())))
}

// api waits until the process says where its API is.
func (m *mirrorer) api(t *testing.T) string {
	t.Helper()
	address := regexp.MustCompile(`http://127\.0\.0\.1:[0-9]+`)
	found := ""
	require.Eventually(t, func() bool {
		found = address.FindString(m.run.Log()[m.seen:])
		return found != "" || !m.run.Running()
	}, upWithin, 10*time.Millisecond, "%s does not serve", m.name)
	require.NotEmpty(t, found, "%s ended by itself", m.name)
	return found
}

// caughtUp waits until all that is in the source topic at the time of the call is on the target.
func (m *mirrorer) caughtUp(t *testing.T, topic string) {
	t.Helper()
	q := url.Values{"topic": {topic}, "lag": {"0"}, "timeout": {"10s"}}
	deadline := time.Now().Add(caughtWithin)
	for {
		code, body := get(t, m.api(t)+"/api/v1/wait?"+q.Encode())
		if code == http.StatusOK {
			return
		}
		if time.Now().After(deadline) {
			_, parts := get(t, m.api(t)+"/api/v1/partitions")
			require.FailNow(t, "not caught up", "%s: topic %s after %v: %s\n%s", m.name, topic, caughtWithin, body, indent(parts))
		}
		pass(t, 100*time.Millisecond)
	}
}

// flowing writes a few records to the source topic and waits until the process, which was just started, has copied them: faults that come
// before would only meet the start.
func (m *mirrorer) flowing(t *testing.T, k *kafkatest.Cluster, topic string) {
	t.Helper()
	kafkatest.Load(t, k.Bootstrap(), kafkatest.LoadOptions{Topic: topic, Records: 200, First: 900_000_000})
	m.caughtUp(t, topic)
}

func indent(text string) string {
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		return text
	}
	out, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return text
	}
	return string(out)
}

// get asks the API; a process that does not answer is code 0.
func get(t *testing.T, address string) (code int, body string) {
	t.Helper()
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	require.NoError(t, err)
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

// pass lets time pass: what a test waits for here is that something bad happens, not that something is ready.
func pass(t *testing.T, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
}

// between gives standalone its two clusters and the topics to copy.
func between(src, dst []string, topics string, more ...string) []string {
	return append([]string{"--source", strings.Join(src, ","), "--target", strings.Join(dst, ","), "--topics", topics}, more...)
}

// requireCopy compares the topics record by record and fails unless the target has each record once, in order. At least so many records
// must have been there, or the test would have tried nothing.
func requireCopy(t *testing.T, src, dst []string, topic, to string, least int64) { //nolint:revive // two clusters, two names
	t.Helper()
	d := kafkatest.Compare(t, src, dst, topic, to)
	t.Log(topic, d.String())
	require.True(t, d.Equal(), d.String())
	require.GreaterOrEqual(t, d.Records, least, "topic %s is too small to have tried anything", topic)
}
