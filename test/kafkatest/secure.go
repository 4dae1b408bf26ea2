package kafkatest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/causeway-mirror/causeway/internal/kafkad"
)

// Secure says how a client gets through a cluster's SASL_SSL listener.
type Secure struct {
	// Bootstrap is the brokers' addresses, host:port each.
	Bootstrap []string
	// CAFile is the PEM file of the authority that signed the brokers' certificate, which is for 127.0.0.1 and localhost.
	CAFile string
	// CertFile and KeyFile are a client's certificate and key, which brokers ask for but do not insist on.
	CertFile, KeyFile string
	// User and Password are valid with PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512.
	User, Password string
}

const (
	secureUser     = "causeway"
	securePassword = "let-me-through"
)

// Secure returns the cluster's SASL_SSL listener; the zero value without Options.Secure.
func (c *Cluster) Secure() Secure {
	if !c.opts.Secure {
		return Secure{}
	}
	s := Secure{
		CAFile: filepath.Join(c.root, "ca.pem"), CertFile: filepath.Join(c.root, "client.pem"), KeyFile: filepath.Join(c.root, "client.key"),
		User: secureUser, Password: securePassword,
	}
	for _, b := range c.brokers {
		s.Bootstrap = append(s.Bootstrap, kafkad.Loopback(b.securePort))
	}
	return s
}

// secureConfig is what a broker's configuration needs for the listener SECURE.
func (c *Cluster) secureConfig() map[string]string {
	const module = "org.apache.kafka.common.security."
	return map[string]string{
		"ssl.keystore.type":                            "PEM",
		"ssl.keystore.location":                        filepath.Join(c.root, "broker.both"),
		"ssl.truststore.type":                          "PEM",
		"ssl.truststore.location":                      filepath.Join(c.root, "ca.pem"),
		"ssl.client.auth":                              "requested",
		"listener.name.secure.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
		"listener.name.secure.plain.sasl.jaas.config": fmt.Sprintf("%splain.PlainLoginModule required user_%s=%q;",
			module, secureUser, securePassword),
		"listener.name.secure.scram-sha-256.sasl.jaas.config": module + "scram.ScramLoginModule required;",
		"listener.name.secure.scram-sha-512.sasl.jaas.config": module + "scram.ScramLoginModule required;",
	}
}

// addUser stores the SCRAM credentials in the running cluster.
func (c *Cluster) addUser(ctx context.Context) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.Bootstrap()...))
	if err != nil {
		return fmt.Errorf("create client: %w", err)
	}
	defer cl.Close()
	// One request each: KRaft's controllers refuse two changes of one user at a time.
	for _, mechanism := range []kadm.ScramMechanism{kadm.ScramSha256, kadm.ScramSha512} {
		err = kafkad.Poll(ctx, kafkad.ReadyWithin, func(ctx context.Context) error {
			// Made anew each time, since the call fills in the salt.
			user := kadm.UpsertSCRAM{User: secureUser, Mechanism: mechanism, Iterations: 4096, Password: securePassword}
			altered, err := kadm.NewClient(cl).AlterUserSCRAMs(ctx, nil, []kadm.UpsertSCRAM{user})
			if err != nil {
				return err
			}
			return altered.Error()
		})
		if err != nil {
			return fmt.Errorf("add user: %w\n%s", err, c.Logs())
		}
	}
	return nil
}

// writeCertificates makes an authority and certificates for brokers and clients, valid for a day.
func (c *Cluster) writeCertificates() error {
	ca, err := issue("causeway test authority", nil)
	if err != nil {
		return err
	}
	broker, err := issue("broker", ca)
	if err != nil {
		return err
	}
	client, err := issue("client", ca)
	if err != nil {
		return err
	}
	for name, text := range map[string][]byte{
		"ca.pem": ca.certPEM, "broker.both": append(broker.keyPEM, broker.certPEM...), // one file: Kafka's form of a PEM key store
		"client.pem": client.certPEM, "client.key": client.keyPEM,
	} {
		if err := os.WriteFile(filepath.Join(c.root, name), text, 0o600); err != nil {
			return fmt.Errorf("write certificate: %w", err)
		}
	}
	return nil
}

// identity is a certificate and its key.
type identity struct {
	cert            *x509.Certificate
	key             *ecdsa.PrivateKey
	certPEM, keyPEM []byte
}

// issue makes an identity signed by ca, or an authority if ca is nil.
func issue(name string, ca *identity) (*identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return nil, fmt.Errorf("generate serial: %w", err)
	}
	cert := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
	}
	parent := &identity{cert: cert, key: key}
	if ca == nil {
		cert.IsCA, cert.KeyUsage, cert.ExtKeyUsage, cert.DNSNames, cert.IPAddresses = true, x509.KeyUsageCertSign, nil, nil, nil
	} else {
		parent = ca
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, parent.cert, &key.PublicKey, parent.key)
	if err != nil {
		return nil, fmt.Errorf("sign certificate: %w", err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key) // the only form of a key that Kafka reads
	if err != nil {
		return nil, fmt.Errorf("encode key: %w", err)
	}
	return &identity{
		cert: cert, key: key,
		certPEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		keyPEM:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}),
	}, nil
}
