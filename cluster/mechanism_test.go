package cluster

import (
	"context"
	"crypto/ecdsa"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// withKey completes an identity with a private key.
func withKey(t *testing.T, i *identity, key any) *identity {
	t.Helper()
	own, ok := key.(*ecdsa.PrivateKey)
	require.True(t, ok)
	i.key = own
	return i
}

// firstMessage returns what a mechanism sends first.
func firstMessage(t *testing.T, s SASL) string {
	t.Helper()
	mechanism, err := Config{SASL: s}.Mechanism()
	require.NoError(t, err)
	require.Equal(t, strings.ToUpper(s.Mechanism), mechanism.Name())
	_, first, err := mechanism.Authenticate(t.Context(), "broker:9092")
	require.NoError(t, err)
	return string(first)
}

func TestMechanismFirstMessage(t *testing.T) {
	t.Parallel()
	require.Equal(t, "\x00u\x00p", firstMessage(t, SASL{Mechanism: "plain", Username: "u", Password: "p"}))
	require.True(t, strings.HasPrefix(firstMessage(t, SASL{Mechanism: "SCRAM-SHA-256", Username: "u", Password: "p"}), "n,,n=u,r="))
	require.Contains(t, firstMessage(t, SASL{Mechanism: "SCRAM-SHA-512", Username: "u", Password: "p", DelegationToken: true}), ",tokenauth=true")
	require.Equal(t, "n,,\x01auth=Bearer t0ken\x01a=b\x01\x01", firstMessage(t, SASL{Mechanism: "OAUTHBEARER", Token: "t0ken", Extensions: map[string]string{"a": "b"}}))
	_, err := Config{SASL: SASL{Mechanism: "X"}}.Mechanism()
	require.Equal(t, Invalid, Classify(err))
}

// Passwords and tokens in files are read for each connection.
func TestSecretFilesRotate(t *testing.T) {
	t.Parallel()
	path := write(t, "secret", "one\n")
	for _, s := range []SASL{{Mechanism: "PLAIN", Username: "u", PasswordFile: path}, {Mechanism: "OAUTHBEARER", TokenFile: path}} {
		mechanism, err := Config{SASL: s}.Mechanism()
		require.NoError(t, err)
		for _, secret := range []string{"one", "two"} {
			require.NoError(t, os.WriteFile(path, []byte(secret+"\r\n"), 0o600))
			_, first, err := mechanism.Authenticate(t.Context(), "")
			require.NoError(t, err)
			require.Contains(t, string(first), secret)
			require.NotContains(t, string(first), "\n")
		}
	}
	mechanism, err := Config{SASL: SASL{Mechanism: "SCRAM-SHA-256", Username: "u", PasswordFile: "/nowhere"}}.Mechanism()
	require.NoError(t, err)
	_, _, err = mechanism.Authenticate(t.Context(), "")
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestUnsecuredToken(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_700_000_000_500)
	token, err := Unsecured{Claims: map[string]any{"sub": "bob", "scope": []string{"a"}}}.token(now)
	require.NoError(t, err)
	parts := strings.Split(token, ".")
	require.Len(t, parts, 3)
	require.Empty(t, parts[2])
	header, err := base64.RawURLEncoding.DecodeString(parts[0])
	require.NoError(t, err)
	require.JSONEq(t, `{"alg":"none"}`, string(header))
	body, err := base64.RawURLEncoding.DecodeString(parts[1])
	require.NoError(t, err)
	require.JSONEq(t, `{"sub":"bob","scope":["a"],"iat":1700000000.5,"exp":1700003600.5}`, string(body))
}

// endpoint is a token endpoint that counts.
type endpoint struct {
	*httptest.Server
	asked  atomic.Int32
	status int
	body   any
}

func newEndpoint(t *testing.T, start func(http.Handler) *httptest.Server) *endpoint {
	t.Helper()
	e := &endpoint{status: http.StatusOK, body: map[string]any{"access_token": "t0ken", "expires_in": 3600}}
	e.Server = start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.asked.Add(1)
		id, secret, _ := r.BasicAuth()
		if id != "id" || secret != "s3cret" || r.FormValue("grant_type") != "client_credentials" || r.FormValue("scope") != "a b" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.WriteHeader(e.status)
		_ = json.NewEncoder(w).Encode(e.body)
	}))
	t.Cleanup(e.Close)
	return e
}

