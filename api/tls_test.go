package api

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/internal/testkit"
)

// secured runs a server with a certificate that the test may replace, and gives its address.
func secured(t *testing.T, ca *testkit.Authority, log hclog.Logger) (address, certFile, keyFile string) {
	t.Helper()
	h := newHarness(t)
	cfg := DefaultConfig()
	cfg.CertFile, cfg.KeyFile = ca.Files(t, "first")
	var err error
	h.server, err = New(cfg, Deps{Log: log, Mirror: h.mirror, Events: h.log, Registry: prometheus.NewRegistry(), Identity: h.server.deps.Identity})
	require.NoError(t, err)
	base, stop := startServer(t, h)
	t.Cleanup(func() { require.NoError(t, stop()) })
	return base[len("http://"):], cfg.CertFile, cfg.KeyFile
}

// shown is the certificate that a server shows in a new connection.
func shown(t *testing.T, address string, cfg *tls.Config) (*x509.Certificate, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	conn, err := (&tls.Dialer{Config: cfg}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0], nil
}

func TestCertificatesAreReplacedWithoutARestart(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	ca := testkit.NewAuthority(t)
	address, certFile, keyFile := secured(t, ca, hclog.New(&hclog.LoggerOptions{Output: &log}))
	trust := &tls.Config{RootCAs: ca.Pool(), MinVersion: tls.VersionTLS12}
	name := func() string {
		cert, err := shown(t, address, trust)
		require.NoError(t, err)
		return cert.Subject.CommonName
	}
	require.Equal(t, "first", name())
	ca.Issue(t, "second", certFile, filepath.Join(t.TempDir(), "elsewhere"))
	require.Equal(t, "first", name(), "the key has not been replaced yet")
	require.Equal(t, "first", name())
	require.NoError(t, os.Remove(keyFile))
	require.Equal(t, "first", name())
	ca.Issue(t, "third", certFile, keyFile)
	require.Equal(t, "third", name())
	require.Equal(t, 2, bytes.Count(log.Bytes(), []byte("can't be read anew")), "each fault once: %s", log.String())
	require.NotContains(t, log.String(), "BEGIN")
}

func TestOldTLSAndPlainHTTPAreRefused(t *testing.T) {
	t.Parallel()
	ca := testkit.NewAuthority(t)
	address, _, _ := secured(t, ca, hclog.NewNullLogger())
	_, err := shown(t, address, &tls.Config{RootCAs: ca.Pool(), MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11})
	require.Error(t, err)
	_, err = shown(t, address, &tls.Config{MinVersion: tls.VersionTLS12})
	require.ErrorContains(t, err, "unknown authority")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/healthz", http.NoBody)
	require.NoError(t, err)
	resp, err := client.Do(r)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusBadRequest, resp.StatusCode)
}

func TestPeersTrustTheAuthorityAndFollowItsRotation(t *testing.T) {
	t.Parallel()
	ca, other := testkit.NewAuthority(t), testkit.NewAuthority(t)
	address, _, _ := secured(t, ca, hclog.NewNullLogger())
	file := filepath.Join(t.TempDir(), "ca.pem")
	trust := func(a *testkit.Authority) {
		text, err := os.ReadFile(a.File)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, text, 0o600))
	}
	peers := NewPeers(file)
	defer peers.CloseIdleConnections()
	get := func() error {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+"/healthz", http.NoBody)
		require.NoError(t, err)
		resp, err := peers.RoundTrip(r)
		if err == nil {
			require.Equal(t, http.StatusOK, resp.StatusCode)
			require.NoError(t, resp.Body.Close())
		}
		return err
	}
	require.ErrorContains(t, get(), "read the authorities")
	trust(other)
	require.ErrorContains(t, get(), "unknown authority")
	trust(ca)
	require.NoError(t, get())
	require.NoError(t, os.WriteFile(file, []byte("none"), 0o600))
	peers.CloseIdleConnections()
	require.ErrorContains(t, get(), "holds no certificate")
}

func TestAStandbyReachesTheLeaderOverTLS(t *testing.T) {
	t.Parallel()
	ca := testkit.NewAuthority(t)
	address, _, _ := secured(t, ca, hclog.NewNullLogger())
	peers := NewPeers(ca.File)
	defer peers.CloseIdleConnections()
	h := newHarness(t)
	s, err := New(DefaultConfig(), Deps{
		Log: hclog.NewNullLogger(), Mirror: h.mirror, Events: h.log, Registry: prometheus.NewRegistry(), Identity: h.server.deps.Identity,
		Leadership: standby{"https://" + address}, Peers: peers,
	})
	require.NoError(t, err)
	w := ask(t, s, http.MethodGet, "/api/v1/topics/orders")
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	require.Contains(t, w.Body.String(), `"topic":"orders"`)
	w = ask(t, s, http.MethodPost, "/api/v1/rebalance")
	require.Equal(t, "https://"+address+"/api/v1/rebalance", w.Header().Get("Location"))
}

