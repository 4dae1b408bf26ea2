package cluster

import (
	"bytes"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/pavlo-v-chernykh/keystore-go/v4"
	"software.sslmate.com/src/go-pkcs12"
)

// The store types, named as Java names them.
const (
	storeJKS    = "JKS"
	storePKCS12 = "PKCS12"
	storePEM    = "PEM"
)

// The first four bytes of the two Java formats. Java tells JKS and PKCS12 apart by content too, whatever the type says.
const (
	magicJKS   = 0xFEEDFEED
	magicJCEKS = 0xCECECECE
)

// opened is a store whose bytes are read and whose format is known.
type opened struct {
	store    Store
	key      string // native name of the store's setting; faults are named after it
	kind     string
	data     []byte
	password string
}

// fault makes a fault of one of the store's settings.
func (o *opened) fault(setting, reason, cure string, err error) *ConfigError {
	f := &ConfigError{Key: o.key, Value: o.store.Location, Reason: reason, Cure: cure, Err: err}
	if o.key != "tls.ca_file" {
		f.Key += "." + setting
	}
	if setting != "location" {
		f.Value = "" // a password or inline PEM is not shown
	}
	return f
}

// open reads a store and finds its format.
func open(s Store, key string) (*opened, error) {
	o := &opened{store: s, key: key, kind: storePEM}
	if s.Location == "" {
		return o, nil // inline PEM
	}
	var err error
	if o.password, err = s.Password.orFile(s.PasswordFile); err != nil {
		return nil, &ConfigError{Key: key + ".password_file", Value: s.PasswordFile, Reason: "cannot be read", Err: err}
	}
	if o.data, err = os.ReadFile(s.Location); err != nil {
		return nil, o.fault("location", "cannot be read", "", err)
	}
	if o.kind = sniff(o.data); o.kind == "" {
		return nil, o.fault("location", "is neither JKS nor PKCS12 nor PEM", "convert it with keytool -importkeystore -deststoretype PKCS12", nil)
	}
	if declared := strings.ToUpper(s.Type); declared != "" && (declared == storePEM) != (o.kind == storePEM) {
		return nil, o.fault("location", "holds "+o.kind+", its type says "+declared, "set the type to "+o.kind, nil)
	}
	return o, nil
}

// sniff tells the format by the content; empty when it is none that we read.
func sniff(data []byte) string {
	switch {
	case len(data) >= 4 && binary.BigEndian.Uint32(data) == magicJKS:
		return storeJKS
	case len(data) >= 4 && binary.BigEndian.Uint32(data) == magicJCEKS:
		return ""
	case len(data) > 0 && data[0] == 0x30: // an ASN.1 sequence
		return storePKCS12
	case bytes.Contains(data, []byte("-----BEGIN ")):
		return storePEM
	}
	return ""
}

// readTrust returns a trust store's authorities.
func readTrust(s Store, key string) ([]*x509.Certificate, error) {
	o, err := open(s, key)
	if err != nil {
		return nil, err
	}
	var certificates []*x509.Certificate
	switch o.kind {
	case storeJKS:
		certificates, err = o.trustJKS()
	case storePKCS12:
		certificates, err = pkcs12.DecodeTrustStore(o.data, o.password)
		if err != nil {
			err = o.pkcs12Fault(err, "make it with keytool -importcert -storetype PKCS12, whose certificates are marked as trusted")
		}
	default:
		text, setting := o.pemText()
		if certificates, err = parseCertificates(text); err != nil {
			err = o.fault(setting, "holds a certificate that cannot be read", "", err)
		}
	}
	if err != nil {
		return nil, err
	}
	if len(certificates) == 0 {
		return nil, o.fault(o.main(), "holds no trusted certificate", "import the authority that signed the brokers' certificates", nil)
	}
	return certificates, nil
}

// main is the setting that holds the store: its file or its inline text.
func (o *opened) main() string {
	if o.store.Location == "" {
		return "certificates"
	}
	return "location"
}

// pemText returns the text of the certificates and the setting it came from.
func (o *opened) pemText() (text, setting string) {
	if o.store.Location == "" {
		return o.store.Certificates, "certificates"
	}
	return string(o.data), "location"
}

// pkcs12Fault tells a wrong password from other failures.
func (o *opened) pkcs12Fault(err error, cure string) *ConfigError {
	if errors.Is(err, pkcs12.ErrIncorrectPassword) || errors.Is(err, pkcs12.ErrDecryption) {
		return o.fault("password", "does not open the store", "", nil)
	}
	return o.fault("location", "cannot be read as PKCS12", cure, err)
}

// loadJKS reads a JKS store. Without a password its integrity is not checked, as in Java.
func (o *opened) loadJKS() (keystore.KeyStore, error) {
	store := keystore.New(keystore.WithOrderedAliases(), keystore.WithCaseExactAliases())
	err := store.Load(bytes.NewReader(o.data), []byte(o.password))
	if err == nil {
		return store, nil
	}
	// The library has no typed error for this one; all entries are loaded when it finds the digest to differ.
	if strings.Contains(err.Error(), "invalid digest") {
		if o.password == "" {
			return store, nil
		}
		return store, o.fault("password", "does not open the store, or the store is damaged", "", nil)
	}
	return store, o.fault("location", "cannot be read as JKS", "", err)
}

