package api

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

// tokenFile holds a token.
func tokenFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// ask gives the answer to a request; header are pairs.
func ask(t *testing.T, h http.Handler, method, path string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestWritesNeedTheToken(t *testing.T) {
	t.Parallel()
	path := tokenFile(t, "\n s3cret \n")
	s := serverOf(t, "controller", leader{answeringFleet{}}, func(c *Config, _ *fakeMirror) { c.TokenFile = path })
	const write = "/api/v1/rebalance"
	for _, row := range []struct {
		name, method, path, authorization string
		code                              int
		challenge                         string
	}{
		{"none", "POST", write, "", 401, `Bearer realm="causeway"`},
		{"another scheme", "POST", write, "Basic s3cret", 401, `Bearer realm="causeway"`},
		{"the token alone", "POST", write, "s3cret", 401, `Bearer realm="causeway"`},
		{"wrong", "POST", write, "Bearer s3creT", 401, `Bearer realm="causeway", error="invalid_token"`},
		{"its beginning", "POST", write, "Bearer s3cre", 401, `Bearer realm="causeway", error="invalid_token"`},
		{"empty", "POST", write, "Bearer ", 401, `Bearer realm="causeway", error="invalid_token"`},
		{"right", "POST", write, "Bearer s3cret", 202, ""},
		{"right, other case and spaces", "POST", write, "bearer  s3cret ", 202, ""},
		{"delete", "DELETE", "/api/v1/topics/orders", "", 401, `Bearer realm="causeway"`},
		{"where nothing is", "PUT", "/api/v1/nosuch", "", 404, ""},
		{"a method that is not there", "PUT", "/api/v1/workers", "", 405, ""},
		{"read", "GET", "/api/v1/workers", "", 200, ""},
		{"head", "HEAD", "/api/v1/workers", "", 200, ""},
		{"read with a wrong one", "GET", "/api/v1/workers", "Bearer x", 200, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := ask(t, s, row.method, row.path, "Authorization", row.authorization)
			require.Equal(t, row.code, w.Code, w.Body)
			require.Equal(t, row.challenge, w.Header().Get("WWW-Authenticate"))
			require.NotContains(t, w.Body.String(), "s3cre")
			if row.code == http.StatusUnauthorized {
				require.Equal(t, "application/json", w.Header().Get("Content-Type"))
				require.Contains(t, w.Body.String(), `"code":"unauthorized"`)
			}
		})
	}
}

func TestNoWriteOfTheDocumentIsDoneWithoutTheToken(t *testing.T) {
	t.Parallel()
	_, operations := readDescription(t)
	writes := 0
	for _, role := range roles() {
		s := serverOf(t, role, leader{answeringFleet{}}, func(c *Config, _ *fakeMirror) { c.TokenFile = tokenFile(t, "s3cret") })
		for _, o := range operations {
			if o.method == http.MethodGet {
				continue
			}
			writes++
			path := strings.NewReplacer("{topic}", "orders", "{partition}", "3", "{id}", "w1").Replace(o.path)
			if !slices.Contains(o.roles, role) { // it is not there, with a token or without
				require.Contains(t, []int{http.StatusNotFound, http.StatusMethodNotAllowed}, ask(t, s, o.method, path).Code, "%s: %s %s", role, o.method, path)
				continue
			}
			require.Equal(t, http.StatusUnauthorized, ask(t, s, o.method, path).Code, "%s: %s %s", role, o.method, path)
			require.Equal(t, http.StatusUnauthorized, ask(t, s, o.method, path, "Authorization", "Bearer guess").Code, "%s: %s %s", role, o.method, path)
		}
	}
	require.Greater(t, writes, 3*10)
}

func TestNoWriteOfTheDocumentIsDoneWhereNothingMayBeChanged(t *testing.T) {
	t.Parallel()
	_, operations := readDescription(t)
	for _, role := range roles() {
		s := serverOf(t, role, leader{answeringFleet{}}, func(c *Config, _ *fakeMirror) { c.TokenFile, c.ReadOnly = tokenFile(t, "s3cret"), true })
		for _, o := range operations {
			if o.method == http.MethodGet || !slices.Contains(o.roles, role) {
				continue
			}
			path := strings.NewReplacer("{topic}", "orders", "{partition}", "3", "{id}", "w1").Replace(o.path)
			answer := ask(t, s, o.method, path, "Authorization", "Bearer s3cret")
			require.Equal(t, http.StatusForbidden, answer.Code, "%s: %s %s", role, o.method, path)
			require.Contains(t, answer.Body.String(), `"read_only"`)
		}
		require.Equal(t, http.StatusOK, ask(t, s, http.MethodGet, "/api/v1/status").Code)
	}
}

