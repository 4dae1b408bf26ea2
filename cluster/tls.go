package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"time"
)

// dialTimeout bounds the TCP connect and the TLS handshake together; a broker over an ocean answers in well under a second.
const dialTimeout = 10 * time.Second

// TLSConfig returns how to encrypt a connection, or nil for plaintext. Authorities are read from disk by this call and our own certificate by
// each handshake, so whoever calls it for every new connection follows rotation. The caller sets ServerName to the host it dials when it is
// empty. Errors are faults that name the key.
func (c Config) TLSConfig() (*tls.Config, error) {
	if !c.TLS.On() {
		return nil, nil //nolint:nilnil // nil is the plaintext configuration, as the signature promises
	}
	roots, err := c.roots()
	if err != nil {
		return nil, err
	}
	out := &tls.Config{
		RootCAs:    roots,
		ServerName: c.TLS.ServerName,
		MinVersion: max(c.TLS.MinVersion, tls.VersionTLS12),
		MaxVersion: c.TLS.MaxVersion,
	}
	if c.TLS.hasKeys() {
		out.GetClientCertificate = c.clientCertificate
	}
	if c.TLS.SkipHostname {
		out.InsecureSkipVerify = true // the chain is verified right below, only the host is not
		out.VerifyConnection = func(state tls.ConnectionState) error { return verifyChain(state, roots) }
	}
	return out, nil
}

// Dial opens a connection to one broker, encrypted if the cluster is; SASL is the caller's. It is what both clients of a cluster use.
func (c Config) Dial(ctx context.Context, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", address, err)
	}
	secure, err := c.TLSConfig()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	var plain net.Dialer
	conn, err := plain.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", address, err)
	}
	if secure == nil {
		return conn, nil
	}
	if secure.ServerName == "" {
		secure.ServerName = host
	}
	encrypted := tls.Client(conn, secure)
	if err := encrypted.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("shake hands with %s: %w", address, err)
	}
	return encrypted, nil
}

// CertificateExpiry returns when the first of our own certificates ends; zero when there is none.
func (c Config) CertificateExpiry() (time.Time, error) {
	var first time.Time
	keys, err := c.clientCertificates()
	for _, key := range keys {
		if end := key.Leaf.NotAfter; first.IsZero() || end.Before(first) {
			first = end
		}
	}
	return first, err
}

// hasKeys reports whether we have a certificate of our own to show.
func (t TLS) hasKeys() bool {
	return t.CertFile != "" || t.KeyFile != "" || t.KeyStore != Store{}
}

// trustStore returns where the authorities are, in the form that native and Java configurations share.
func (t TLS) trustStore() (Store, string) {
	if t.CAFile != "" {
		return Store{Location: t.CAFile, Type: storePEM}, "tls.ca_file"
	}
	return t.TrustStore, "tls.truststore"
}

// roots reads the authorities; nil means the system's.
func (c Config) roots() (*x509.CertPool, error) {
	store, key := c.TLS.trustStore()
	if store == (Store{}) {
		return nil, nil //nolint:nilnil // crypto/tls takes a nil pool for the system's authorities
	}
	certificates, err := readTrust(store, key)
	if err != nil {
		return nil, c.named(err)
	}
	pool := x509.NewCertPool()
	for _, certificate := range certificates {
		pool.AddCert(certificate)
	}
	return pool, nil
}

// clientCertificates reads our own certificates with their keys.
func (c Config) clientCertificates() ([]tls.Certificate, error) {
	if !c.TLS.hasKeys() {
		return nil, nil
	}
	password, err := c.TLS.KeyPassword.orFile(c.TLS.KeyPasswordFile)
	if err != nil {
		return nil, c.named(&ConfigError{Key: "tls.key_password_file", Value: c.TLS.KeyPasswordFile, Reason: "cannot be read", Err: err})
	}
	var keys []tls.Certificate
	if c.TLS.CertFile != "" || c.TLS.KeyFile != "" {
		keys, err = readPair(c.TLS.CertFile, c.TLS.KeyFile, password)
	} else {
		keys, err = readKeys(c.TLS.KeyStore, "tls.keystore", password)
	}
	if err != nil {
		return nil, c.named(err)
	}
	return keys, nil
}

// clientCertificate picks the certificate that the broker asks for. As in Java, none is sent when none fits: the broker decides what follows.
func (c Config) clientCertificate(request *tls.CertificateRequestInfo) (*tls.Certificate, error) {
	keys, err := c.clientCertificates()
	if err != nil {
		return nil, err
	}
	for i := range keys {
		if request.SupportsCertificate(&keys[i]) == nil {
			return &keys[i], nil
		}
	}
	return &tls.Certificate{}, nil
}

// verifyChain checks a broker's certificate against the authorities without regard to its host.
func verifyChain(state tls.ConnectionState, roots *x509.CertPool) error {
	if len(state.PeerCertificates) == 0 {
		return errors.New("verify broker: it showed no certificate")
	}
	between := x509.NewCertPool()
	for _, certificate := range state.PeerCertificates[1:] {
		between.AddCert(certificate)
	}
	if _, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between}); err != nil {
		return fmt.Errorf("verify broker: %w", err)
	}
	return nil
}
