package native

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/internal/testkit"
)

// serverFaults judges the section server with one change.
func serverFaults(change func(*Server)) string {
	f := Default()
	change(&f.Server)
	if err := f.ValidateServer(); err != nil {
		return err.Error()
	}
	return ""
}

func fileWith(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestServerWithCertificateAndToken(t *testing.T) {
	t.Parallel()
	ca := testkit.NewAuthority(t)
	cert, key := ca.Files(t, "me")
	f := Default()
	require.False(t, f.Server.TLS.On())
	f.Server.TLS = ServerTLS{CertFile: cert, KeyFile: key, CAFile: ca.File}
	f.Server.Auth.TokenFile = fileWith(t, "\n s3cret-token \r\n")
	require.NoError(t, f.ValidateServer())
	require.True(t, f.Server.TLS.On())
}

func TestEveryFaultOfTheServerIsToldWithoutWhatIsSecret(t *testing.T) {
	t.Parallel()
	ca := testkit.NewAuthority(t)
	cert, key := ca.Files(t, "me")
	other, _ := ca.Files(t, "other")
	for _, row := range []struct {
		name   string
		change func(*Server)
		want   string
	}{
		{"no address", func(s *Server) { s.Listen = "8080" }, `server.listen (--listen) "8080": must be HOST:PORT or :PORT`},
		{"no port", func(s *Server) { s.Listen = ":http" }, `server.listen (--listen) ":http": the port must be a number`},
		{"cert alone", func(s *Server) { s.TLS.CertFile = cert }, `server.tls.key_file "": is missing beside cert_file`},
		{"key alone", func(s *Server) { s.TLS.KeyFile = key }, `server.tls.cert_file "": is missing beside key_file`},
		{"no such cert", func(s *Server) { s.TLS = ServerTLS{CertFile: "/nosuch", KeyFile: key} }, `server.tls.cert_file "/nosuch": cannot be read: no such file or directory`},
		{"no such key", func(s *Server) { s.TLS = ServerTLS{CertFile: cert, KeyFile: "/nosuch"} }, `server.tls.key_file "/nosuch": cannot be read: no such file or directory`},
		{"another's key", func(s *Server) { s.TLS = ServerTLS{CertFile: other, KeyFile: key} }, `is no pair in PEM with key_file ` + key + `: private key does not match public key`},
		{"exchanged", func(s *Server) { s.TLS = ServerTLS{CertFile: key, KeyFile: cert} }, `server.tls.cert_file "` + key + `": is no pair in PEM`},
		{"no such authority", func(s *Server) { s.TLS.CAFile = "/nosuch" }, `server.tls.ca_file "/nosuch": cannot be read: no such file or directory`},
		{"no authority", func(s *Server) { s.TLS.CAFile = key }, `server.tls.ca_file "` + key + `": holds no certificate in PEM`},
		{"no token file", func(s *Server) { s.Auth.TokenFile = "/nosuch" }, `server.auth.token_file "/nosuch": cannot be read: no such file or directory`},
		{"token file of another folder", func(s *Server) { s.Auth.TokenFile = "nosuch" }, `server.auth.token_file "nosuch": cannot be read: no such file or directory (looked for at /`},
		{"empty token", func(s *Server) { s.Auth.TokenFile = fileWith(t, " \n") }, `: is empty`},
		{"two words", func(s *Server) { s.Auth.TokenFile = fileWith(t, "s3cret s3cret") }, `must hold one token without spaces`},
		{"none allowed", func(s *Server) { s.MaxConnectionsPerAddress = 0 }, `server.max_connections_per_address "0": must be at least 1`},
		{"none at all", func(s *Server) { s.MaxConnections = 0 }, `server.max_connections "0": must be at least 1`},
		{"a name", func(s *Server) { s.MaxConnectionsOf = map[string]int{"proxy": 7} }, `server.max_connections_of.proxy "7": must be of an IP address`},
		{"fewer than none", func(s *Server) { s.MaxConnectionsOf = map[string]int{"::1": -1} }, `server.max_connections_of.::1 "-1": must be 0 or more`},
		{"at once", func(s *Server) { s.IdleTimeout = 0 }, `server.idle_timeout "0s": must be more than 0s`},
		{"three", func(s *Server) { s.Auth.TokenFile, s.TLS.CAFile, s.Listen = "/a", "/b", "c" }, "ca_file \"/b\": cannot be read: no such file or directory\nserver.auth.token_file \"/a\""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			told := serverFaults(row.change)
			require.Contains(t, told, row.want)
			require.NotContains(t, told, "s3cret")
			require.NotContains(t, told, "BEGIN")
		})
	}
}
