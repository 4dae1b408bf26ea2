package gateway

import (
	"context"
	"crypto/tls"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/causeway-mirror/causeway/cluster"
	"github.com/causeway-mirror/causeway/internal/testkit"
)

// TestCertificatesAreDemandedOnBothSides: the brokers want one of the gateway, and the gateway wants one of its clients.
func TestCertificatesAreDemandedOnBothSides(t *testing.T) {
	t.Parallel()
	ca, other := testkit.NewAuthority(t), testkit.NewAuthority(t)
	pair := func(ca *testkit.Authority, name string) tls.Certificate {
		p, err := tls.LoadX509KeyPair(ca.Files(t, name))
		require.NoError(t, err)
		return p
	}
	c := fake(t, kfake.TLS(&tls.Config{
		Certificates: []tls.Certificate{pair(ca, "broker")}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ca.Pool(),
	}))
	own := cluster.TLS{CAFile: ca.File}
	own.CertFile, own.KeyFile = ca.Files(t, "gateway at the brokers")
	shown := TLS{ClientCAFile: ca.File}
	shown.CertFile, shown.KeyFile = ca.Files(t, "gateway")
	s := open(t, c.ListenAddrs()[:1], 3, func(c *Config) { c.Upstream.TLS, c.TLS = own, shown })
	client := func(certificates ...tls.Certificate) *kgo.Client {
		return s.client(t, kgo.Dialer((&tls.Dialer{Config: &tls.Config{RootCAs: ca.Pool(), Certificates: certificates}}).DialContext),
			kgo.ConsumeTopics("numbers"), kgo.RetryTimeout(time.Second))
	}
	cl := client(pair(ca, "ann"))
	produce(t, cl, 0, 100)
	consume(t, cl, 100)
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	require.Error(t, client().Ping(ctx), "no certificate")
	require.Error(t, client(pair(other, "eve")).Ping(ctx), "another authority's")

	bare := open(t, c.ListenAddrs()[:1], 3, func(c *Config) { c.Upstream.TLS.CAFile = ca.File })
	require.Error(t, bare.client(t, kgo.RetryTimeout(time.Second)).Ping(ctx), "the gateway has none for the brokers")
}
