package cluster_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/internal/kafkad"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// boss is a controller process that is started again and again under one id and port.
type boss struct {
	*worker // its folder, log and last start

	base string
}

func newBoss(t *testing.T, l *lab, id, zookeeper string) *boss {
	t.Helper()
	ports, err := kafkad.FreePorts(1)
	require.NoError(t, err)
	b := &boss{worker: prepareWorker(t, id), base: fmt.Sprintf("http://127.0.0.1:%d", ports[0])}
	file := fmt.Sprintf(`route:
  source: {name: src, bootstrap: [%[1]s]}
  target: {name: dst, bootstrap: [%[1]s]}
  topics: {rename: "{topic}.copy"}
coordination: {zookeeper: "%[2]s", cluster: %[3]s, session_timeout: %[4]s}
controller: {id: %[5]s, lag_interval: 1s, validate_interval: 1s}
offsets: {group: %[3]s}
server: {listen: "127.0.0.1:%[6]d"}
`, l.brokers(), zookeeper, l.cluster, session, id, ports[0])
	path := filepath.Join(b.dir, "causeway.yaml")
	require.NoError(t, os.WriteFile(path, []byte(file), 0o600))
	b.args = []string{"--config", path}
	return b
}

func (b *boss) start(t *testing.T) {
	t.Helper()
	b.run = kafkatest.NewProgram(b.id, b.dir, append([]string{filepath.Join(programs, "controller")}, b.args...)...)
	require.NoError(t, b.run.Start())
}

// post calls until the answer has the status.
func (b *boss) post(t *testing.T, path, body string, status int) {
	t.Helper()
	last := ""
	ok := func() bool {
		resp, err := http.Post(b.base+path, "application/json", strings.NewReader(body))
		if err != nil {
			last = err.Error()
			return false
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		last = fmt.Sprintf("%d %s", resp.StatusCode, text)
		return err == nil && resp.StatusCode == status
	}
	for deadline := time.Now().Add(upWithin); !ok(); pass(t, 50*time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "POST %s %s: %s", path, body, last)
	}
}

// caughtUp waits until all that is in a topic at the call is committed.
func (b *boss) caughtUp(t *testing.T, topic string) {
	t.Helper()
	q := url.Values{"topic": {topic}, "lag": {"0"}, "timeout": {"10s"}}
	deadline := time.Now().Add(caughtWithin)
	for {
		code, body := get(t, b.base+"/api/v1/wait?"+q.Encode())
		if code == http.StatusOK {
			return
		}
		if time.Now().After(deadline) {
			_, parts := get(t, b.base+"/api/v1/partitions")
			require.FailNow(t, "not caught up", "%s: topic %s: %d %s\n%s", b.id, topic, code, body, parts)
		}
		pass(t, 50*time.Millisecond)
	}
}
