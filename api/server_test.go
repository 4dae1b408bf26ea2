package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/internal/testkit"
	"github.com/causeway-mirror/causeway/route"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// fakeMirror answers from its fields. lag falls by one at each look, so that waits end or time out by what the test sets.
type fakeMirror struct {
	snapshot Snapshot
	excluded []Excluded
	lag      atomic.Int64
	err      error
}

func (f *fakeMirror) Snapshot() Snapshot   { return f.snapshot }
func (f *fakeMirror) Excluded() []Excluded { return f.excluded }

func (f *fakeMirror) WaitCaughtUp(ctx context.Context, _ string, lag int64) (int64, bool, error) {
	if f.err != nil {
		return 0, false, f.err
	}
	if n := f.lag.Load(); n <= lag {
		return n, true, nil
	}
	<-ctx.Done()
	return f.lag.Load(), false, nil
}

type harness struct {
	mirror *fakeMirror
	log    *events.Log
	reg    *prometheus.Registry
	server *Server
}

func newHarness(t *testing.T) harness {
	t.Helper()
	r := route.Route{Source: "a", Target: "b", ID: "1"}
	reg := prometheus.NewRegistry()
	h := harness{
		reg: reg,
		log: events.NewLog(r, "w1", 100, hclog.NewNullLogger(), reg),
		mirror: &fakeMirror{
			snapshot: Snapshot{State: StateMirroring, Partitions: []Partition{
				{Topic: "orders", Partition: 10, TargetTopic: "a.orders", State: StateMirroring, LagRecords: 5, LagSeconds: 1, RecordsPerSecond: 2, BytesPerSecond: 3, Path: "raw"},
				{Topic: "orders", Partition: 2, TargetTopic: "a.orders", State: StateHalted, Reason: "record too large", LagRecords: 7, LagSeconds: 4, RecordsPerSecond: 1},
				{Topic: "bills", Partition: 0, TargetTopic: "a.bills", State: StateMirroring, LagRecords: -1, BytesPerSecond: 9},
				{Topic: "zebra", Partition: 0, TargetTopic: "a.zebra", State: StateStarting},
			}},
			excluded: []Excluded{{"__consumer_offsets", "internal topic"}, {"gone", "does not exist"}},
		},
	}
	server, err := New(DefaultConfig(), Deps{
		Log: hclog.NewNullLogger(), Mirror: h.mirror, Events: h.log, Registry: reg,
		Identity: Identity{Role: "standalone", Version: "v1", Worker: "w1", Route: r, Started: time.Now()},
	})
	require.NoError(t, err)
	h.server = server
	return h
}

