package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	// tokenTimeout bounds one request to a token endpoint.
	tokenTimeout = 10 * time.Second
	// maxTokenBytes bounds what we read of its answer.
	maxTokenBytes = 1 << 20
	// defaultUnsecuredLife is how long a token without signature is valid unless the options say otherwise.
	defaultUnsecuredLife = time.Hour
)

// Unsecured describes a token without signature (RFC 7519 §6), as Java's unsecured login makes it for test clusters.
type Unsecured struct {
	// Claims are the token's claims besides its times.
	Claims map[string]any
	// Life is how long each token is valid.
	Life time.Duration
}

// tokenSource returns a function that yields a token for one connection.
func (c Config) tokenSource() func(context.Context) (string, error) {
	s := c.SASL
	switch {
	case s.Unsecured != nil:
		return func(context.Context) (string, error) { return s.Unsecured.token(time.Now()) }
	case s.TokenEndpoint != "":
		return newTokenEndpoint(c).token
	default:
		return func(context.Context) (string, error) { return s.Token.orFile(s.TokenFile) }
	}
}

// token makes a token that is valid from now on.
func (u Unsecured) token(now time.Time) (string, error) {
	life := u.Life
	if life <= 0 {
		life = defaultUnsecuredLife
	}
	claims := map[string]any{}
	maps.Copy(claims, u.Claims)
	claims["iat"] = float64(now.UnixMilli()) / 1000
	claims["exp"] = float64(now.Add(life).UnixMilli()) / 1000
	body, err := json.Marshal(claims)
	if err != nil {
		return "", fmt.Errorf("marshal claims: %w", err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"none"}`)) + "." + encode(body) + ".", nil
}

// tokenEndpoint fetches tokens for client credentials (RFC 6749 §4.4) and keeps each for four fifths of its life.
type tokenEndpoint struct {
	cfg  Config
	turn chan struct{} // held by the one who fetches; guards what follows

	cached  string
	renewAt time.Time
}

func newTokenEndpoint(cfg Config) *tokenEndpoint {
	return &tokenEndpoint{cfg: cfg, turn: make(chan struct{}, 1)}
}

// token returns the cached token or fetches one. Others wait meanwhile, each no longer than its context lives.
func (e *tokenEndpoint) token(ctx context.Context) (string, error) {
	select {
	case e.turn <- struct{}{}:
		defer func() { <-e.turn }()
	case <-ctx.Done():
		return "", fmt.Errorf("wait for a token from %s: %w", displayURL(e.cfg.SASL.TokenEndpoint), ctx.Err())
	}
	if e.cached != "" && time.Now().Before(e.renewAt) {
		return e.cached, nil
	}
	ctx, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	token, life, err := e.fetch(ctx)
	if err != nil {
		return "", fmt.Errorf("fetch token from %s: %w", displayURL(e.cfg.SASL.TokenEndpoint), err)
	}
	e.cached, e.renewAt = token, time.Now().Add(life*4/5)
	return token, nil
}

// fetch asks the endpoint once. The secret goes into the header only, so no error can hold it.
func (e *tokenEndpoint) fetch(ctx context.Context) (string, time.Duration, error) {
	s := e.cfg.SASL
	secret, err := s.ClientSecret.orFile(s.ClientSecretFile)
	if err != nil {
		return "", 0, err
	}
	form := url.Values{"grant_type": {"client_credentials"}}
	if s.Scope != "" {
		form.Set("scope", s.Scope)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.TokenEndpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return "", 0, fmt.Errorf("make request: %w", err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Accept", "application/json")
	request.SetBasicAuth(s.ClientID, secret)
	client, err := e.client()
	if err != nil {
		return "", 0, err
	}
	response, err := client.Do(request)
	if err != nil {
		return "", 0, withoutURL(err)
	}
	defer func() { _ = response.Body.Close() }()
	return parseToken(response)
}

// client trusts the system's authorities and those configured for the brokers, which in a company are mostly the same. It keeps no connection:
// a token is fetched about once an hour.
func (e *tokenEndpoint) client() (*http.Client, error) {
	store, key := e.cfg.TLS.trustStore()
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if store != (Store{}) {
		certificates, err := readTrust(store, key)
		if err != nil {
			return nil, e.cfg.named(err)
		}
		for _, certificate := range certificates {
			pool.AddCert(certificate)
		}
	}
	return &http.Client{Transport: &http.Transport{
		Proxy:             http.ProxyFromEnvironment,
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
	}}, nil
}

// parseToken reads the endpoint's answer (RFC 6749 §5).
func parseToken(response *http.Response) (string, time.Duration, error) {
	var answer struct {
		AccessToken string  `json:"access_token"`
		ExpiresIn   float64 `json:"expires_in"` // seconds
		Error       string  `json:"error"`
	}
	err := json.NewDecoder(io.LimitReader(response.Body, maxTokenBytes)).Decode(&answer)
	switch {
	case response.StatusCode != http.StatusOK:
		return "", 0, fmt.Errorf("status %d %s", response.StatusCode, answer.Error)
	case err != nil:
		return "", 0, errors.New("the answer is not JSON")
	case answer.AccessToken == "":
		return "", 0, errors.New("the answer has no access_token")
	}
	return answer.AccessToken, time.Duration(answer.ExpiresIn * float64(time.Second)), nil
}

// withoutURL drops the URL that net/http puts into its errors: it may carry a password.
func withoutURL(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

// displayURL returns a URL without user, password and query.
func displayURL(text string) string {
	parsed, err := url.Parse(text)
	if err != nil {
		return "the token endpoint"
	}
	return (&url.URL{Scheme: parsed.Scheme, Host: parsed.Host, Path: parsed.Path}).String()
}
