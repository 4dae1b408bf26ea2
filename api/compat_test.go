package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/route"
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

// A controller that was elected and did not know its cluster yet, or no longer, sent writes to itself, in circles.
func TestNobodyIsSentToWhereHeIs(t *testing.T) {
	s := serverOf(t, "controller", leads{"w1", "http://me:8080"}, unchanged)
	require.Equal(t, "w1", s.deps.Identity.Worker)
	for _, row := range [][2]string{{"DELETE", "/api/v1/topics/x"}, {"POST", "/api/v1/topics/x/pause"}, {"GET", "/api/v1/topics"}} {
		w := ask(t, s, row[0], row[1])
		require.Equal(t, http.StatusServiceUnavailable, w.Code, row)
		require.Empty(t, w.Header().Get("Location"))
		require.Contains(t, w.Body.String(), `"code":"no_leader"`)
	}
	s = serverOf(t, "controller", leads{"other", "http://other:8080"}, unchanged)
	require.Equal(t, "http://other:8080/api/v1/topics/x", ask(t, s, "DELETE", "/api/v1/topics/x").Header().Get("Location"))
}

// leads is a process that names a leader and is none.
type leads struct{ id, address string }

func (leads) Fleet() (Fleet, bool) { return nil, false }

func (l leads) Leader(context.Context) (id, address string) { return l.id, l.address }

// patient keeps the deadlines that an answer was given, here and at the leader.
type patient struct {
	*httptest.ResponseRecorder

	here, there time.Duration
}

func (p *patient) SetWriteDeadline(at time.Time) error {
	p.here = time.Until(at)
	return nil
}

func (p *patient) RoundTrip(r *http.Request) (*http.Response, error) {
	at, _ := r.Context().Deadline()
	p.there = time.Until(at)
	return nil, errors.New("cut")
}

