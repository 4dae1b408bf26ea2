package gateway

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/causeway-mirror/causeway/cluster"
	"github.com/causeway-mirror/causeway/network"
)

// Config says which cluster is shown, and how.
type Config struct {
	// Upstream is the cluster: brokers to ask first, and TLS. SASL is the clients' own.
	Upstream cluster.Config
	// Advertise is the host that clients are told to connect to.
	Advertise string
	// Names is the host of a broker, with {id} in it, if all are on one port and told apart by the name that a client asks TLS for. Empty: each has a
	// port of its own.
	Names string
	// TLS is shown to clients; off unless it has a certificate.
	TLS TLS
	// Connections are how many clients may open.
	Connections network.Quotas
	// MaxInFlight is how many requests of a connection may be unanswered before no more is read from it.
	MaxInFlight int
	// MaxRequest is how many bytes a request may have.
	MaxRequest int
	// MaxAnswers is how many bytes of answers that have to be changed are held at once; one that is larger ends its connection.
	MaxAnswers int64
	// IdleTimeout closes a connection on which nothing is in flight, and one on which nothing moves though something should.
	IdleTimeout time.Duration
	// FrameTimeout is for the next bytes of a frame that has begun to come, and for a client's TLS handshake.
	FrameTimeout time.Duration
	// DrainTimeout is for what is in flight when Run is to end.
	DrainTimeout time.Duration
}

// TLS are PEM files that are read again for each new connection.
type TLS struct {
	CertFile, KeyFile string
	ClientCAFile      string // authorities one of which must have signed a client's certificate; empty: none is asked for
}

// DefaultConfig has what Kafka's brokers have by default, where they have it.
func DefaultConfig() Config {
	return Config{
		Connections:  network.Quotas{PerAddress: 1000, Total: 10000},
		MaxInFlight:  1000,
		MaxRequest:   100 << 20, // socket.request.max.bytes
		MaxAnswers:   256 << 20,
		IdleTimeout:  10 * time.Minute, // connections.max.idle.ms
		FrameTimeout: 30 * time.Second,
		DrainTimeout: 30 * time.Second,
	}
}

// ConfigError is a setting that cannot be used.
type ConfigError struct{ Key, Value, Reason string }

// Error names key, value and reason.
func (e *ConfigError) Error() string { return fmt.Sprintf("%s %q: %s", e.Key, e.Value, e.Reason) }

// Validate reports all faults at once, each a *ConfigError whose key is the name of a flag without its dashes, or one of cluster's.
func (c Config) Validate() error {
	var faults []error
	fault := func(wrong bool, key, value, reason string) {
		if wrong {
			faults = append(faults, &ConfigError{key, value, reason})
		}
	}
	fault(len(c.Upstream.Bootstrap) == 0, "upstream", "", "must name at least one broker, HOST:PORT")
	for _, address := range c.Upstream.Bootstrap {
		host, port, err := net.SplitHostPort(address)
		n, errPort := strconv.ParseUint(port, 10, 16)
		fault(err != nil || errPort != nil || host == "" || n == 0, "upstream", address, "must be HOST:PORT")
	}
	fault(c.Upstream.SASL.Mechanism != "", "upstream-config", c.Upstream.SASL.Mechanism,
		"must have no SASL: clients authenticate at the brokers themselves")
	fault(c.Advertise == "", "advertise", "", "must be the host that clients can reach")
	fault(strings.ContainsAny(c.Advertise, ":/ "), "advertise", c.Advertise, "must be a host without a port")
	fault(c.Names != "" && strings.Count(c.Names, "{id}") != 1, "broker-names", c.Names, "must have {id} in it once")
	fault(c.Names != "" && c.TLS.CertFile == "", "broker-names", c.Names, "needs --tls-cert: brokers are told apart by the name that TLS asks for")
	fault((c.TLS.CertFile == "") != (c.TLS.KeyFile == ""), "tls-cert", c.TLS.CertFile, "must be given with --tls-key")
	fault(c.TLS.ClientCAFile != "" && c.TLS.CertFile == "", "tls-client-ca", c.TLS.ClientCAFile, "needs --tls-cert")
	for _, row := range []struct {
		key string
		n   int64
	}{
		{"max-connections", int64(c.Connections.Total)},
		{"max-connections-per-address", int64(c.Connections.PerAddress)},
		{"max-in-flight", int64(c.MaxInFlight)},
		{"max-request", int64(c.MaxRequest)},
		{"max-answers", c.MaxAnswers},
	} {
		fault(row.n <= 0, row.key, strconv.FormatInt(row.n, 10), "must be more than 0")
	}
	fault(c.IdleTimeout <= 0, "idle-timeout", c.IdleTimeout.String(), "must be more than 0s")
	fault(c.FrameTimeout <= 0, "frame-timeout", c.FrameTimeout.String(), "must be more than 0s")
	fault(c.DrainTimeout < 0, "drain-timeout", c.DrainTimeout.String(), "must not be negative")
	return errors.Join(faults...)
}
