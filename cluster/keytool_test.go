package cluster

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Stores that the JDK itself made are read, in both formats and with the defaults that operators get.
func TestKeytoolStores(t *testing.T) {
	t.Parallel()
	keytool, err := exec.LookPath("keytool")
	if err != nil {
		t.Skip("SKIPPED: NO keytool ON THE PATH, SO STORES MADE BY A JDK ARE NOT TESTED")
	}
	for _, row := range []struct{ name, kind, keyPassword string }{
		{"jks", "JKS", storePassword},
		{"jks with a key password", "JKS", "k3y-secret"},
		{"pkcs12", "PKCS12", storePassword},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			run := func(args ...string) {
				args = append(args, "-storepass", storePassword, "-storetype", row.kind, "-noprompt")
				out, err := exec.CommandContext(t.Context(), keytool, args...).CombinedOutput()
				require.NoError(t, err, string(out))
			}
			keys, trust, cert := filepath.Join(dir, "keys"), filepath.Join(dir, "trust"), filepath.Join(dir, "cert")
			run("-genkeypair", "-keyalg", "EC", "-alias", "me", "-dname", "CN=me", "-keystore", keys, "-keypass", row.keyPassword, "-ext", "san=dns:broker")
			run("-exportcert", "-rfc", "-alias", "me", "-keystore", keys, "-file", cert)
			run("-importcert", "-alias", "ca", "-keystore", trust, "-file", cert)
			got, err := FromProperties("x", sslWith(
				"ssl.truststore.location", trust, "ssl.truststore.password", storePassword, "ssl.truststore.type", row.kind,
				"ssl.keystore.location", keys, "ssl.keystore.password", storePassword, "ssl.keystore.type", row.kind, "ssl.key.password", row.keyPassword))
			require.NoError(t, err)

			pair, err := got.clientCertificates()
			require.NoError(t, err)
			require.Len(t, pair, 1)
			trusted, err := readTrust(got.TLS.TrustStore, "tls.truststore")
			require.NoError(t, err)
			require.Len(t, trusted, 1)
			require.Equal(t, pair[0].Leaf.Raw, trusted[0].Raw)

			got.TLS.ServerName = "broker" // the self-signed certificate serves both sides
			self := &identity{cert: pair[0].Leaf, ca: &authority{cert: pair[0].Leaf}}
			server := newTLSServer(t, withKey(t, self, pair[0].PrivateKey), self.ca, nil)
			name, err := ask(t, got, server.address)
			require.NoError(t, err)
			require.Equal(t, "me", name)
		})
	}
}
