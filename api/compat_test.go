package api

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
)

// standby is a process that does not lead.
type standby struct{ leader string }

func (standby) Fleet() (Fleet, bool) { return nil, false }

func (s standby) Leader(context.Context) (id, address string) { return "other", s.leader }

func TestTheClientsFavouriteFormIsFound(t *testing.T) {
	for accept, want := range map[string]string{
		"": "application/json", "*/*": "application/json", "application/json": "application/json", "image/png": "application/json",
		"text/html": "text/html", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": "text/html",
		"text/html;q=0.1, application/json": "application/json", "text/html;q=0, */*": "application/json",
		"application/xml": "application/xml", "TEXT/PLAIN": "text/plain", "text/plain;q=x": "text/plain",
	} {
		require.Equal(t, want, preferred(accept), accept)
	}
}

func TestAStandbyPassesACallOnAsItCame(t *testing.T) {
	var got *http.Request
	leader := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		w.Header().Set("Content-Type", "text/plain;charset=utf-8")
		w.WriteHeader(http.StatusTeapot)
		_, _ = w.Write([]byte("from the leader"))
	}))
	defer leader.Close()
	c := NewCompat(CompatConfig{Advertise: "c2"}, standby{leader.URL}, hclog.NewNullLogger())
	w := httptest.NewRecorder()
	c.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/blacklist?topic=a&partition=0&opt=blacklist", strings.NewReader("")))
	require.Equal(t, http.StatusTeapot, w.Code)
	require.Equal(t, "from the leader", w.Body.String())
	require.Equal(t, "text/plain;charset=utf-8", w.Header().Get("Content-Type"))
	require.Equal(t, "/blacklist?topic=a&partition=0&opt=blacklist", got.RequestURI)
	require.Equal(t, "c2", got.Header.Get(passedOn))
}

func TestTwoStandbysDoNotPlayACallBackAndForth(t *testing.T) {
	var second http.Handler
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { second.ServeHTTP(w, r) }))
	defer server.Close()
	second = NewCompat(CompatConfig{Advertise: "c2"}, standby{server.URL}, hclog.NewNullLogger())
	for _, c := range []http.Handler{
		second, // takes the other one for the leader, which takes itself for none
		NewCompat(CompatConfig{Advertise: "c1"}, standby{""}, hclog.NewNullLogger()),
		NewCompat(CompatConfig{Advertise: "c1"}, standby{"http://127.0.0.1:1"}, hclog.NewNullLogger()),
		NewCompat(CompatConfig{Advertise: "c1"}, standby{"no url"}, hclog.NewNullLogger()),
	} {
		w := httptest.NewRecorder()
		c.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/topics", http.NoBody))
		require.Equal(t, http.StatusServiceUnavailable, w.Code)
	}
}

func TestWhatIsNoResourceIsAnsweredWithoutALeader(t *testing.T) {
	c := NewCompat(CompatConfig{}, standby{""}, hclog.NewNullLogger())
	for _, row := range []struct {
		method, path string
		code         int
		allow        string
	}{
		{http.MethodGet, "/", http.StatusNotFound, ""},
		{http.MethodGet, "/topics//", http.StatusNotFound, ""},
		{http.MethodGet, "/topics/a/b", http.StatusNotFound, ""},
		{http.MethodGet, "/admin/", http.StatusNotFound, ""},
		{http.MethodGet, "/offset/a", http.StatusNotFound, ""},
		{http.MethodPut, "/health", http.StatusMethodNotAllowed, "GET"},
		{http.MethodOptions, "/topics", http.StatusMethodNotAllowed, "GET, PUT, DELETE, POST"},
		{http.MethodPatch, "/topics", http.StatusServiceUnavailable, ""},
		{http.MethodHead, "/topics", http.StatusServiceUnavailable, ""},
	} {
		w := httptest.NewRecorder()
		c.ServeHTTP(w, httptest.NewRequest(row.method, row.path, http.NoBody))
		require.Equal(t, row.code, w.Code, row.path)
		require.Equal(t, row.allow, w.Header().Get("Allow"))
	}
}
