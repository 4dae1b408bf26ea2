package engine

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/cluster"
)

func TestCertificateExpiryIsTold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	write := func(name, kind string, bytes []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}), 0o600))
		return path
	}
	tls := cluster.TLS{CertFile: write("c.pem", "CERTIFICATE", cert), KeyFile: write("k.pem", "PRIVATE KEY", private)}
	gone := cluster.TLS{CertFile: filepath.Join(dir, "gone"), KeyFile: tls.KeyFile}
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(NewCertificates("@a@b@1", cluster.Config{Name: "ours", TLS: tls}, cluster.Config{Name: "plain"}, cluster.Config{Name: "broken", TLS: gone}))
	problems, err := testutil.GatherAndLint(reg)
	require.NoError(t, err)
	require.Empty(t, problems)
	found, err := reg.Gather()
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Len(t, found[0].GetMetric(), 1, "only the cluster with a readable certificate")
	require.InDelta(t, time.Hour.Seconds(), found[0].GetMetric()[0].GetGauge().GetValue(), 60)
}