func TestTheOldRESTNeedsTheTokenToo(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cfg := DefaultConfig()
	cfg.TokenFile = tokenFile(t, "s3cret")
	var rate float64
	s, err := New(cfg, Deps{
		Log: hclog.NewNullLogger(), Mirror: h.mirror, Events: h.log, Registry: prometheus.NewRegistry(), Identity: h.server.deps.Identity,
		Fallback: NewRateLimiter(func(r float64) error { rate = r; return nil }),
	})
	require.NoError(t, err)
	const path = "/ratelimiter?messagerate=5"
	require.Equal(t, http.StatusUnauthorized, ask(t, s, http.MethodPut, path).Code)
	require.Zero(t, rate)
	require.Equal(t, http.StatusOK, ask(t, s, http.MethodPut, path, "Authorization", "Bearer s3cret").Code)
	require.InDelta(t, 5, rate, 0)
}

// A replaced token counts at once; while it can't be read, or is empty, nobody is let in.
func TestTheTokenIsThatOfItsFileNow(t *testing.T) {
	t.Parallel()
	path := tokenFile(t, "first")
	s := serverOf(t, "controller", leader{answeringFleet{}}, func(c *Config, _ *fakeMirror) { c.TokenFile = path })
	code := func(token string) int {
		return ask(t, s, http.MethodPost, "/api/v1/rebalance", "Authorization", "Bearer "+token).Code
	}
	require.Equal(t, http.StatusAccepted, code("first"))
	require.NoError(t, os.WriteFile(path, []byte("other"), 0o600))
	require.Equal(t, http.StatusUnauthorized, code("first"))
	require.Equal(t, http.StatusAccepted, code("other"))
	require.NoError(t, os.WriteFile(path, []byte(" \n"), 0o600))
	require.Equal(t, http.StatusServiceUnavailable, code(""))
	require.NoError(t, os.Remove(path))
	require.Equal(t, http.StatusServiceUnavailable, code("other"))
	require.Equal(t, http.StatusOK, ask(t, s, http.MethodGet, "/api/v1/status").Code)
}

// A page of another site may send a browser's form here, and needs no token where there is none.
func TestPagesOfOtherOriginsChangeNothing(t *testing.T) {
	t.Parallel()
	s := serverOf(t, "standalone", nil, unchanged)
	for _, row := range []struct {
		name, method, site, origin string
		code                       int
	}{
		{"no browser", "POST", "", "", 202},
		{"the own page", "POST", "same-origin", "http://example.com", 202},
		{"an older browser on the own page", "POST", "", "http://example.com", 202},
		{"another site", "POST", "cross-site", "http://other.example", 403},
		{"an older browser on another site", "POST", "", "http://other.example", 403},
		{"another port of this host", "POST", "same-site", "http://example.com:81", 403},
		{"a link", "GET", "cross-site", "", 200},
	} {
		path := map[string]string{"POST": "/api/v1/topics/orders/pause", "GET": "/api/v1/status"}[row.method]
		w := ask(t, s, row.method, path, "Sec-Fetch-Site", row.site, "Origin", row.origin)
		require.Equal(t, row.code, w.Code, row.name)
		if row.code == http.StatusForbidden {
			require.Contains(t, w.Body.String(), `"code":"cross_origin"`, row.name)
		}
	}
}

func TestAStandbyPassesTheTokenOnToTheLeader(t *testing.T) {
	t.Parallel()
	got := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r.Header.Get("Authorization") }))
	defer server.Close()
	peers := NewPeers("")
	defer peers.CloseIdleConnections()
	c := NewCompat(CompatConfig{Peers: peers}, standby{server.URL}, hclog.NewNullLogger())
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/topics/a", strings.NewReader(""))
	r.Header.Set("Authorization", "Bearer s3cret")
	c.ServeHTTP(httptest.NewRecorder(), r)
	require.Equal(t, "Bearer s3cret", <-got)
}
