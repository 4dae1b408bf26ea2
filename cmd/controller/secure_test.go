package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/api"
	"github.com/causeway-mirror/causeway/cmd/internal/program"
	"github.com/causeway-mirror/causeway/helix"
	"github.com/causeway-mirror/causeway/internal/kafkad"
	"github.com/causeway-mirror/causeway/internal/testkit"
)

// launchSecure runs a controller with a native file, a certificate and a token.
func launchSecure(t *testing.T, zookeeper, id string, ca *testkit.Authority, tokenFile string) *process {
	t.Helper()
	ports, err := kafkad.FreePorts(1)
	require.NoError(t, err)
	peers := api.NewPeers(ca.File)
	t.Cleanup(peers.CloseIdleConnections)
	p := &process{
		base: fmt.Sprintf("https://127.0.0.1:%d", ports[0]), log: &lockedBuffer{},
		client: &http.Client{Transport: peers, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}
	cert, key := ca.Files(t, id)
	path := filepath.Join(t.TempDir(), "causeway.yaml")
	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, `
route: {source: {name: sjc1, bootstrap: ["127.0.0.1:1"]}, target: {name: dca1, bootstrap: ["127.0.0.1:2"]}}
coordination: {zookeeper: %q, cluster: mirrors}
controller: {id: %s}
server: {listen: "127.0.0.1:%d", tls: {cert_file: %s, key_file: %s, ca_file: %s}, auth: {token_file: %s}}
`, zookeeper, id, ports[0], cert, key, ca.File, tokenFile), 0o600))
	p.begin(t, id, []string{"--config", path})
	return p
}

// tellOf publishes the address of a worker's API, as the worker would.
func tellOf(t *testing.T, zookeeper, worker, address string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cfg := helix.DefaultConfig()
	cfg.ZooKeeper, cfg.Cluster = zookeeper, "mirrors"
	s, err := helix.Open(ctx, cfg, hclog.NewNullLogger())
	require.NoError(t, err)
	t.Cleanup(s.Close)
	record := helix.NewRecord(worker)
	record.Simple["address"] = address
	text, err := record.Encode()
	require.NoError(t, err)
	require.NoError(t, s.CreateAll(ctx, cfg.Cluster.Property("causeway", "workers", worker), text))
}

func TestControllersWithTLSAndATokenWorkTogether(t *testing.T) {
	zookeeper := place(t)
	ca := testkit.NewAuthority(t)
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("s3cret\n"), 0o600))
	first := launchSecure(t, zookeeper, "c1", ca, token)
	first.eventually(t, http.MethodGet, "/api/v1/status", http.StatusOK, `"leader":"c1"`)
	second := launchSecure(t, zookeeper, "c2", ca, token)
	second.eventually(t, http.MethodGet, "/topics", http.StatusOK, "No topic is added") // passed on
	join(t, zookeeper, "mirrors", "w_1")
	second.eventually(t, http.MethodGet, "/api/v1/workers", http.StatusOK, `"id":"w_1","state":"active"`)

	const body = `{"topic":"orders","numPartitions":2}`
	status, text := second.ask(http.MethodPost, "/topics", body)
	require.Equal(t, http.StatusUnauthorized, status, text)
	second.token = "s3cret"
	status, text = second.ask(http.MethodPost, "/topics", body)
	require.Equal(t, http.StatusOK, status, text)
	status, text = second.ask(http.MethodPost, "/api/v1/rebalance", "")
	require.Equal(t, http.StatusTemporaryRedirect, status, text)
	first.token = "s3cret"
	status, text = first.ask(http.MethodPost, "/api/v1/rebalance", "")
	require.Equal(t, http.StatusAccepted, status, text)

	pair, err := tls.LoadX509KeyPair(ca.Files(t, "w_1"))
	require.NoError(t, err)
	worker := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		one := api.Partition{Topic: "orders", Worker: "w_1", State: api.StateDegraded, Reason: "told over TLS"}
		_ = json.NewEncoder(w).Encode(api.List[api.Partition]{Items: []api.Partition{one}})
	}))
	worker.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	worker.StartTLS()
	defer worker.Close()
	tellOf(t, zookeeper, "w_1", worker.URL)
	second.eventually(t, http.MethodGet, "/api/v1/topics/orders", http.StatusOK, `"reason":"told over TLS"`)
	for _, p := range []*process{first, second} {
		require.Equal(t, program.OK, p.stop())
		require.NotContains(t, p.log.String(), "s3cret")
	}
}
