package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// tlsServer answers each connection with the common name of the certificate that the client showed.
type tlsServer struct {
	address string
	show    atomic.Pointer[tls.Certificate] // the server's own certificate, which a test may swap
}

// newTLSServer serves with an identity and asks for client certificates of an authority; nil asks for none.
func newTLSServer(t *testing.T, own *identity, clients *authority, change func(*tls.Config)) *tlsServer {
	t.Helper()
	s := &tlsServer{}
	certificate := own.tls()
	s.show.Store(&certificate)
	cfg := &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.show.Load(), nil }}
	if clients != nil {
		cfg.ClientAuth = tls.RequireAndVerifyClientCert
		cfg.ClientCAs = x509.NewCertPool()
		cfg.ClientCAs.AddCert(clients.cert)
	}
	if change != nil {
		change(cfg)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", cfg)
	require.NoError(t, err)
	s.address = listener.Addr().String()
	done := make(chan struct{})
	go func() { // owned by the cleanup below
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			answer(conn)
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-done
	})
	return s
}

// answer serves one connection.
func answer(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	secure, ok := conn.(*tls.Conn)
	if !ok || secure.Handshake() != nil {
		return
	}
	name := "nobody"
	if shown := secure.ConnectionState().PeerCertificates; len(shown) > 0 {
		name = shown[0].Subject.CommonName
	}
	_, _ = io.WriteString(conn, name)
}

// ask connects and returns what the server says. A refusal of our certificate shows only when reading, with TLS 1.3.
func ask(t *testing.T, cfg Config, address string) (string, error) {
	t.Helper()
	conn, err := cfg.Dial(t.Context(), address)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	text, err := io.ReadAll(conn)
	return string(text), err
}

// Every form in which certificates come leads to the same handshake, in which each side checks the other.
func TestMutualTLS(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "ca")
	me := ca.issue(t, "me")
	server := newTLSServer(t, ca.issue(t, "broker"), ca, nil)
	caFile := write(t, "ca.pem", pemOf(ca.cert))
	joined := func(text string) string { // as continuation lines in a properties file do
		out := []byte(text)
		for i, c := range out {
			if c == '\n' {
				out[i] = ' '
			}
		}
		return string(out)
	}
	for _, row := range []struct {
		name string
		tls  TLS
	}{
		{"pem files", TLS{CAFile: caFile, CertFile: write(t, "c", me.chainPEM()), KeyFile: write(t, "k", me.keyPEM(t, ""))}},
		{"encrypted key", TLS{CAFile: caFile, CertFile: write(t, "c", me.chainPEM()), KeyFile: write(t, "k", me.keyPEM(t, "pw")), KeyPasswordFile: write(t, "p", "pw\n")}},
		{"one pem file", TLS{CAFile: caFile, KeyStore: Store{Location: write(t, "c", me.keyPEM(t, "")+me.chainPEM())}}},
		{"chain in the wrong order", TLS{CAFile: caFile, KeyStore: Store{Location: write(t, "c", pemOf(ca.cert)+pemOf(me.cert)+me.keyPEM(t, ""))}}},
		{"inline pem", TLS{TrustStore: Store{Certificates: joined(pemOf(ca.cert))}, KeyStore: Store{Certificates: joined(me.chainPEM()), Key: Secret(joined(me.keyPEM(t, "")))}}},
		{"pkcs12", TLS{TrustStore: Store{Location: write(t, "t", ca.trustPKCS12(t)), Password: storePassword}, KeyStore: Store{Location: write(t, "k", me.pkcs12(t)), Password: storePassword}}},
		{"pkcs12 called jks", TLS{TrustStore: Store{Location: write(t, "t", ca.trustPKCS12(t)), Type: "JKS", Password: storePassword}, KeyStore: Store{Location: write(t, "k", me.pkcs12(t)), Type: "JKS", PasswordFile: write(t, "p", storePassword)}}},
		{"jks", TLS{TrustStore: Store{Location: write(t, "t", ca.trustJKS(t)), Password: storePassword}, KeyStore: Store{Location: write(t, "k", me.jks(t, storePassword)), Password: storePassword}}},
		{"jks with a key password, trust unchecked", TLS{KeyPassword: "k3y-secret", TrustStore: Store{Location: write(t, "t", ca.trustJKS(t))}, KeyStore: Store{Location: write(t, "k", me.jks(t, "k3y-secret")), Password: storePassword}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			row.tls.ServerName = "broker"
			cfg := Config{Name: "x", Bootstrap: []string{server.address}, TLS: row.tls}
			require.NoError(t, cfg.Validate())
			name, err := ask(t, cfg, server.address)
			require.NoError(t, err)
			require.Equal(t, "me", name)
			end, err := cfg.CertificateExpiry()
			require.NoError(t, err)
			require.WithinDuration(t, me.cert.NotAfter, end, time.Second)
		})
	}
}