func (h harness) do(t *testing.T, method, path string, header ...string) (int, http.Header, string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.server.ServeHTTP(w, r)
	return w.Code, w.Header(), w.Body.String()
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for _, row := range []struct {
		name, method, path string
		code               int
		has, lacks         []string
	}{
		{"status", "GET", "/api/v1/status", 200, []string{`"role":"standalone"`, `"leader":"w1","leader_address":""`, `"name":"@a@b@1"`, `"state":"mirroring"`, `"partitions":{"halted":1,"mirroring":2,"starting":1}`, `"lag_records":12`, `"records_per_second":3`, `"bytes_per_second":12`, `"workers":1`, `"uptime_seconds":`}, nil},
		{"topics in order of names", "GET", "/api/v1/topics?limit=2", 200, []string{`{"items":[{"topic":"bills","target_topic":"a.bills","partition_count":1,`, `{"topic":"orders"`, `"next":"orders"`}, []string{`zebra`, `"partitions":`}},
		{"next page", "GET", "/api/v1/topics?limit=2&after=orders", 200, []string{`"topic":"zebra"`, `"next":""`}, []string{`"orders"`}},
		{"page after a topic that left", "GET", "/api/v1/topics?after=c", 200, []string{`{"items":[{"topic":"orders"`}, []string{"bills"}},
		{"page after the end", "GET", "/api/v1/topics?after=zzz", 200, []string{`{"items":[],"next":""}`}, nil},
		{"sorted down", "GET", "/api/v1/topics?sort=-lag_records", 200, []string{`{"items":[{"topic":"orders"`}, nil},
		{"sorted, second page", "GET", "/api/v1/topics?sort=-lag_records&after=orders", 200, []string{`{"items":[{"topic":"zebra"`}, []string{`"orders"`}},
		{"filter by name", "GET", "/api/v1/topics?filter=ORD", 200, []string{`"orders"`}, []string{"bills"}},
		{"filter by state", "GET", "/api/v1/partitions?filter=halted", 200, []string{`"record too large"`}, []string{"bills"}},
		{"partitions by number", "GET", "/api/v1/partitions?topic=orders&limit=1", 200, []string{`"partition":2`, `"next":"orders/0000000002"`}, []string{`"partition":10`}},
		{"one topic", "GET", "/api/v1/topics/orders", 200, []string{`"partition_count":2`, `"partitions":[{"topic":"orders","partition":2,`, `"lag_seconds":4`, `"path":"raw"`, `"source_last_stable":0`, `"last_error":""`}, nil},
		{"unknown topic", "GET", "/api/v1/topics/nope", 404, []string{`"code":"not_found"`, `nope`}, nil},
		{"excluded", "GET", "/api/v1/excluded-topics", 200, []string{`{"topic":"gone","reason":"does not exist"}`}, nil},
		{"a name twice", "GET", "/api/v1/topics?limit=1&limit=2", 422, []string{`"code":"invalid"`, `limit stands 2 times`}, nil},
		{"a name twice, to wait for", "GET", "/api/v1/wait?lag=1&lag=2", 422, []string{`lag stands 2 times`}, nil},
		{"bad limit", "GET", "/api/v1/topics?limit=x", 422, []string{`"code":"invalid"`, `limit`}, nil},
		{"bad sort", "GET", "/api/v1/topics?sort=colour", 422, []string{`colour`, `lag_records`}, nil},
		{"sorted page after nothing", "GET", "/api/v1/topics?sort=lag_records&after=nope", 422, []string{`nope`}, nil},
		{"wait", "GET", "/api/v1/wait?topic=orders", 200, []string{`{"topic":"orders","lag_records":0}`}, nil},
		{"wait for an unknown topic", "GET", "/api/v1/wait?topic=nope", 404, []string{`not_found`}, nil},
		{"wait with bad numbers", "GET", "/api/v1/wait?topic=orders&lag=-1&timeout=soon", 422, []string{`lag`, `timeout`}, nil},
		{"wait too long", "GET", "/api/v1/wait?topic=orders&timeout=24h", 422, []string{`10m0s`}, nil},
		{"bad since", "GET", "/api/v1/events?since=x&wait=y&sort=type", 422, []string{`since`, `wait`, `sort`}, nil},
		{"bad after", "GET", "/api/v1/events?after=x", 422, []string{`after`}, nil},
		{"unknown type", "GET", "/api/v1/events?type=partition_haltd&limit=x", 422, []string{`"code":"invalid"`, `type \"partition_haltd\": must be one of acl_synced, `, `partition_halted`, `limit \"x\"`}, nil},
		{"known type of which there is none", "GET", "/api/v1/events?type=lease_lost", 200, []string{`"items":[]`}, nil},
		{"two faults", "GET", "/api/v1/topics?limit=x&sort=colour", 422, []string{`limit`, `colour`}, nil},
		{"no such path", "GET", "/api/v1/nothing", 404, []string{`"code":"not_found"`}, nil},
		{"no such method", "POST", "/api/v1/status", 405, []string{`"code":"method_not_allowed"`, `GET`}, nil},
		{"healthz", "GET", "/healthz", 200, []string{`alive`}, nil},
		{"readyz lists halted partitions", "GET", "/readyz", 200, []string{`{"ready":true,"reason":"","halted":["orders-2"]}`}, nil},
		{"page", "GET", "/ui/", 200, []string{`<title>Causeway</title>`}, nil},
		{"script", "GET", "/ui/app.js", 200, []string{`../api/v1/`}, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			code, header, body := h.do(t, row.method, row.path)
			require.Equal(t, row.code, code, body)
			if strings.HasPrefix(row.path, "/api/") {
				require.Equal(t, "application/json", header.Get("Content-Type"))
				require.True(t, json.Valid([]byte(body)), body)
			}
			for _, text := range row.has {
				require.Contains(t, body, text)
			}
			for _, text := range row.lacks {
				require.NotContains(t, body, text)
			}
		})
	}
}

func TestRootRedirectsToUI(t *testing.T) {
	t.Parallel()
	code, header, _ := newHarness(t).do(t, "GET", "/")
	require.Equal(t, http.StatusFound, code)
	require.Equal(t, "/ui/", header.Get("Location"))
}

func TestMethodNotAllowedNamesWhatIs(t *testing.T) {
	t.Parallel()
	_, header, _ := newHarness(t).do(t, "DELETE", "/api/v1/topics")
	require.Contains(t, header.Get("Allow"), "GET")
}

