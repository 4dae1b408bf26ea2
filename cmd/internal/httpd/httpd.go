package httpd

import (
	"net"
	"net/netip"
	"os"

	"github.com/causeway-mirror/causeway/api"
	"github.com/causeway-mirror/causeway/internal/native"
	"github.com/causeway-mirror/causeway/network"
)

// Config is the API's configuration by the section server of the native file.
func Config(s native.Server) api.Config {
	cfg := api.DefaultConfig()
	cfg.IdleTimeout = s.IdleTimeout.Duration()
	cfg.Connections = network.Quotas{PerAddress: s.MaxConnectionsPerAddress, Overrides: map[string]int{}, Total: s.MaxConnections}
	for text, n := range s.MaxConnectionsOf {
		if address, err := netip.ParseAddr(text); err == nil { // else it was refused
			cfg.Connections.Overrides[address.String()] = n // as connections have it
		}
	}
	cfg.CertFile, cfg.KeyFile, cfg.TokenFile = s.TLS.CertFile, s.TLS.KeyFile, s.Auth.TokenFile
	cfg.ReadOnly = s.ReadOnly
	return cfg
}

// Address is the base URL under which others reach the API that is served at an address: with the host that `listen` names, since a certificate
// is for a name; if it names none, with hostname, or this machine's name if that is empty.
func Address(at net.Addr, s native.Server, hostname string) string {
	scheme := "http://"
	if s.TLS.On() {
		scheme = "https://"
	}
	host, port, err := net.SplitHostPort(at.String())
	if err != nil {
		return scheme + at.String()
	}
	if name, _, err := net.SplitHostPort(s.Listen); err == nil && name != "" && net.ParseIP(name) == nil {
		host = name
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = hostname
	}
	if host == "" {
		host = machine()
	}
	return scheme + net.JoinHostPort(host, port)
}

// machine is this machine's name.
func machine() string {
	if name, err := os.Hostname(); err == nil {
		return name
	}
	return "localhost"
}
