package api

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/internal/testkit"
	"github.com/causeway-mirror/causeway/network"
)

// bounded is a server with bounds of its own.
func bounded(t *testing.T, change func(*Config)) harness {
	t.Helper()
	h := newHarness(t)
	cfg := DefaultConfig()
	change(&cfg)
	var err error
	h.reg = prometheus.NewRegistry()
	h.server, err = New(cfg, Deps{Log: hclog.NewNullLogger(), Mirror: h.mirror, Events: h.log, Registry: h.reg, Identity: h.server.deps.Identity})
	require.NoError(t, err)
	return h
}

func TestOneRequestTooManyIsRefusedAndProbesAreNot(t *testing.T) {
	t.Parallel()
	h := bounded(t, func(c *Config) { c.MaxRequests, c.MaxWaits = 1, 1 })
	busy := func(path string) bool {
		code, header, body := h.do(t, http.MethodGet, path)
		if code != http.StatusServiceUnavailable {
			require.Equal(t, http.StatusOK, code, path)
			return false
		}
		require.Contains(t, body, `"code":"busy"`)
		require.Equal(t, "1", header.Get("Retry-After"))
		return true
	}
	for range 3 { // places are given back
		require.False(t, busy("/api/v1/status"))
		require.False(t, busy("/api/v1/events"))
	}
	require.True(t, h.server.admits.waits.Take())
	require.True(t, busy("/api/v1/wait?topic=orders"))
	require.True(t, busy("/api/v1/events?wait=30s"))
	require.False(t, busy("/api/v1/status"), "those that wait keep nobody else out")
	require.True(t, h.server.admits.requests.Take())
	require.True(t, busy("/api/v1/status"))
	require.True(t, busy("/ui/"))
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		require.False(t, busy(path))
	}
	_, _, figures := h.do(t, http.MethodGet, "/metrics")
	require.Contains(t, figures, `causeway_network_requests_refused_total{pool="requests",route="@a@b@1"} 2`)
	require.Contains(t, figures, `causeway_network_idle_ratio{pool="waits",route="@a@b@1"} 0`)
}

// TestIdleAndHalfSentRequestsKeepNobodyOut: clients that connect and send nothing, or never end their headers, or send no HTTP at all.
func TestIdleAndHalfSentRequestsKeepNobodyOut(t *testing.T) {
	t.Parallel()
	const total = 50
	clients := 500
	if testkit.Long() {
		clients = 10_000
	}
	h := bounded(t, func(c *Config) { c.Connections = network.Quotas{PerAddress: 2 * clients, Total: total} })
	base, stop := startServer(t, h)
	defer func() { require.NoError(t, stop()) }()
	address := base[len("http://"):]
	dial := func(text string) net.Conn {
		conn, err := (&net.Dialer{Timeout: 20 * time.Second}).DialContext(t.Context(), "tcp", address)
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		_, _ = conn.Write([]byte(text))
		return conn
	}
	for i := range clients {
		dial([]string{"", "GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: ", "\x16\x03\x01garbage\r\n\r\n", strings.Repeat("x", 100)}[i%4])
	}
	for range 3 {
		conn := dial("GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		require.NoError(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
		answer, err := io.ReadAll(conn)
		require.NoError(t, err)
		require.Contains(t, string(answer), "HTTP/1.1 200")
		require.Contains(t, string(answer), "causeway_network_connections_evicted_total")
	}
	found, err := h.reg.Gather()
	require.NoError(t, err)
	for _, family := range found {
		if family.GetName() == "causeway_network_connections" {
			require.LessOrEqual(t, family.GetMetric()[0].GetGauge().GetValue(), float64(total))
			return
		}
	}
	require.Fail(t, "connections are not counted")
}
