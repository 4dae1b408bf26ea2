package native

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/causeway-mirror/causeway/internal/conf"
)

// Server is how HTTP is served.
type Server struct {
	Listen                   string         `yaml:"listen"`
	TLS                      ServerTLS      `yaml:"tls"`
	Auth                     ServerAuth     `yaml:"auth"`
	ReadOnly                 bool           `yaml:"read_only"` // nothing is changed through this API, whoever asks
	MaxConnections           int            `yaml:"max_connections"`
	MaxConnectionsPerAddress int            `yaml:"max_connections_per_address"`
	MaxConnectionsOf         map[string]int `yaml:"max_connections_of"` // of single addresses, in place of it
	IdleTimeout              conf.Duration  `yaml:"idle_timeout"`
}

// ServerTLS is how connections are encrypted; without a certificate they are not. All files are PEM.
type ServerTLS struct {
	CertFile string `yaml:"cert_file"` // ours, with its chain
	KeyFile  string `yaml:"key_file"`
	CAFile   string `yaml:"ca_file"` // of the authorities that sign the certificates of the cluster's other processes
}

// On says that connections are encrypted.
func (t ServerTLS) On() bool { return t.CertFile != "" || t.KeyFile != "" }

// ServerAuth is what a caller must know.
type ServerAuth struct {
	TokenFile string `yaml:"token_file"` // holds the bearer token without which nothing is changed
}

func defaultServer() Server {
	return Server{Listen: ":8080", MaxConnections: 1000, MaxConnectionsPerAddress: 100, IdleTimeout: seconds(5 * 60)}
}

// ValidateServer judges the section server and the files that it names.
func (f *File) ValidateServer() error {
	s := &f.Server
	faults := []error{
		validateListen(s.Listen), s.TLS.validate(), validateToken(s.Auth.TokenFile), validateOverrides(s.MaxConnectionsOf),
		AtLeastOne("server.max_connections", s.MaxConnections),
		AtLeastOne("server.max_connections_per_address", s.MaxConnectionsPerAddress), Positive("server.idle_timeout", s.IdleTimeout),
	}
	return errors.Join(faults...)
}

// validateOverrides wants addresses, each with a number; 0 keeps one out.
func validateOverrides(of map[string]int) error {
	var faults []error
	for _, address := range slices.Sorted(maps.Keys(of)) {
		key := "server.max_connections_of." + address
		if _, err := netip.ParseAddr(address); err != nil {
			faults = append(faults, Fault(key, strconv.Itoa(of[address]), "must be of an IP address"))
		} else if of[address] < 0 {
			faults = append(faults, Fault(key, strconv.Itoa(of[address]), "must be 0 or more"))
		}
	}
	return errors.Join(faults...)
}

func validateListen(text string) error {
	_, port, err := net.SplitHostPort(text)
	if err != nil {
		return Fault("server.listen (--listen)", text, "must be HOST:PORT or :PORT")
	}
	if _, err = strconv.ParseUint(port, 10, 16); err != nil {
		return Fault("server.listen (--listen)", text, "the port must be a number from 0 to 65535")
	}
	return nil
}

func (t ServerTLS) validate() error {
	var faults []error
	if t.On() {
		faults = append(faults, t.validatePair())
	}
	if t.CAFile != "" {
		text, err := os.ReadFile(t.CAFile)
		if err != nil {
			faults = append(faults, unreadable("server.tls.ca_file", t.CAFile, err))
		} else if !x509.NewCertPool().AppendCertsFromPEM(text) {
			faults = append(faults, Fault("server.tls.ca_file", t.CAFile, "holds no certificate in PEM"))
		}
	}
	return errors.Join(faults...)
}

// validatePair tells of each of the two files what is wrong with it, and of both only when each is right.
func (t ServerTLS) validatePair() error {
	var (
		faults []error
		texts  [2][]byte
	)
	for i, file := range []struct{ key, path, other string }{
		{"server.tls.cert_file", t.CertFile, "key_file"}, {"server.tls.key_file", t.KeyFile, "cert_file"},
	} {
		if file.path == "" {
			faults = append(faults, Fault(file.key, "", "is missing beside "+file.other))
			continue
		}
		var err error
		if texts[i], err = os.ReadFile(file.path); err != nil {
			faults = append(faults, unreadable(file.key, file.path, err))
		}
	}
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	if _, err := tls.X509KeyPair(texts[0], texts[1]); err != nil {
		return Fault("server.tls.cert_file", t.CertFile, "is no pair in PEM with key_file "+t.KeyFile+": "+strings.TrimPrefix(err.Error(), "tls: "))
	}
	return nil
}

// validateToken never shows what the file holds.
func validateToken(path string) error {
	const key = "server.auth.token_file"
	if path == "" {
		return nil
	}
	text, err := os.ReadFile(path)
	token := strings.TrimSpace(string(text))
	switch {
	case err != nil:
		return unreadable(key, path, err)
	case token == "":
		return Fault(key, path, "is empty")
	case strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }):
		return Fault(key, path, "must hold one token without spaces, of printable ASCII: it is sent in a header")
	}
	return nil
}

// unreadable is the fault of a file that can't be read.
func unreadable(key, path string, err error) error {
	if cause, ok := errors.AsType[*os.PathError](err); ok {
		err = cause.Err // the path is told already
	}
	reason := "cannot be read: " + err.Error()
	if whole, absErr := filepath.Abs(path); absErr == nil && whole != path {
		reason += " (looked for at " + whole + ")"
	}
	return Fault(key, path, reason)
}
