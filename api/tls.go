package api

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// certificate is what the server shows. Its files are read at each handshake, so that replaced ones count for every new connection; they are
// replaced one after the other, so as long as they are no pair the last good one is shown.
type certificate struct {
	certFile, keyFile string
	log               hclog.Logger

	mu   sync.Mutex
	text [2][]byte // the files as they were read last; guarded by mu, as all below
	pair *tls.Certificate
	told string // the fault that was told last
}

// newCertificate reads the files for the first time.
func newCertificate(certFile, keyFile string, log hclog.Logger) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, log: log}
	if err := c.reload(); err != nil {
		return nil, err
	}
	return c, nil
}

// current gives the newest good pair. A fault is told once and not at each handshake.
func (c *certificate) current() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	told := ""
	if err := c.reload(); err != nil {
		if told = err.Error(); told != c.told {
			c.log.Warn("the server's certificate can't be read anew; the last one is shown", "err", err)
		}
	}
	c.told = told
	return c.pair
}

// reload reads the files and, if they changed, the pair in them.
func (c *certificate) reload() error {
	var text [2][]byte
	for i, path := range []string{c.certFile, c.keyFile} {
		var err error
		if text[i], err = os.ReadFile(path); err != nil {
			return fmt.Errorf("read the server's certificate: %w", err)
		}
	}
	if bytes.Equal(text[0], c.text[0]) && bytes.Equal(text[1], c.text[1]) {
		return nil
	}
	pair, err := tls.X509KeyPair(text[0], text[1])
	if err != nil {
		return fmt.Errorf("read the server's certificate: %s and %s: %w", c.certFile, c.keyFile, err)
	}
	if c.pair != nil {
		c.log.Info("the server's certificate was replaced", "file", c.certFile, "ends", pair.Leaf.NotAfter)
	}
	c.pair, c.text = &pair, text
	return nil
}

// config is how connections are encrypted.
func (c *certificate) config() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current(), nil },
	}
}

// secondsLeft is until the certificate ends; negative once it has.
func (c *certificate) secondsLeft() float64 { return time.Until(c.current().Leaf.NotAfter).Seconds() }

// Bounds of the connections to other processes.
const (
	peerDialTimeout = 5 * time.Second
	peerIdleTimeout = 90 * time.Second
	peerIdleMost    = 4 // connections kept for each process
)

// NewPeers gives the way to the APIs of the cluster's other processes, encrypted or not as their addresses say. A certificate that one of them
// shows must be signed by an authority in caFile, which is read for every new connection; without a file the system's authorities count. The
// caller closes idle connections at the end.
func NewPeers(caFile string) *http.Transport {
	dialer := &net.Dialer{Timeout: peerDialTimeout}
	return &http.Transport{
		DialContext: dialer.DialContext,
		DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			roots, err := authorities(caFile)
			if err != nil {
				return nil, err
			}
			ctx, cancel := context.WithTimeout(ctx, peerDialTimeout)
			defer cancel()
			secure := &tls.Dialer{NetDialer: dialer, Config: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}}
			return secure.DialContext(ctx, network, address)
		},
		MaxIdleConnsPerHost: peerIdleMost, IdleConnTimeout: peerIdleTimeout,
	}
}

// authorities reads a file of them; nil means the system's.
func authorities(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil //nolint:nilnil // crypto/tls takes a nil pool for the system's authorities
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the authorities: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("read the authorities: %s holds no certificate in PEM", file)
	}
	return pool, nil
}
