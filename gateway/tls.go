package gateway

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
)

// Check reads the files, as each connection will.
func (t TLS) Check() error {
	if t.CertFile == "" {
		return nil
	}
	_, err := t.config()
	return err
}

func (t TLS) config() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
	if err != nil {
		return nil, &ConfigError{"tls-cert", t.CertFile, err.Error()}
	}
	out := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	if t.ClientCAFile == "" {
		return out, nil
	}
	text, err := os.ReadFile(t.ClientCAFile)
	if err != nil {
		return nil, &ConfigError{"tls-client-ca", t.ClientCAFile, err.Error()}
	}
	out.ClientCAs, out.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
	if !out.ClientCAs.AppendCertsFromPEM(text) {
		return nil, &ConfigError{"tls-client-ca", t.ClientCAFile, "has no certificate in PEM"}
	}
	return out, nil
}

// secure shakes hands with a client, if the gateway has a certificate. name is what the client asked TLS for.
func (g *Gateway) secure(ctx context.Context, raw net.Conn) (conn net.Conn, name string, err error) {
	if g.cfg.TLS.CertFile == "" {
		return raw, "", nil
	}
	cfg, err := g.cfg.TLS.config()
	if err != nil {
		g.log.Error("no certificate to show", "err", err)
		return nil, "", err
	}
	ctx, cancel := context.WithTimeout(ctx, g.cfg.FrameTimeout)
	defer cancel()
	encrypted := tls.Server(raw, cfg)
	if err := encrypted.HandshakeContext(ctx); err != nil {
		return nil, "", fmt.Errorf("shake hands: %w", err)
	}
	return encrypted, encrypted.ConnectionState().ServerName, nil
}
