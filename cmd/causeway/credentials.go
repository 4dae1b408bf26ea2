package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

const (
	// dialTime bounds connecting, and the TLS handshake behind it: a mirror that is there answers much sooner.
	dialTime = 10 * time.Second
	// keptIdle is for how long a connection is kept for the next page or the next look.
	keptIdle = 30 * time.Second
)

// credentials are what the API asks of who calls it, and what shows that it is the right one.
type credentials struct {
	tokenFile string
	caFile    string
}

func (k *credentials) flag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&k.tokenFile, "token-file", os.Getenv("CAUSEWAY_TOKEN_FILE"), "`FILE` that holds the API's bearer token (or CAUSEWAY_TOKEN_FILE)")
	cmd.Flag("token-file").DefValue = "" // help is the same whatever the environment says
	cmd.Flags().StringVar(&k.caFile, "api-ca", "", "PEM `FILE` of the authorities that signed the API's certificate, instead of the system's")
}

// token reads the bearer token; none gives "". It is read for each call, so that a rotated one counts.
func (k *credentials) token() (string, error) {
	if k.tokenFile == "" {
		return "", nil
	}
	text, err := os.ReadFile(k.tokenFile)
	token := strings.TrimSpace(string(text))
	switch {
	case err != nil:
		return "", fault("--token-file", k.tokenFile, unreadable(err))
	case token == "":
		return "", fault("--token-file", k.tokenFile, "is empty")
	case strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }):
		return "", fault("--token-file", k.tokenFile, "must hold one token without spaces, of printable ASCII: it is sent in a header")
	}
	return token, nil
}

// client opens connections, encrypted where the address says so. Redirects are the caller's.
func (k *credentials) client() (*http.Client, error) {
	secure := &tls.Config{MinVersion: tls.VersionTLS12}
	if k.caFile != "" {
		text, err := os.ReadFile(k.caFile)
		if err != nil {
			return nil, fault("--api-ca", k.caFile, unreadable(err))
		}
		secure.RootCAs = x509.NewCertPool()
		if !secure.RootCAs.AppendCertsFromPEM(text) {
			return nil, fault("--api-ca", k.caFile, "holds no certificate in PEM form")
		}
	}
	return &http.Client{
		Transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: dialTime}).DialContext,
			TLSHandshakeTimeout: dialTime,
			TLSClientConfig:     secure,
			IdleConnTimeout:     keptIdle,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// unreadable says why a file cannot be read; the fault names the file already.
func unreadable(err error) string { return "cannot be read: " + causeOf(err).Error() }

// unwritable says why a file cannot be written.
func unwritable(err error) string { return "cannot be written: " + causeOf(err).Error() }

// causeOf is an error of the file system without the names of files.
func causeOf(err error) error {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.Err
	}
	return err
}
