package helix

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// patience is how long a test waits for what must come.
const patience = 30 * time.Second

// clusters counts, since each test has a cluster of its own on the shared server.
var clusters atomic.Int32

// rig is a Helix cluster of a test's own on the shared ZooKeeper, and a proxy to it that may be cut.
type rig struct {
	t     *testing.T
	cfg   Config // directly
	proxy *kafkatest.Proxy
	admin *Admin
}

// newRig creates a cluster that lets participants join by themselves.
func newRig(t *testing.T) *rig {
	t.Helper()
	z := kafkatest.SharedZooKeeper(t)
	proxy, err := kafkatest.NewProxy(z.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, proxy.Close()) })
	r := &rig{t: t, proxy: proxy, cfg: DefaultConfig()}
	r.cfg.ZooKeeper, r.cfg.Cluster = z.Addr(), Cluster(fmt.Sprintf("%s-%d", strings.ReplaceAll(t.Name(), "/", "-"), clusters.Add(1)))
	r.admin = NewAdmin(r.open(r.cfg), r.cfg.Cluster)
	require.NoError(t, r.admin.CreateCluster(t.Context(), map[string]string{keyAutoJoin: configTrue}))
	return r
}

// through is the config by way of the proxy, with a session so short that a test can wait for its end.
func (r *rig) through() Config {
	cfg := r.cfg
	cfg.ZooKeeper, cfg.SessionTimeout = r.proxy.Addr(), 2*time.Second
	return cfg
}

// open opens a session that ends with the test.
func (r *rig) open(cfg Config) *Session {
	r.t.Helper()
	s, err := Open(r.t.Context(), cfg, testLog(r.t))
	require.NoError(r.t, err)
	r.t.Cleanup(s.Close)
	return s
}

func (r *rig) session() *Session { return r.admin.session }

// eventually polls until check says nothing.
func eventually(t *testing.T, check func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for err := check(); err != nil; err = check() {
		if time.Now().After(deadline) {
			require.NoError(t, err, "after %s", patience)
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-t.Context().Done():
			require.NoError(t, err)
		}
	}
}

// testLog shows warnings with the test's output, everything when it is verbose.
func testLog(t *testing.T) hclog.Logger {
	t.Helper()
	level := hclog.Warn
	if testing.Verbose() {
		level = hclog.Debug
	}
	return hclog.New(&hclog.LoggerOptions{Name: t.Name(), Level: level, Output: testWriter{t}})
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Helper()
	if w.t.Context().Err() == nil { // a log after the test's end would panic
		w.t.Log(strings.TrimSpace(string(p)))
	}
	return len(p), nil
}

func await(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		require.Fail(t, what+" did not come")
	}
}