func TestWaitTimesOutWithPresentLag(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.mirror.lag.Store(42)
	code, _, body := h.do(t, "GET", "/api/v1/wait?topic=orders&lag=41&timeout=10ms")
	require.Equal(t, http.StatusRequestTimeout, code)
	require.Contains(t, body, `"lag_records":42`)
	require.Contains(t, body, `"code":"timeout"`)
	code, _, _ = h.do(t, "GET", "/api/v1/wait?topic=orders&lag=42&timeout=10ms")
	require.Equal(t, http.StatusOK, code)
	h.mirror.err = errors.New("source unreachable")
	code, _, body = h.do(t, "GET", "/api/v1/wait?topic=orders")
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Contains(t, body, "source unreachable")
}

// TestWaitClaimsNoLagThatItDoesNotKnow: time may run out while the source is still asked for its ends.
func TestWaitClaimsNoLagThatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.mirror.lag.Store(42)
	_, _, body := h.do(t, "GET", "/api/v1/wait?topic=orders&timeout=10ms")
	require.Contains(t, body, `"message":"still 42 records behind; 1 of 2 partitions is halted, orders-2: record too large"`, "for how long was waited, the caller knows")
	h.mirror.err = fmt.Errorf("read the source's ends: dial a:9092: %w", context.DeadlineExceeded)
	code, _, body := h.do(t, "GET", "/api/v1/wait?topic=orders&timeout=0s")
	require.Equal(t, http.StatusRequestTimeout, code)
	require.Contains(t, body, `"message":"read the source's ends: dial a:9092: context deadline exceeded"`)
	require.Contains(t, body, `"lag_records":-1`)
}

// TestATopicMayNotBeMirroredYet: nobody knows while the mirror is starting.
func TestTopicOfUnknownLagIsNotSaidToHaveNone(t *testing.T) {
	t.Parallel()
	topics := totalsOfTopics([]Partition{
		{Topic: "bills", Partition: 0, State: StateStarting, LagRecords: -1},
		{Topic: "bills", Partition: 1, State: StateHalted, LagRecords: -1},
		{Topic: "orders", Partition: 0, LagRecords: -1},
		{Topic: "orders", Partition: 1, LagRecords: 0},
		{Topic: "orders", Partition: 2, LagRecords: 3},
	})
	require.Len(t, topics, 2)
	require.Equal(t, int64(-1), topics[0].LagRecords)
	require.Equal(t, int64(3), topics[1].LagRecords)
}

// TestRouteOfUnknownLagIsNotSaidToHaveNone: `lag 0` stood beside clusters that could not be reached, and beside partitions that were all halted.
func TestRouteOfUnknownLagIsNotSaidToHaveNone(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		in   Snapshot
		want int64
	}{
		{"not begun", Snapshot{State: StateStarting}, -1},
		{"nothing to mirror", Snapshot{State: StateMirroring}, 0},
		{"none is known", Snapshot{State: StateMirroring, Partitions: []Partition{{LagRecords: -1}, {LagRecords: -1}}}, -1},
		{"one is known", Snapshot{State: StateDegraded, Partitions: []Partition{{LagRecords: -1}, {LagRecords: 3}}}, 3},
		{"none", Snapshot{State: StateMirroring, Partitions: []Partition{{LagRecords: 0}}}, 0},
	} {
		require.Equal(t, row.want, totalsOfRoute("r", row.in).LagRecords, row.name)
	}
}

// TestRouteOfWhichNothingMovesIsNotMirroring: all ten partitions were halted, or had no worker, and the route was `mirroring`.
func TestRouteOfWhichNothingMovesIsNotMirroring(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name          string
		in            Snapshot
		state, reason string
	}{
		{"all halted", Snapshot{State: StateMirroring, Partitions: []Partition{{State: StateHalted}, {State: StateHalted}}}, "halted", "all 2 partitions"},
		{"the only one halted", Snapshot{State: StateMirroring, Partitions: []Partition{{State: StateHalted}}}, "halted", "its only partition"},
		{"no worker", Snapshot{State: StateMirroring, Partitions: []Partition{{State: StateUnassigned}, {State: StateUnassigned}}}, "unassigned", "all 2 partitions"},
		{"one moves", Snapshot{State: StateMirroring, Partitions: []Partition{{State: StateHalted}, {State: StateMirroring}}}, "mirroring", ""},
		{"each has something else", Snapshot{State: StateMirroring, Partitions: []Partition{{State: StateHalted}, {State: StateUnassigned}}}, "mirroring", ""},
		{"paused", Snapshot{State: StateMirroring, Partitions: []Partition{{State: StatePaused}}}, "mirroring", ""},
		{"it has a reason of its own", Snapshot{State: StateDegraded, Reason: "target b", Partitions: []Partition{{State: StateHalted}}}, "degraded", "target b"},
		{"stands by", Snapshot{State: StateStandby, Reason: "c1 leads"}, "standby", "c1 leads"},
	} {
		got := totalsOfRoute("r", row.in)
		require.Equal(t, row.state, got.State, row.name)
		require.Equal(t, row.reason, got.Reason, row.name)
	}
}

