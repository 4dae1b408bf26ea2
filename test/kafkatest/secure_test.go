package kafkatest_test

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

func TestSecureListenerLetsTheUserThroughAndNobodyElse(t *testing.T) {
	t.Parallel()
	for _, version := range []string{kafkatest.Kafka3, kafkatest.Kafka4} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			c := kafkatest.Start(t, kafkatest.Options{Version: version, Secure: true})
			s := c.Secure()
			c.CreateTopic(t, "t", 1, nil)
			ca, err := os.ReadFile(s.CAFile)
			require.NoError(t, err)
			cert, err := tls.LoadX509KeyPair(s.CertFile, s.KeyFile)
			require.NoError(t, err)
			conf := &tls.Config{RootCAs: x509.NewCertPool(), Certificates: []tls.Certificate{cert}}
			require.True(t, conf.RootCAs.AppendCertsFromPEM(ca))
			for i, mechanism := range []sasl.Mechanism{
				plain.Auth{User: s.User, Pass: s.Password}.AsMechanism(),
				scram.Auth{User: s.User, Pass: s.Password}.AsSha256Mechanism(),
				scram.Auth{User: s.User, Pass: s.Password}.AsSha512Mechanism(),
			} {
				cl, err := kgo.NewClient(kgo.SeedBrokers(s.Bootstrap...), kgo.DialTLSConfig(conf), kgo.SASL(mechanism))
				require.NoError(t, err)
				produce(t, cl, "t", 10*i, 10)
				cl.Close()
			}
			consume(t, c, "t", 30)

			cl, err := kgo.NewClient(kgo.SeedBrokers(s.Bootstrap...), kgo.DialTLSConfig(conf), kgo.SASL(plain.Auth{User: s.User, Pass: "wrong"}.AsMechanism()))
			require.NoError(t, err)
			defer cl.Close()
			require.ErrorContains(t, cl.Ping(t.Context()), "SASL_AUTHENTICATION_FAILED")
		})
	}
}
