package cluster_test

import (
	"encoding/json"
	"fmt"
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
	logLines     = 200               // of each process, printed by a failed test
	poll         = 10 * time.Millisecond
)

// worker is a worker process that is started again and again under one id.
type worker struct {
	id   string
	dir  string
	args []string
	run  *kafkatest.Program // the last start; nil before the first
	seen int                // length of the log before the last start
}

// newWorker prepares a process with the native file. It is killed with the test.
func newWorker(t *testing.T, id, file string) *worker {
	t.Helper()
	w := prepareWorker(t, id)
	path := filepath.Join(w.dir, "causeway.yaml")
	require.NoError(t, os.WriteFile(path, []byte(file), 0o600))
	w.args = []string{"--config", path}
	return w
}

func prepareWorker(t *testing.T, id string) *worker {
	t.Helper()
	w := &worker{id: id, dir: filepath.Join(t.ArtifactDir(), id)}
	require.NoError(t, os.MkdirAll(w.dir, 0o750))
	t.Cleanup(func() {
		if w.run == nil {
			return
		}
		require.NoError(t, w.run.Kill())
		if t.Failed() {
			lines := strings.Split(strings.TrimSpace(w.run.Log()), "\n")
			t.Logf("--- %s, last lines of its log ---\n%s", id, strings.Join(lines[max(0, len(lines)-logLines):], "\n"))
		}
	})
	return w
}

func (w *worker) start(t *testing.T) {
	t.Helper()
	next := kafkatest.NewProgram(w.id, w.dir, append([]string{filepath.Join(programs, "worker")}, w.args...)...)
	w.seen = len(next.Log())
	w.run = next
	require.NoError(t, next.Start())
}

// kill ends the process with SIGKILL. That it ended by itself before is a failure.
func (w *worker) kill(t *testing.T) {
	t.Helper()
	require.True(t, w.run.Running(), "%s ended by itself", w.id)
	require.NoError(t, w.run.Kill())
}

// stop ends the process with SIGTERM, which it must heed in time and with exit code 0.
func (w *worker) stop(t *testing.T) {
	t.Helper()
	require.True(t, w.run.Running(), "%s ended by itself", w.id)
	began := time.Now()
	require.NoError(t, w.run.Stop())
	require.Equal(t, 0, w.run.ExitCode(), "exit code of %s after SIGTERM", w.id)
	require.Less(t, time.Since(began), stopWithin, "shutdown of %s", w.id)
}

func (w *worker) pause(t *testing.T) {
	t.Helper()
	require.NoError(t, w.run.Pause())
}

func (w *worker) resume(t *testing.T) {
	t.Helper()
	require.NoError(t, w.run.Resume())
}

// log is what the last start wrote.
func (w *worker) log() string { return w.run.Log()[w.seen:] }

// api waits until the process says where its API is.
func (w *worker) api(t *testing.T) string {
	t.Helper()
	address := regexp.MustCompile(`api=(http://[^ ]+:[0-9]+)`)
	var found []string
	require.Eventually(t, func() bool {
		found = address.FindStringSubmatch(w.log())
		return found != nil || !w.run.Running()
	}, upWithin, 10*time.Millisecond, "%s does not serve", w.id)
	require.NotNil(t, found, "%s ended by itself:\n%s", w.id, w.log())
	return found[1]
}

// ready waits until the process says that it is.
func (w *worker) ready(t *testing.T) {
	t.Helper()
	api := w.api(t)
	require.Eventually(t, func() bool { code, _ := get(t, api+"/readyz"); return code == http.StatusOK }, upWithin, 20*time.Millisecond)
}

// caughtUp waits until the worker has all partitions of the topic, and all that is in it then is on the target: of a share a worker answers for its share.
func (w *worker) caughtUp(t *testing.T, topic string, share int) {
	t.Helper()
	require.Eventually(t, func() bool {
		has := 0
		for _, n := range w.states(t) {
			has += n
		}
		return has == share
	}, caughtWithin, 20*time.Millisecond, "%s does not get all of %s", w.id, topic)
	q := url.Values{"topic": {topic}, "lag": {"0"}, "timeout": {"10s"}}
	deadline := time.Now().Add(caughtWithin)
	for {
		code, body := get(t, w.api(t)+"/api/v1/wait?"+q.Encode())
		if code == http.StatusOK {
			return
		}
		if time.Now().After(deadline) {
			_, parts := get(t, w.api(t)+"/api/v1/partitions")
			require.FailNow(t, "not caught up", "%s: topic %s after %v: %s\n%s", w.id, topic, caughtWithin, body, parts)
		}
		pass(t, 50*time.Millisecond)
	}
}

// states counts the worker's partitions by state.
func (w *worker) states(t *testing.T) map[string]int {
	t.Helper()
	var status struct {
		Route struct {
			Partitions map[string]int `json:"partitions"`
		} `json:"route"`
	}
	code, body := get(t, w.api(t)+"/api/v1/status")
	if code != http.StatusOK || json.Unmarshal([]byte(body), &status) != nil {
		return nil
	}
	return status.Route.Partitions
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

// nativeFile is a worker's; positions are stored seldom, so that what is stored at the end of a partition matters.
func nativeFile(l *lab, id, zookeeper string) string {
	return fmt.Sprintf(`route:
  source: {name: src, bootstrap: [%[1]s]}
  target: {name: dst, bootstrap: [%[1]s]}
  topics: {rename: "{topic}.copy"}
worker: {id: %[2]s, memory: 128MiB, commit_interval: 2s}
coordination: {zookeeper: "%[3]s", cluster: %[4]s, session_timeout: %[5]s}
offsets: {group: %[4]s}
server: {listen: "127.0.0.1:0"}
log: {level: debug}
`, l.brokers(), id, zookeeper, l.cluster, session)
}
