package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/operator"
	"github.com/causeway-mirror/causeway/route"
)

// fakeOperator notes what it is asked, or fails.
type fakeOperator struct {
	asked []string
	err   error
}

func (f *fakeOperator) note(format string, args ...any) error {
	f.asked = append(f.asked, fmt.Sprintf(format, args...))
	return f.err
}

func (f *fakeOperator) Reset(_ context.Context, p route.Partition, to operator.Place) error {
	return f.note("reset %s %s", p, to)
}

func (f *fakeOperator) RetryDeadLetters(_ context.Context, topic string) (DeadLetters, error) {
	return DeadLetters{Topic: topic, PutBack: 2}, f.note("letters %s", topic)
}

func (f *fakeOperator) DeadLetters(_ context.Context, topic string) ([]DeadLetter, error) {
	all := []DeadLetter{{DeadLetterPartition: 1, DeadLetterOffset: 4}, {DeadLetterOffset: 30, Reason: "refused: no key"}, {DeadLetterOffset: 4}}
	return all, f.note("list letters %s", topic)
}

func (f *fakeOperator) Retry(_ context.Context, p route.Partition) error {
	return f.note("retry %s", p)
}

func (f *fakeOperator) LimitTopic(_ context.Context, topic string, l operator.Limits) error {
	return f.note("limit %s %g %g", topic, l.RecordsPerSecond, l.BytesPerSecond)
}

func (f *fakeOperator) LimitPartition(_ context.Context, p route.Partition, l operator.Limits) error {
	return f.note("limit %s %g %g", p, l.RecordsPerSecond, l.BytesPerSecond)
}

func (f *fakeOperator) PauseTopic(_ context.Context, topic string, on bool) error {
	return f.note("pause %s %t", topic, on)
}

func (f *fakeOperator) PausePartition(_ context.Context, p route.Partition, on bool) error {
	return f.note("pause %s %t", p, on)
}

// ledFleet is a fleet that does what operators ask.
type ledFleet struct {
	Fleet
	*fakeOperator
}

func (l ledFleet) Reset(ctx context.Context, p route.Partition, to operator.Place) error {
	return l.fakeOperator.Reset(ctx, p, to)
}

func (l ledFleet) RetryDeadLetters(ctx context.Context, topic string) (DeadLetters, error) {
	return l.fakeOperator.RetryDeadLetters(ctx, topic)
}

func (l ledFleet) DeadLetters(ctx context.Context, topic string) ([]DeadLetter, error) {
	return l.fakeOperator.DeadLetters(ctx, topic)
}

func (l ledFleet) Retry(ctx context.Context, p route.Partition) error {
	return l.fakeOperator.Retry(ctx, p)
}

func (l ledFleet) LimitTopic(ctx context.Context, topic string, limits operator.Limits) error {
	return l.fakeOperator.LimitTopic(ctx, topic, limits)
}

func (l ledFleet) LimitPartition(ctx context.Context, p route.Partition, limits operator.Limits) error {
	return l.fakeOperator.LimitPartition(ctx, p, limits)
}

func (l ledFleet) PauseTopic(ctx context.Context, topic string, on bool) error {
	return l.fakeOperator.PauseTopic(ctx, topic, on)
}

func (l ledFleet) PausePartition(ctx context.Context, p route.Partition, on bool) error {
	return l.fakeOperator.PausePartition(ctx, p, on)
}

// led is the leadership of whoever leads for ever.
type led struct{ fleet Fleet }

func (l led) Fleet() (Fleet, bool)                      { return l.fleet, true }
func (led) Leader(context.Context) (id, address string) { return "c1", "http://c1" }

// operated is a server of a mirror in one process, or of a leader.
func operated(t *testing.T, o *fakeOperator, leads bool) *Server {
	t.Helper()
	r := route.Route{Source: "a", Target: "b", ID: "1"}
	deps := Deps{
		Log: hclog.NewNullLogger(), Registry: prometheus.NewRegistry(), Operator: o, Identity: Identity{Role: "standalone", Worker: "w1", Route: r},
		Mirror: &fakeMirror{snapshot: Snapshot{State: StateMirroring, Partitions: []Partition{
			{Topic: "orders", Partition: 2, State: StateMirroring, Extent: Extent{SourceStart: 100, SourceEnd: 200}}, {Topic: "orders", Partition: 3, Extent: Extent{SourceStart: -1, SourceEnd: -1}},
		}}},
	}
	if leads {
		deps.Operator, deps.Leadership = nil, led{ledFleet{fakeOperator: o}}
	}
	s, err := New(DefaultConfig(), deps)
	require.NoError(t, err)
	return s
}