// Who is not trusted is refused, and the error says so.
func TestTLSRefusals(t *testing.T) {
	t.Parallel()
	ca, foreign := newAuthority(t, "ca"), newAuthority(t, "foreign")
	caFile, foreignFile := write(t, "ca.pem", pemOf(ca.cert)), write(t, "foreign.pem", pemOf(foreign.cert))
	me, stranger := ca.issue(t, "me"), foreign.issue(t, "me")
	asking := newTLSServer(t, ca.issue(t, "broker"), ca, nil)
	open := newTLSServer(t, ca.issue(t, "broker"), nil, nil)
	old := newTLSServer(t, ca.issue(t, "broker"), nil, func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 })
	for _, row := range []struct {
		name   string
		server *tlsServer
		tls    TLS
		ok     bool
	}{
		{"trusted", open, TLS{CAFile: caFile, ServerName: "broker"}, true},
		{"another authority", open, TLS{CAFile: foreignFile, ServerName: "broker"}, false},
		{"the system's authorities", open, TLS{Enabled: true, ServerName: "broker"}, false},
		{"another host", open, TLS{CAFile: caFile, ServerName: "other"}, false},
		{"the address dialled", open, TLS{CAFile: caFile}, false},
		{"host not checked", open, TLS{CAFile: caFile, SkipHostname: true}, true},
		{"host not checked, but the authority", open, TLS{CAFile: foreignFile, SkipHostname: true}, false},
		{"no certificate", asking, TLS{CAFile: caFile, ServerName: "broker"}, false},
		{"certificate of a stranger", asking, TLS{CAFile: caFile, ServerName: "broker", CertFile: write(t, "c", stranger.chainPEM()), KeyFile: write(t, "k", stranger.keyPEM(t, ""))}, false},
		{"our certificate", asking, TLS{CAFile: caFile, ServerName: "broker", CertFile: write(t, "c", me.chainPEM()), KeyFile: write(t, "k", me.keyPEM(t, ""))}, true},
		{"old version", old, TLS{CAFile: caFile, ServerName: "broker"}, true},
		{"old version not wanted", old, TLS{CAFile: caFile, ServerName: "broker", MinVersion: tls.VersionTLS13}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			_, err := ask(t, Config{TLS: row.tls}, row.server.address)
			if row.ok {
				require.NoError(t, err)
				return
			}
			require.Error(t, err)
			require.Equal(t, Authentication, Classify(err), "%v", err)
		})
	}
}

// After files were replaced, new connections use the new ones; nothing is restarted.
func TestRotation(t *testing.T) {
	t.Parallel()
	before, after := newAuthority(t, "before"), newAuthority(t, "after")
	old, renewed := before.issue(t, "old"), after.issue(t, "renewed")
	both := func(c *tls.Config) {
		c.ClientCAs.AddCert(after.cert)
	}
	server := newTLSServer(t, before.issue(t, "broker"), before, both)
	caFile, store := write(t, "ca.pem", pemOf(before.cert)), write(t, "me.p12", old.pkcs12(t))
	cfg := Config{TLS: TLS{CAFile: caFile, ServerName: "broker", KeyStore: Store{Location: store, Password: storePassword}}}
	kept, err := cfg.TLSConfig()
	require.NoError(t, err)

	name, err := ask(t, cfg, server.address)
	require.NoError(t, err)
	require.Equal(t, "old", name)

	require.NoError(t, os.WriteFile(store, renewed.pkcs12(t), 0o600))
	name, err = ask(t, cfg, server.address)
	require.NoError(t, err)
	require.Equal(t, "renewed", name)

	conn, err := (&tls.Dialer{Config: kept}).DialContext(t.Context(), "tcp", server.address) // our certificate is even read by each handshake
	require.NoError(t, err)
	text, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Equal(t, "renewed", string(text))
	require.NoError(t, conn.Close())

	certificate := after.issue(t, "broker").tls()
	server.show.Store(&certificate)
	_, err = ask(t, cfg, server.address)
	require.Equal(t, Authentication, Classify(err))
	require.NoError(t, os.WriteFile(caFile, []byte(pemOf(after.cert)), 0o600))
	name, err = ask(t, cfg, server.address)
	require.NoError(t, err)
	require.Equal(t, "renewed", name)
}

func TestPlaintext(t *testing.T) {
	t.Parallel()
	cfg := Config{Bootstrap: []string{"a:1"}}
	secure, err := cfg.TLSConfig()
	require.NoError(t, err)
	require.Nil(t, secure)
	mechanism, err := cfg.Mechanism()
	require.NoError(t, err)
	require.Nil(t, mechanism)
	end, err := cfg.CertificateExpiry()
	require.NoError(t, err)
	require.True(t, end.IsZero())
	_, err = cfg.Dial(t.Context(), "no-port")
	require.Error(t, err)
}