// TestWaitThatRunsOutSaysWhatIsHalted: "still 79051 records behind" did not tell that nothing moved any more.
func TestWaitThatRunsOutSaysWhatIsHalted(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.mirror.lag.Store(42)
	for _, row := range []struct {
		states  []string
		message string
	}{
		{[]string{StateMirroring, StateMirroring}, "still 42 records behind"},
		{[]string{StateMirroring, StateHalted}, "still 42 records behind; 1 of 2 partitions is halted, orders-1: too large"},
		{[]string{StateHalted, StateHalted}, "still 42 records behind; all 2 partitions are halted, orders-0: too large"},
	} {
		h.mirror.snapshot.Partitions = []Partition{{Topic: "bills", State: StateHalted}}
		for p, state := range row.states {
			h.mirror.snapshot.Partitions = append(h.mirror.snapshot.Partitions, Partition{Topic: "orders", Partition: int32(p), State: state, Reason: "too large"})
		}
		_, _, body := h.do(t, "GET", "/api/v1/wait?topic=orders&timeout=1ms")
		require.Contains(t, body, `"message":"`+row.message+`"`)
	}
}

// TestATopicThatIsNotMirroredHasItsReason: it is known to who asks for the topics that are left out, and was kept from who waits for one.
func TestATopicThatIsNotMirroredHasItsReason(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for _, path := range []string{"/api/v1/topics/gone", "/api/v1/wait?topic=gone"} {
		_, _, body := h.do(t, "GET", path)
		require.Contains(t, body, `"message":"topic \"gone\" is not mirrored: does not exist"`)
	}
}

func TestATopicMayNotBeMirroredYet(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for _, path := range []string{"/api/v1/topics/nope", "/api/v1/wait?topic=nope"} {
		h.mirror.snapshot.State = StateMirroring
		_, _, body := h.do(t, "GET", path)
		require.Contains(t, body, `"message":"topic \"nope\" is not mirrored"`)
		h.mirror.snapshot.State, h.mirror.snapshot.Reason = StateStarting, "asking both clusters for their topics"
		code, _, body := h.do(t, "GET", path)
		require.Equal(t, http.StatusNotFound, code)
		require.Contains(t, body, `is not mirrored; the mirror is still starting: asking both clusters for their topics"`)
	}
}

func TestReadiness(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		in     Snapshot
		ready  bool
		reason string
	}{
		{"mirroring", Snapshot{State: StateMirroring}, true, ""},
		{"starting", Snapshot{State: StateStarting, Reason: "source a unreachable: refused"}, false, "route is starting: source a unreachable: refused"},
		{"degraded", Snapshot{State: StateDegraded, Reason: "target b"}, false, "route is degraded: target b"},
		{"suspended", Snapshot{State: StateSuspended}, false, "route is suspended"},
		{"all halted", Snapshot{State: StateMirroring, Partitions: []Partition{{State: StateHalted}, {State: StateHalted}}}, false, "all 2 partitions are halted"},
		{"one halted", Snapshot{State: StateMirroring, Partitions: []Partition{{State: StateHalted}, {State: StateMirroring}}}, true, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			h.mirror.snapshot = row.in
			code, _, body := h.do(t, "GET", "/readyz")
			require.Equal(t, row.ready, code == http.StatusOK)
			var got Readiness
			require.NoError(t, json.Unmarshal([]byte(body), &got))
			require.Equal(t, row.ready, got.Ready)
			require.Equal(t, row.reason, got.Reason)
		})
	}
}

