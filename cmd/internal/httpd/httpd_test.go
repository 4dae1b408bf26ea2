package httpd

import (
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/internal/native"
	"github.com/causeway-mirror/causeway/network"
)

func TestConfigIsThatOfTheFile(t *testing.T) {
	t.Parallel()
	s := native.Default().Server
	require.NoError(t, Config(s).Validate())
	s.MaxConnectionsOf = map[string]int{"10.0.0.5": 500, "FE80::0:1": 0}
	require.Equal(t, network.Quotas{PerAddress: 100, Overrides: map[string]int{"10.0.0.5": 500, "fe80::1": 0}, Total: 1000}, Config(s).Connections)
	require.Equal(t, 5*time.Minute, Config(s).IdleTimeout)
	s.TLS, s.Auth.TokenFile = native.ServerTLS{CertFile: "c", KeyFile: "k"}, "t"
	c := Config(s)
	require.Equal(t, []string{"c", "k", "t"}, []string{c.CertFile, c.KeyFile, c.TokenFile})
}

func TestAddressIsWhereOthersReachIt(t *testing.T) {
	t.Parallel()
	own, err := os.Hostname()
	require.NoError(t, err)
	secure := native.ServerTLS{CertFile: "c", KeyFile: "k"}
	for _, row := range []struct {
		listen, at, hostname string
		tls                  native.ServerTLS
		want                 string
	}{
		{"127.0.0.1:0", "127.0.0.1:8080", "", native.ServerTLS{}, "http://127.0.0.1:8080"},
		{"127.0.0.1:0", "127.0.0.1:8080", "named", native.ServerTLS{}, "http://127.0.0.1:8080"},
		{":8080", "[::]:8080", "named", native.ServerTLS{}, "http://named:8080"},
		{"0.0.0.0:0", "0.0.0.0:99", "", native.ServerTLS{}, "http://" + own + ":99"},
		{"mirror-1.lab:8443", "10.0.0.5:8443", "", secure, "https://mirror-1.lab:8443"},
		{"[::1]:0", "[::1]:8443", "", secure, "https://[::1]:8443"},
	} {
		at, err := net.ResolveTCPAddr("tcp", row.at)
		require.NoError(t, err)
		require.Equal(t, row.want, Address(at, native.Server{Listen: row.listen, TLS: row.tls}, row.hostname))
	}
}