func TestWithoutItsCertificateAServerIsNotBuilt(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cfg := DefaultConfig()
	cfg.CertFile, cfg.KeyFile = "/nosuch", "/nosuch"
	_, err := New(cfg, Deps{Log: hclog.NewNullLogger(), Mirror: h.mirror, Events: h.log, Registry: prometheus.NewRegistry(), Identity: h.server.deps.Identity})
	require.ErrorContains(t, err, "/nosuch")
}

func TestAnAddressWithTooManyConnectionsIsRefusedAndOthersAreNot(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cfg := DefaultConfig()
	cfg.Connections.PerAddress = 2
	reg := prometheus.NewRegistry()
	var err error
	h.server, err = New(cfg, Deps{Log: hclog.NewNullLogger(), Mirror: h.mirror, Events: h.log, Registry: reg, Identity: h.server.deps.Identity})
	require.NoError(t, err)
	base, stop := startServer(t, h)
	defer func() { require.NoError(t, stop()) }()
	address := base[len("http://"):]
	// healthy says whether a new connection is served; it stays open.
	healthy := func(from string) (net.Conn, bool) {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		conn, err := dialer.DialContext(t.Context(), "tcp", address)
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		require.NoError(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
		_, _ = conn.Write([]byte("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")) // a refused one is closed by now, or on its way to be
		answer := make([]byte, 12)
		_, err = conn.Read(answer)
		return conn, err == nil && string(answer) == "HTTP/1.1 200"
	}
	first, ok := healthy("127.0.0.1")
	require.True(t, ok)
	_, ok = healthy("127.0.0.1")
	require.True(t, ok)
	_, ok = healthy("127.0.0.1")
	require.False(t, ok, "the third")
	_, ok = healthy("127.0.0.2")
	require.True(t, ok, "another address")
	w := httptest.NewRecorder()
	h.server.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	require.Contains(t, w.Body.String(), `causeway_network_connections{listener="api",route="@a@b@1"} 3`)
	require.Contains(t, w.Body.String(), `causeway_network_connections_refused_total{listener="api",route="@a@b@1"} 1`)
	require.NoError(t, first.Close())
	for deadline := time.Now().Add(10 * time.Second); ; {
		if _, ok = healthy("127.0.0.1"); ok {
			break // its place is free again
		}
		require.True(t, time.Now().Before(deadline))
	}
}

func TestSilentConnectionsAreClosed(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cfg := DefaultConfig()
	cfg.IdleTimeout = 50 * time.Millisecond
	var err error
	h.server, err = New(cfg, Deps{Log: hclog.NewNullLogger(), Mirror: h.mirror, Events: h.log, Registry: prometheus.NewRegistry(), Identity: h.server.deps.Identity})
	require.NoError(t, err)
	base, stop := startServer(t, h)
	defer func() { require.NoError(t, stop()) }()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", base[len("http://"):])
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
	_, err = conn.Write([]byte("HEAD /healthz HTTP/1.1\r\nHost: x\r\n\r\n"))
	require.NoError(t, err)
	var all bytes.Buffer
	_, err = all.ReadFrom(conn) // returns when the server closes
	require.NoError(t, err)
	require.Contains(t, all.String(), "200 OK")
}

// Over TLS clients speak HTTP/2, in which deadlines are a stream's.
func TestLongPollsAndStreamsWorkOverHTTP2(t *testing.T) {
	t.Parallel()
	ca := testkit.NewAuthority(t)
	h := newHarness(t)
	cfg := DefaultConfig()
	cfg.CertFile, cfg.KeyFile = ca.Files(t, "me")
	cfg.WriteTimeout = 200 * time.Millisecond
	var err error
	h.server, err = New(cfg, Deps{Log: hclog.NewNullLogger(), Mirror: h.mirror, Events: h.log, Registry: prometheus.NewRegistry(), Identity: h.server.deps.Identity})
	require.NoError(t, err)
	base, stop := startServer(t, h)
	ended := sync.OnceValue(stop)
	defer func() { require.NoError(t, ended()) }()
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: ca.Pool(), MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	get := func(accept string) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https"+base[len("http"):]+"/api/v1/events?wait=600ms", http.NoBody)
		require.NoError(t, err)
		r.Header.Set("Accept", accept)
		resp, err := transport.RoundTrip(r)
		require.NoError(t, err)
		require.Equal(t, 2, resp.ProtoMajor)
		require.Equal(t, http.StatusOK, resp.StatusCode)
		return resp
	}
	began := time.Now()
	resp := get("application/json")
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Contains(t, string(body), `"items":[]`)
	require.GreaterOrEqual(t, time.Since(began), 600*time.Millisecond)

	resp = get("text/event-stream")
	defer resp.Body.Close()
	timer := time.NewTimer(3 * cfg.WriteTimeout) // longer than an answer that does not stream may take
	<-timer.C
	h.log.Emit(events.Event{Type: events.RouteRecovered, Severity: events.Info, Message: "new"})
	line, err := bufio.NewReader(resp.Body).ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, "id: ")
	require.NoError(t, ended(), "an open stream does not hold the shutdown")
}
