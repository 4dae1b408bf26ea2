package cluster

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pavlo-v-chernykh/keystore-go/v4"
	"github.com/stretchr/testify/require"
	"github.com/youmark/pkcs8"
	"software.sslmate.com/src/go-pkcs12"
)

// storePassword is the password of every store that the tests make; keytool wants six characters.
const storePassword = "st0re-secret"

// authority signs the certificates of one test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// identity is a certificate with its key.
type identity struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	ca   *authority
}

// newAuthority makes a self-signed authority.
func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return &authority{cert: cert, key: key}
}

// issue signs a certificate for a name, which is also its only DNS name.
func (a *authority) issue(t *testing.T, name string) *identity {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<60))
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(12 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return &identity{cert: cert, key: key, ca: a}
}

// pemOf returns a certificate as PEM.
func pemOf(cert *x509.Certificate) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}))
}

// chainPEM returns the certificate and its authority.
func (i *identity) chainPEM() string { return pemOf(i.cert) + pemOf(i.ca.cert) }

// keyPEM returns the private key as PKCS8, encrypted if there is a password.
func (i *identity) keyPEM(t *testing.T, password string) string {
	t.Helper()
	label := "PRIVATE KEY"
	der, err := x509.MarshalPKCS8PrivateKey(i.key)
	if password != "" {
		label = "ENCRYPTED PRIVATE KEY"
		der, err = pkcs8.MarshalPrivateKey(i.key, []byte(password), nil)
	}
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: label, Bytes: der}))
}

// tls returns the identity for a server.
func (i *identity) tls() tls.Certificate {
	return tls.Certificate{Certificate: [][]byte{i.cert.Raw, i.ca.cert.Raw}, PrivateKey: crypto.PrivateKey(i.key)}
}

// pkcs12 returns the identity as a PKCS12 key store.
func (i *identity) pkcs12(t *testing.T) []byte {
	t.Helper()
	data, err := pkcs12.Modern.Encode(i.key, i.cert, []*x509.Certificate{i.ca.cert}, storePassword)
	require.NoError(t, err)
	return data
}

// jks returns the identity as a JKS key store whose key has a password of its own.
func (i *identity) jks(t *testing.T, keyPassword string) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(i.key)
	require.NoError(t, err)
	store := keystore.New()
	require.NoError(t, store.SetPrivateKeyEntry("me", keystore.PrivateKeyEntry{
		CreationTime: time.Now(), PrivateKey: der,
		CertificateChain: []keystore.Certificate{{Type: "X.509", Content: i.cert.Raw}, {Type: "X.509", Content: i.ca.cert.Raw}},
	}, []byte(keyPassword)))
	var out bytes.Buffer
	require.NoError(t, store.Store(&out, []byte(storePassword)))
	return out.Bytes()
}

// trustPKCS12 returns the authority as a PKCS12 trust store.
func (a *authority) trustPKCS12(t *testing.T) []byte {
	t.Helper()
	data, err := pkcs12.Modern.EncodeTrustStore([]*x509.Certificate{a.cert}, storePassword)
	require.NoError(t, err)
	return data
}

// trustJKS returns the authority as a JKS trust store.
func (a *authority) trustJKS(t *testing.T) []byte {
	t.Helper()
	store := keystore.New()
	require.NoError(t, store.SetTrustedCertificateEntry("ca", keystore.TrustedCertificateEntry{
		CreationTime: time.Now(), Certificate: keystore.Certificate{Type: "X.509", Content: a.cert.Raw},
	}))
	var out bytes.Buffer
	require.NoError(t, store.Store(&out, []byte(storePassword)))
	return out.Bytes()
}

// write puts data into a new file and returns its path.
func write[T string | []byte](t *testing.T, name string, data T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(data), 0o600))
	return path
}