func call(t *testing.T, s *Server, method, path, body string) (int, string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func TestWhatOperatorsAskIsPassedOn(t *testing.T) {
	t.Parallel()
	const part = "/api/v1/topics/orders/partitions/2"
	for _, leads := range []bool{false, true} {
		for _, row := range []struct{ method, path, body, want string }{
			{"POST", part + "/reset", `{"to":"earliest"}`, "reset orders-2 earliest"},
			{"POST", part + "/reset", `{"to":"latest"}`, "reset orders-2 latest"},
			{"POST", part + "/reset", `{"to":150}`, "reset orders-2 150"},
			{"POST", part + "/reset", `{"to":"150"}`, "reset orders-2 150"},
			{"POST", part + "/reset", `{"to":"2026-01-02T03:04:05Z"}`, "reset orders-2 2026-01-02T03:04:05Z"},
			{"POST", "/api/v1/topics/orders/partitions/3/reset", `{"to":5}`, "reset orders-3 5"},
			{"POST", part + "/retry", ``, "retry orders-2"},
			{"PUT", part + "/limits", `{"records_per_second":100,"bytes_per_second":1.5}`, "limit orders-2 100 1.5"},
			{"PUT", "/api/v1/topics/orders/limits", `{"records_per_second":0}`, "limit orders 0 0"},
			{"POST", "/api/v1/topics/orders/pause", ``, "pause orders true"},
			{"POST", "/api/v1/topics/orders/resume", ``, "pause orders false"},
			{"POST", part + "/pause", ``, "pause orders-2 true"},
			{"POST", part + "/resume", ``, "pause orders-2 false"},
		} {
			o := &fakeOperator{}
			s := operated(t, o, leads)
			code, body := call(t, s, row.method, row.path, row.body)
			require.Equal(t, http.StatusAccepted, code, "%s %s: %s", row.path, row.body, body)
			require.Empty(t, body)
			require.Equal(t, []string{row.want}, o.asked)
			for err, want := range map[error]int{
				ErrNotFound: 404, ErrInvalid: 422, ErrAlready: 409, ErrImpossible: 409, errors.New("zookeeper is away"): 503,
			} {
				o.err = err
				code, body = call(t, s, row.method, row.path, row.body)
				require.Equal(t, want, code)
				require.Contains(t, body, err.Error())
				o.err = fmt.Errorf("%w: this is why", err)
				_, body = call(t, s, row.method, row.path, row.body)
				require.Equal(t, want == http.StatusServiceUnavailable, strings.Contains(body, err.Error()), "the code says of what kind it is")
				require.Contains(t, body, "this is why")
			}
		}
	}
}

func TestDeadLettersAreAnsweredWithCounts(t *testing.T) {
	t.Parallel()
	for _, leads := range []bool{false, true} {
		o := &fakeOperator{}
		s := operated(t, o, leads)
		code, body := call(t, s, "POST", "/api/v1/dead-letters/orders/retry", "")
		require.Equal(t, http.StatusOK, code)
		require.JSONEq(t, `{"topic":"orders","dead_letter_topic":"","put_back":2,"refused":0,"foreign":0}`, body)
		require.Equal(t, []string{"letters orders"}, o.asked)
		o.err = fmt.Errorf("%w: this is why", ErrNotFound)
		code, body = call(t, s, "POST", "/api/v1/dead-letters/orders/retry", "")
		require.Equal(t, http.StatusNotFound, code)
		require.Contains(t, body, "this is why")
	}
}

// TestDeadLettersAreListedByPages: in the order in which they stand, and not read for a question that is wrong.
func TestDeadLettersAreListedByPages(t *testing.T) {
	t.Parallel()
	for _, leads := range []bool{false, true} {
		o := &fakeOperator{}
		s := operated(t, o, leads)
		code, body := call(t, s, "GET", "/api/v1/dead-letters/orders?limit=2", "")
		require.Equal(t, http.StatusOK, code)
		require.Regexp(t, `"dead_letter_offset":4,.*"dead_letter_offset":30,.*"next":"0000000000/00000000000000000030"`, body)
		_, body = call(t, s, "GET", "/api/v1/dead-letters/orders?limit=2&after=0000000000/00000000000000000030", "")
		require.Regexp(t, `"items":\[\{[^}]*"dead_letter_partition":1,[^}]*\}\],"next":""`, body)
		_, body = call(t, s, "GET", "/api/v1/dead-letters/orders?filter=no+key", "")
		require.Regexp(t, `"items":\[\{[^}]*"dead_letter_offset":30,[^}]*\}\]`, body)
		asked := len(o.asked)
		code, _ = call(t, s, "GET", "/api/v1/dead-letters/orders?sort=colour", "")
		require.Equal(t, []any{http.StatusUnprocessableEntity, asked}, []any{code, len(o.asked)})
		o.err = fmt.Errorf("%w: this is why", ErrNotFound)
		code, body = call(t, s, "GET", "/api/v1/dead-letters/orders", "")
		require.Equal(t, http.StatusNotFound, code)
		require.Contains(t, body, "this is why")
	}
}

func TestWhatOperatorsCannotMeanIsNamed(t *testing.T) {
	t.Parallel()
	const part = "/api/v1/topics/orders/partitions/2"
	for _, row := range []struct{ method, path, body, want string }{
		{"POST", part + "/reset", ``, "to is missing: must be earliest"},
		{"POST", part + "/reset", `{}`, "to is missing"},
		{"POST", part + "/reset", `{"to":null}`, "to: null: must be earliest"},
		{"POST", part + "/reset", `{"to":"yesterday"}`, "to: yesterday: must be earliest, latest, an offset, or a time such as"},
		{"POST", part + "/reset", `{"to":-1}`, "to: -1: an offset must not be negative"},
		{"POST", part + "/reset", `{"to":1.5}`, "to: 1.5: must be"},
		{"POST", part + "/reset", `{"to":["earliest"]}`, `to: [\"earliest\"]: must be`},
		{"POST", part + "/reset", `{"to":99}`, "to: 99: the source begins at 100"},
		{"POST", part + "/reset", `{"from":"latest"}`, `unknown field \"from\"`},
		{"POST", part + "/reset", `{"to"`, "the body is not what it should be"},
		{"POST", "/api/v1/topics/orders/partitions/x/reset", `{"to":"latest"}`, `partition \"x\" is no number`},
		{"POST", part + "/reset", `{"to":"latest"} {"to":0}`, "something stands behind the JSON of the body"},
		{"PUT", part + "/limits", `{"records_per_second":5}x`, "something stands behind the JSON of the body"},
		{"PUT", part + "/limits", ``, "records_per_second and bytes_per_second are missing"},
		{"PUT", part + "/limits", `{"records_per_second":-5}`, "records_per_second: -5: must not be negative; 0 = none"},
		{"PUT", part + "/limits", `{"bytes_per_second":"many"}`, "bytes_per_second: string: must be a number"},
		{"PUT", "/api/v1/topics/orders/limits", `{"bytes":5}`, `unknown field \"bytes\"`},
		{"PUT", "/api/v1/topics/orders/limits", `[]`, `the body is not what it should be: array in place of an object"`},
		{"PUT", "/api/v1/topics/orders/limits", `topic=orders`, "the body is not JSON: "},
	} {
		o := &fakeOperator{}
		code, body := call(t, operated(t, o, false), row.method, row.path, row.body)
		require.Equal(t, http.StatusUnprocessableEntity, code, "%s: %s", row.body, body)
		require.Contains(t, body, row.want)
		require.Contains(t, body, `"code":"invalid"`)
		require.Empty(t, o.asked)
	}
}

func TestWorkerRefusesWhatTheLeaderDecides(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	code, _, _ := h.do(t, http.MethodPost, "/api/v1/topics/orders/partitions/2/retry")
	require.Equal(t, http.StatusNotFound, code)
}