// trustJKS returns the trusted certificates of a JKS store.
func (o *opened) trustJKS() ([]*x509.Certificate, error) {
	store, err := o.loadJKS()
	if err != nil {
		return nil, err
	}
	var certificates []*x509.Certificate
	for _, alias := range store.Aliases() {
		if !store.IsTrustedCertificateEntry(alias) {
			continue
		}
		entry, err := store.GetTrustedCertificateEntry(alias)
		if err != nil {
			return nil, o.fault("location", "has an unreadable entry "+alias, "", err)
		}
		certificate, err := x509.ParseCertificate(entry.Certificate.Content)
		if err != nil {
			return nil, o.fault("location", "has an unreadable certificate "+alias, "", err)
		}
		certificates = append(certificates, certificate)
	}
	return certificates, nil
}

// readKeys returns a key store's certificates with their private keys, leaf first.
func readKeys(s Store, key, keyPassword string) ([]tls.Certificate, error) {
	o, err := open(s, key)
	if err != nil {
		return nil, err
	}
	switch o.kind {
	case storeJKS:
		return o.keysJKS(keyPassword)
	case storePKCS12:
		private, leaf, others, err := pkcs12.DecodeChain(o.data, o.password)
		if err != nil {
			return nil, o.pkcs12Fault(err, "keep one private key with its chain in it")
		}
		return o.pair(private, append([]*x509.Certificate{leaf}, others...))
	default:
		return o.keysPEM(keyPassword)
	}
}

// keysJKS returns all private keys of a JKS store.
func (o *opened) keysJKS(keyPassword string) ([]tls.Certificate, error) {
	store, err := o.loadJKS()
	if err != nil {
		return nil, err
	}
	if keyPassword == "" {
		keyPassword = o.password
	}
	var keys []tls.Certificate
	for _, alias := range store.Aliases() {
		if !store.IsPrivateKeyEntry(alias) {
			continue
		}
		entry, err := store.GetPrivateKeyEntry(alias, []byte(keyPassword))
		if err != nil {
			return nil, &ConfigError{Key: "tls.key_password", Reason: "does not open the key " + alias + " of the store"}
		}
		private, err := x509.ParsePKCS8PrivateKey(entry.PrivateKey)
		if err != nil {
			return nil, o.fault("location", "has an unreadable key "+alias, "", err)
		}
		var chain []*x509.Certificate
		for _, raw := range entry.CertificateChain {
			certificate, err := x509.ParseCertificate(raw.Content)
			if err != nil {
				return nil, o.fault("location", "has an unreadable certificate "+alias, "", err)
			}
			chain = append(chain, certificate)
		}
		pair, err := o.pair(private, chain)
		if err != nil {
			return nil, err
		}
		keys = append(keys, pair...)
	}
	if len(keys) == 0 {
		return nil, o.fault("location", "holds no private key", "import our certificate together with its key", nil)
	}
	return keys, nil
}

// keysPEM returns the private key and the chain of a PEM store.
func (o *opened) keysPEM(keyPassword string) ([]tls.Certificate, error) {
	text, setting := o.pemText()
	keyText, keySetting := text, setting
	if o.store.Location == "" {
		keyText, keySetting = o.store.Key.Reveal(), "key"
	}
	private, err := parseKey(keyText, keyPassword)
	if errors.Is(err, errKeyPassword) {
		return nil, &ConfigError{Key: "tls.key_password", Reason: err.Error()}
	}
	if err != nil {
		return nil, o.fault(keySetting, "holds no usable private key", "", err)
	}
	chain, err := parseCertificates(text)
	if err != nil {
		return nil, o.fault(setting, "holds a certificate that cannot be read", "", err)
	}
	return o.pair(private, chain)
}

// pair joins a key with its chain, leaf first whatever the order in the store, and refuses a key that fits none of the certificates.
func (o *opened) pair(private any, chain []*x509.Certificate) ([]tls.Certificate, error) {
	pair, err := joinPair(private, chain)
	if err != nil {
		return nil, o.fault(o.main(), err.Error(), "", nil)
	}
	return []tls.Certificate{pair}, nil
}

// joinPair finds the leaf that the key belongs to and puts the rest of the chain behind it.
func joinPair(private any, chain []*x509.Certificate) (tls.Certificate, error) {
	signer, ok := private.(crypto.Signer)
	if !ok {
		return tls.Certificate{}, errors.New("the private key cannot sign")
	}
	public, ok := signer.Public().(interface {
		Equal(other crypto.PublicKey) bool
	})
	if !ok {
		return tls.Certificate{}, errors.New("the private key is of an unknown kind")
	}
	at := slices.IndexFunc(chain, func(c *x509.Certificate) bool { return public.Equal(c.PublicKey) })
	if at < 0 {
		return tls.Certificate{}, errors.New("no certificate in it belongs to the private key")
	}
	pair := tls.Certificate{PrivateKey: private, Leaf: chain[at], Certificate: [][]byte{chain[at].Raw}}
	for i, certificate := range chain {
		if i != at {
			pair.Certificate = append(pair.Certificate, certificate.Raw)
		}
	}
	return pair, nil
}
