package wire

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/causeway-mirror/causeway/cluster"
)

func user(mechanism, password string) cluster.SASL {
	return cluster.SASL{Mechanism: mechanism, Username: "me", Password: cluster.Secret(password)}
}

func TestMechanisms(t *testing.T) {
	t.Parallel()
	for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		t.Run(mechanism, func(t *testing.T) {
			t.Parallel()
			kc := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "a"), kfake.EnableSASL(), kfake.Superuser(mechanism, "me", "secret"))
			c := newClient(t, cluster.Config{Bootstrap: kc.ListenAddrs(), SASL: user(mechanism, "secret")}, quick())
			m, err := c.Metadata(t.Context())
			require.NoError(t, err)
			require.Contains(t, m.Topics, "a")

			for name, wrong := range map[string]cluster.SASL{"wrong password": user(mechanism, "other"), "no SASL": {}} {
				c = newClient(t, cluster.Config{Bootstrap: kc.ListenAddrs(), SASL: wrong}, quick())
				_, err = c.Metadata(t.Context())
				require.Error(t, err, name)
			}
		})
	}
}

func TestRefusedCredentialsAreTyped(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name      string
		key       kmsg.Key
		fill      func(kmsg.Response)
		mechanism string
		want      error
		text      string
	}{
		{"wrong password", kmsg.SASLAuthenticate, func(r kmsg.Response) {
			a := r.(*kmsg.SASLAuthenticateResponse)
			a.ErrorCode, a.ErrorMessage = kerr.SaslAuthenticationFailed.Code, new("go away")
		}, "PLAIN", kerr.SaslAuthenticationFailed, "go away"},
		{"mechanism not offered", kmsg.SASLHandshake, func(r kmsg.Response) {
			h := r.(*kmsg.SASLHandshakeResponse)
			h.ErrorCode, h.SupportedMechanisms = kerr.UnsupportedSaslMechanism.Code, []string{"GSSAPI", "AWS"}
		}, "PLAIN", kerr.UnsupportedSaslMechanism, "GSSAPI, AWS"},
		{"server that can't prove itself", kmsg.SASLAuthenticate, func(r kmsg.Response) {
			r.(*kmsg.SASLAuthenticateResponse).SASLAuthBytes = []byte("r=nonsense")
		}, "SCRAM-SHA-256", nil, "SCRAM-SHA-256"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			kc := newCluster(t, kfake.NumBrokers(1), kfake.EnableSASL(), kfake.Superuser("PLAIN", "me", "secret"), kfake.Superuser("SCRAM-SHA-256", "me", "secret"))
			kc.ControlKey(int16(row.key), func(req kmsg.Request) (kmsg.Response, error, bool) {
				resp := req.ResponseKind()
				row.fill(resp)
				return resp, nil, true
			})
			c := newClient(t, cluster.Config{Bootstrap: kc.ListenAddrs(), SASL: user(row.mechanism, "secret")}, quick())
			_, err := c.Metadata(t.Context())
			var auth *AuthError
			require.ErrorAs(t, err, &auth)
			require.Equal(t, row.mechanism, auth.Mechanism)
			require.ErrorContains(t, err, row.text)
			require.NotContains(t, err.Error(), "secret")
			if row.want != nil {
				require.ErrorIs(t, err, row.want)
			}
			var link *LinkError
			require.ErrorAs(t, err, &link)
		})
	}
}

// The session ends many times while requests of several goroutines are in the pipeline; kfake refuses a handshake out of turn.
func TestSessionIsRenewedUnderLoad(t *testing.T) {
	t.Parallel()
	kc := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "a"), kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-256", "me", "secret"),
		kfake.BrokerConfigs(map[string]string{"connections.max.reauth.ms": "50"}))
	cfg := DefaultConfig()
	cfg.RenewalGap = time.Millisecond
	c := newClient(t, cluster.Config{Bootstrap: kc.ListenAddrs(), SASL: user("SCRAM-SHA-256", "secret")}, cfg)
	conn := dialBroker(t, c, 0)
	var handshakes atomic.Int32
	kc.Control(func(req kmsg.Request) (kmsg.Response, error, bool) {
		kc.KeepControl()
		if req.Key() == int16(kmsg.SASLHandshake) {
			handshakes.Add(1)
		}
		return nil, nil, false
	})
	giveUp := time.Now().Add(20 * time.Second)
	enough := func() bool { return handshakes.Load() >= 5 || time.Now().After(giveUp) }
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for !enough() {
				if _, err := conn.Call(t.Context(), kmsg.NewPtrMetadataRequest()); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	batch := someBatch(1, 10)
	var told outcomes
	sent := 0
	for ; !enough(); sent++ {
		for n, _ := conn.Unanswered(); n > 20; n, _ = conn.Unanswered() {
			runtime.Gosched()
		}
		require.NoError(t, conn.Produce(&Produce{Acks: -1, Timeout: time.Second, Batches: []ProduceBatch{{Topic: "a", Records: batch}}}, told.of(sent)))
	}
	wg.Wait()
	require.Eventually(t, func() bool { return told.count() == sent }, 5*time.Second, time.Millisecond)
	require.GreaterOrEqual(t, handshakes.Load(), int32(5))
	require.NoError(t, conn.Err())
	require.True(t, slices.IsSorted(told.ids))
	for _, err := range told.errs {
		require.NoError(t, err)
	}
}

