package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"os"
	"regexp"
	"strings"

	"github.com/youmark/pkcs8"
)

// errKeyPassword tells that the key is encrypted and its password is missing or wrong.
var errKeyPassword = errors.New("does not open the encrypted private key")

// block is one PEM block.
type block struct {
	label string
	der   []byte
	bad   bool // the body is not base64, or has the headers of PEM's own old encryption
}

// blocks finds the PEM blocks of a text. It is looser than encoding/pem about white space: the lines of inline PEM in a properties file are
// often joined by blanks, which Java accepts.
func blocks(text string) []block {
	pattern := regexp.MustCompile(`-----BEGIN ([A-Z0-9 ]+)-----((?s).*?)-----END [A-Z0-9 ]+-----`)
	var out []block
	for _, match := range pattern.FindAllStringSubmatch(text, -1) {
		der, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(match[2]), ""))
		out = append(out, block{label: match[1], der: der, bad: err != nil})
	}
	return out
}

// parseCertificates returns the certificates of a PEM text, in order.
func parseCertificates(text string) ([]*x509.Certificate, error) {
	var out []*x509.Certificate
	for _, b := range blocks(text) {
		if b.label != "CERTIFICATE" && b.label != "TRUSTED CERTIFICATE" {
			continue
		}
		if b.bad {
			return nil, errors.New("a certificate is not base64")
		}
		certificate, err := x509.ParseCertificate(b.der)
		if err != nil {
			return nil, err
		}
		out = append(out, certificate)
	}
	return out, nil
}

// parseKey returns the first private key of a PEM text.
func parseKey(text, password string) (any, error) {
	for _, b := range blocks(text) {
		if !strings.HasSuffix(b.label, "PRIVATE KEY") {
			continue
		}
		if b.bad {
			return nil, errors.New("it is encrypted in the old PEM way, or not base64: convert it with openssl pkcs8 -topk8")
		}
		switch b.label {
		case "PRIVATE KEY":
			return x509.ParsePKCS8PrivateKey(b.der)
		case "RSA PRIVATE KEY":
			return x509.ParsePKCS1PrivateKey(b.der)
		case "EC PRIVATE KEY":
			return x509.ParseECPrivateKey(b.der)
		case "ENCRYPTED PRIVATE KEY":
			key, err := pkcs8.ParsePKCS8PrivateKey(b.der, []byte(password))
			if err != nil || password == "" {
				return nil, errKeyPassword
			}
			return key, nil
		}
		return nil, errors.New("its kind " + b.label + " is not supported")
	}
	return nil, errors.New("there is no PEM block of a private key")
}

// readPair reads a certificate chain and its key from two PEM files, which may be the same.
func readPair(certFile, keyFile, password string) ([]tls.Certificate, error) {
	chainText, err := os.ReadFile(certFile)
	if err != nil {
		return nil, &ConfigError{Key: "tls.cert_file", Value: certFile, Reason: "cannot be read", Err: err}
	}
	keyText, err := os.ReadFile(keyFile)
	if err != nil {
		return nil, &ConfigError{Key: "tls.key_file", Value: keyFile, Reason: "cannot be read", Err: err}
	}
	chain, err := parseCertificates(string(chainText))
	if err != nil || len(chain) == 0 {
		return nil, &ConfigError{Key: "tls.cert_file", Value: certFile, Reason: "holds no readable certificate", Err: err}
	}
	private, err := parseKey(string(keyText), password)
	if errors.Is(err, errKeyPassword) {
		return nil, &ConfigError{Key: "tls.key_password", Reason: err.Error()}
	}
	if err != nil {
		return nil, &ConfigError{Key: "tls.key_file", Value: keyFile, Reason: "holds no usable private key", Err: err}
	}
	pair, err := joinPair(private, chain)
	if err != nil {
		return nil, &ConfigError{Key: "tls.cert_file", Value: certFile, Reason: "does not belong to key_file", Err: err}
	}
	return []tls.Certificate{pair}, nil
}