// A long wait through a standby ended after half a minute with "no controller leads".
func TestAWaitThroughAStandbyLastsAsLongAsItWasAskedTo(t *testing.T) {
	for query, least := range map[string]time.Duration{
		"wait?topic=x&timeout=5m": 5 * time.Minute, "wait?topic=x": usualWait, "wait?topic=x&timeout=long": passTimeout - time.Second,
		"topics?timeout=5m": passTimeout - time.Second,
	} {
		p := &patient{ResponseRecorder: httptest.NewRecorder()}
		s := serverOf(t, "controller", standby{"http://leader"}, unchanged)
		require.Contains(t, ask(t, s, http.MethodGet, "/api/v1/status").Body.String(), `"leader_address":"http://leader"`)
		s.pass = newForwarder("c2", standby{"http://leader"}, p, s.deps.Log, refuseLeaderless)
		s.ServeHTTP(p, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/"+query, http.NoBody))
		require.GreaterOrEqual(t, p.there, least, query)
		require.Greater(t, p.here, p.there, query)
	}
}

func TestErrorsThatAStandbyMeetsAreJSON(t *testing.T) {
	s := serverOf(t, "controller", standby{"http://127.0.0.1:1"}, unchanged)
	w := ask(t, s, "GET", "/api/v1/topics")
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Equal(t, "application/json", w.Header().Get("Content-Type"), w.Body.String())
}

// deposed is the fleet of a leader that does not know yet that it is none.
type deposed struct{ Fleet }

func (deposed) Add(context.Context, string, int32) error    { return errDeposed }
func (deposed) Expand(context.Context, string, int32) error { return errDeposed }
func (deposed) Delete(context.Context, string) error        { return errDeposed }
func (deposed) Rebalance(context.Context) error             { return errDeposed }
func (deposed) Drain(context.Context, string, bool) error   { return errDeposed }
func (deposed) SetBalancing(context.Context, bool) error    { return errDeposed }
func (deposed) InSource(context.Context, string) (int32, error) {
	return 0, ErrNoSource
}

func (deposed) TakeOff(context.Context, route.Partition, bool) error { return errDeposed }

var errDeposed = fmt.Errorf("%w: not the leader: the epoch has another version", ErrNoLeader)

// A client of the old REST was told of a fault of the server, instead of to try again.
func TestACallToALeaderThatIsNoneAnyMoreIsUnavailable(t *testing.T) {
	c := NewCompat(CompatConfig{Advertise: "c1"}, leader{deposed{}}, hclog.NewNullLogger())
	for _, row := range [][3]string{
		{http.MethodPost, "/topics", `{"topic":"a","numPartitions":1}`},
		{http.MethodPut, "/topics", `{"topic":"a","numPartitions":2}`},
		{http.MethodDelete, "/topics/a", ""},
		{http.MethodPost, "/instances", ""},
		{http.MethodPost, "/instances/w1", ""},
		{http.MethodDelete, "/instances/w1", ""},
		{http.MethodPost, "/admin/disable_autobalancing", ""},
		{http.MethodPost, "/blacklist?topic=a&partition=0&opt=blacklist", ""},
	} {
		w := httptest.NewRecorder()
		c.ServeHTTP(w, httptest.NewRequest(row[0], row[1], strings.NewReader(row[2])))
		require.Equal(t, http.StatusServiceUnavailable, w.Code, "%v: %s", row, w.Body)
	}
	s := serverOf(t, "controller", leader{deposed{}}, unchanged)
	w := ask(t, s, "DELETE", "/api/v1/topics/x")
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Contains(t, w.Body.String(), "no_leader")
}

// small is a fleet whose source has three partitions of each topic but one.
type small struct {
	Fleet

	did *[]string
}

func (small) Topic(string) (FleetTopic, bool) { return FleetTopic{Partitions: 2}, true }

func (small) InSource(_ context.Context, topic string) (int32, error) {
	switch topic {
	case "absent":
		return 0, ErrAbsent
	case "away":
		return 0, errors.New("the source does not answer")
	}
	return 3, nil
}

func (s small) Add(_ context.Context, topic string, n int32) error {
	*s.did = append(*s.did, fmt.Sprintf("add %s %d", topic, n))
	return nil
}

func (s small) Expand(_ context.Context, topic string, n int32) error {
	*s.did = append(*s.did, fmt.Sprintf("expand %s %d", topic, n))
	return nil
}

// Partitions that the source does not have halted their whole topic, and topics do not shrink.
func TestATopicIsNotGivenMorePartitionsThanItsSourceHas(t *testing.T) {
	var did []string
	s := serverOf(t, "controller", leader{small{did: &did}}, unchanged)
	for _, row := range []struct {
		path, body string
		code       int
		message    string
	}{
		{"/api/v1/topics", `{"topic":"orders","partitions":50}`, 422, "partitions: 50: the source has 3"},
		{"/api/v1/topics/orders/expand", `{"partitions":99}`, 422, "partitions: 99: the source has 3"},
		{"/api/v1/topics", `{"topic":"away","partitions":1}`, 503, "the source does not answer"},
		{"/api/v1/topics", `{"topic":"absent","partitions":9}`, 201, ""},
		{"/api/v1/topics", `{"topic":"orders","partitions":3}`, 201, ""},
		{"/api/v1/topics/orders/expand", `{"partitions":3}`, 202, ""},
	} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, row.path, strings.NewReader(row.body)))
		require.Equal(t, row.code, w.Code, w.Body)
		require.Contains(t, w.Body.String(), row.message)
	}
	require.Equal(t, []string{"add absent 9", "add orders 3", "expand orders 3"}, did)
	c := NewCompat(CompatConfig{Advertise: "c1"}, leader{small{did: &did}}, hclog.NewNullLogger())
	w := httptest.NewRecorder()
	c.ServeHTTP(w, httptest.NewRequest(http.MethodPut, "/topics", strings.NewReader(`{"topic":"orders","numPartitions":9}`)))
	require.Equal(t, http.StatusOK, w.Code, "the old REST takes what it always took")
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