// A token is fetched once and kept for four fifths of its life.
func TestTokenEndpoint(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t, httptest.NewServer)
	s := SASL{Mechanism: "OAUTHBEARER", TokenEndpoint: e.URL, ClientID: "id", ClientSecretFile: write(t, "s", "s3cret\n"), Scope: "a b"}
	token := Config{SASL: s}.tokenSource()
	for range 3 {
		got, err := token(t.Context())
		require.NoError(t, err)
		require.Equal(t, "t0ken", got)
	}
	require.EqualValues(t, 1, e.asked.Load())

	e.body = map[string]any{"access_token": "brief"} // without a life it is not kept
	token = Config{SASL: s}.tokenSource()
	for range 2 {
		got, err := token(t.Context())
		require.NoError(t, err)
		require.Equal(t, "brief", got)
	}
	require.EqualValues(t, 3, e.asked.Load())
}

// A connection that had to be given up waited as long as another one did for a token.
func TestNobodyWaitsForAnothersTokenLongerThanHeMay(t *testing.T) {
	t.Parallel()
	asked, answer := make(chan struct{}), make(chan struct{})
	e := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(asked)
		<-answer
		_, _ = io.WriteString(w, `{"access_token":"t","expires_in":60}`)
	}))
	defer e.Close()
	source := Config{SASL: SASL{Mechanism: "OAUTHBEARER", TokenEndpoint: e.URL, ClientID: "id", ClientSecret: "s3cret"}}.tokenSource()
	first := make(chan error, 1)
	go func() { // owned by the test, which reads first
		_, err := source(t.Context())
		first <- err
	}()
	<-asked
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := source(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, first, "the first one still waits")
	close(answer)
	require.NoError(t, <-first)
	token, err := source(t.Context())
	require.NoError(t, err)
	require.Equal(t, "t", token)
}

// The endpoint's certificate is checked against the authorities of the brokers too.
func TestTokenEndpointOverTLS(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t, httptest.NewTLSServer)
	s := SASL{Mechanism: "OAUTHBEARER", TokenEndpoint: e.URL, ClientID: "id", ClientSecret: "s3cret", Scope: "a b"}
	_, err := Config{SASL: s}.tokenSource()(t.Context())
	require.Equal(t, Authentication, Classify(err))
	got, err := Config{SASL: s, TLS: TLS{CAFile: write(t, "ca", pemOf(e.Certificate()))}}.tokenSource()(t.Context())
	require.NoError(t, err)
	require.Equal(t, "t0ken", got)
}

func TestTokenEndpointFailures(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		status int
		body   any
		secret Secret
		want   string
	}{
		{"refused", http.StatusOK, nil, "wr0ng-s3cret", "status 401"},
		{"error with a name", http.StatusBadRequest, map[string]any{"error": "invalid_scope"}, "s3cret", "status 400 invalid_scope"},
		{"no token", http.StatusOK, map[string]any{"x": 1}, "s3cret", "no access_token"},
		{"no json", http.StatusOK, "text", "s3cret", "not JSON"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			e := newEndpoint(t, httptest.NewServer)
			e.status, e.body = row.status, row.body
			where := strings.Replace(e.URL, "http://", "http://user:hunter2@", 1)
			_, err := Config{SASL: SASL{TokenEndpoint: where, ClientID: "id", ClientSecret: row.secret, Scope: "a b"}}.tokenSource()(t.Context())
			require.ErrorContains(t, err, row.want)
			require.NotContains(t, err.Error(), "s3cret")
			require.NotContains(t, err.Error(), "hunter2")
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Config{SASL: SASL{TokenEndpoint: "http://user:hunter2@127.0.0.1:1/t", ClientID: "id"}}.tokenSource()(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.NotContains(t, err.Error(), "hunter2")
}