func TestRefusedRenewalEndsTheConnection(t *testing.T) {
	t.Parallel()
	kc := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "a"), kfake.EnableSASL(), kfake.Superuser("PLAIN", "me", "secret"),
		kfake.BrokerConfigs(map[string]string{"connections.max.reauth.ms": "50"}))
	c := newClient(t, cluster.Config{Bootstrap: kc.ListenAddrs(), SASL: user("PLAIN", "secret")}, quick())
	conn := dialBroker(t, c, 0)
	kc.ControlKey(int16(kmsg.SASLAuthenticate), func(req kmsg.Request) (kmsg.Response, error, bool) {
		resp := req.ResponseKind().(*kmsg.SASLAuthenticateResponse)
		resp.ErrorCode = kerr.SaslAuthenticationFailed.Code
		return resp, nil, true
	})
	var err error
	require.Eventually(t, func() bool {
		_, err = conn.Call(t.Context(), kmsg.NewPtrMetadataRequest())
		return err != nil
	}, 5*time.Second, time.Millisecond)
	var auth *AuthError
	require.ErrorAs(t, err, &auth)
	<-conn.Done()
	require.ErrorAs(t, conn.Err(), &auth)
}

func TestDueIn(t *testing.T) {
	t.Parallel()
	now := time.Now()
	require.Equal(t, now.Add(8*time.Minute), dueIn(now, 10*time.Minute, time.Second))
	require.Equal(t, now.Add(time.Second), dueIn(now, time.Second, time.Second))
	require.True(t, dueIn(now, 0, time.Second).After(now.Add(24*365*time.Hour)))
}

// authority signs certificates for 127.0.0.1 and writes its own to a file.
func authority(t *testing.T) (caFile string, server tls.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, &key.PublicKey, key)
	require.NoError(t, err)
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	leafKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, ca, &leafKey.PublicKey, key)
	require.NoError(t, err)
	caFile = filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(caFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	return caFile, tls.Certificate{Certificate: [][]byte{leafDER}, PrivateKey: leafKey}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	caFile, server := authority(t)
	otherCA, _ := authority(t)
	kc := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(2, "a"), kfake.TLS(&tls.Config{Certificates: []tls.Certificate{server}}),
		kfake.EnableSASL(), kfake.Superuser("PLAIN", "me", "secret"))
	sasl := user("PLAIN", "secret")
	c := newClient(t, cluster.Config{Bootstrap: kc.ListenAddrs(), TLS: cluster.TLS{CAFile: caFile}, SASL: sasl}, DefaultConfig())
	conn := dialBroker(t, c, 0)
	require.NotNil(t, conn.out.cork)
	want := someBatch(10, 30_000)
	for range 3 {
		resp, err := produce(t, conn, &Produce{Acks: -1, Timeout: time.Second, Batches: []ProduceBatch{{Topic: "a", Records: want}, {Topic: "a", Partition: 1, Records: want}}})
		require.NoError(t, err)
		require.Len(t, resp.Topics[0].Partitions, 2)
	}
	req := fetchRequest("a", [16]byte{}, 1)
	resp, s, err := conn.Fetch(t.Context(), req, newPool(10<<20), 0)
	require.NoError(t, err)
	require.True(t, slices.Equal(want[16:], resp.Topics[0].Partitions[0].RecordBatches[16:len(want)]))
	s.Release()

	for name, config := range map[string]cluster.TLS{"another authority": {CAFile: otherCA}, "another name": {CAFile: caFile, ServerName: "example.org"}, "plaintext": {}} {
		c = newClient(t, cluster.Config{Bootstrap: kc.ListenAddrs(), TLS: config, SASL: sasl}, quick())
		_, err = c.Metadata(t.Context())
		var link *LinkError
		require.ErrorAs(t, err, &link, name)
	}
}