func TestEventList(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	p := route.Partition{Topic: "orders", Partition: 3}
	first := h.log.Emit(events.Of(p, events.PartitionHalted, events.Error, "halted").Because("too large"))
	second := h.log.Emit(events.Of(p, events.PartitionRecovered, events.Info, "recovered"))
	third := h.log.Emit(events.Of(p, events.RangeSkipped, events.Error, "skipped").Range(5, 9))
	ids := func(query string) []int64 {
		code, _, body := h.do(t, "GET", "/api/v1/events"+query)
		require.Equal(t, http.StatusOK, code, body)
		var got List[events.Event]
		require.NoError(t, json.Unmarshal([]byte(body), &got))
		var out []int64
		for _, e := range got.Items {
			out = append(out, e.ID)
		}
		return out
	}
	require.Equal(t, []int64{first.ID, second.ID, third.ID}, ids(""))
	require.Equal(t, []int64{third.ID, second.ID}, ids("?sort=-id&limit=2"))
	require.Equal(t, []int64{second.ID}, ids("?type=partition_recovered"))
	require.Equal(t, []int64{first.ID}, ids("?filter=TOO+LARGE"))
	require.Equal(t, []int64{third.ID}, ids("?since="+id10(second.ID)))
	require.Empty(t, ids("?since="+id10(third.ID)+"&wait=5ms"))
	_, _, body := h.do(t, "GET", "/api/v1/events?limit=1")
	require.Contains(t, body, `"next":"`+id10(first.ID)+`"`)
	require.Equal(t, []int64{second.ID}, ids("?limit=1&after="+id10(first.ID)))
}

func TestEventLongPollWakes(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	answered := make(chan string, 1)
	go func() {
		_, _, body := h.do(t, "GET", "/api/v1/events?type=disk_full&wait=1m")
		answered <- body
	}()
	h.log.Emit(events.Event{Type: events.TopicDiscovered, Severity: events.Info, Message: "not this"})
	h.log.Emit(events.Event{Type: events.DiskFull, Severity: events.Error, Message: "this"})
	select {
	case body := <-answered:
		require.Contains(t, body, `"message":"this"`)
		require.NotContains(t, body, "not this")
	case <-time.After(10 * time.Second):
		t.Fatal("the long poll did not wake")
	}
}

// startServer runs the server on a free port and returns its address and a stop function that waits for Run.
func startServer(t *testing.T, h harness) (base string, stop func() error) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- h.server.Run(ctx, l) }()
	return "http://" + l.Addr().String(), func() error { cancel(); return <-done }
}

func TestEventStreamAndShutdown(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	old := h.log.Emit(events.Event{Type: events.RouteDegraded, Severity: events.Error, Message: "old"})
	base, stop := startServer(t, h)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/api/v1/events", http.NoBody)
	require.NoError(t, err)
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Last-Event-ID", id10(old.ID))
	resp, err := client.Do(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, "text/event-stream", resp.Header.Get("Content-Type"))
	lines := bufio.NewReader(resp.Body)
	h.log.Emit(events.Event{Type: events.RouteRecovered, Severity: events.Info, Message: "new"})
	var text strings.Builder
	for !strings.Contains(text.String(), "\n\n") {
		line, readErr := lines.ReadString('\n')
		require.NoError(t, readErr)
		text.WriteString(line)
	}
	require.Contains(t, text.String(), "event: route_recovered\n")
	require.NotContains(t, text.String(), "old")
	began := time.Now()
	require.NoError(t, stop())
	require.Less(t, time.Since(began), 2*time.Second, "an open stream must not hold the shutdown")
	_, err = io.ReadAll(lines)
	require.NoError(t, err, "the stream ends cleanly")
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.do(t, "GET", "/api/v1/status")
	h.do(t, "GET", "/some/very/long/path")
	problems, err := testutil.GatherAndLint(h.reg)
	require.NoError(t, err)
	require.Empty(t, problems)
	code, _, body := h.do(t, "GET", "/metrics")
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, body, `causeway_http_requests_total{code="200",pattern="GET /api/v1/status",route="@a@b@1"} 1`)
	require.Contains(t, body, `causeway_http_requests_total{code="404",pattern="none",route="@a@b@1"} 1`)
	require.Contains(t, body, `causeway_build_info{`)
}

func TestConfigNamesEveryFault(t *testing.T) {
	t.Parallel()
	err := Config{}.Validate()
	for _, key := range []string{"header_timeout", "write_timeout", "idle_timeout", "max_wait", "drain_timeout"} {
		require.ErrorContains(t, err, "server."+key)
	}
	_, err = New(Config{}, Deps{})
	require.Error(t, err)
}

func id10(n int64) string { return strconv.FormatInt(n, 10) }
