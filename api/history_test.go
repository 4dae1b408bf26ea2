package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

// changing is a mirror whose partitions a test replaces.
type changing struct {
	fakeMirror

	now atomic.Pointer[[]Partition]
}

func (c *changing) Snapshot() Snapshot {
	return Snapshot{State: StateMirroring, Partitions: *c.now.Load()}
}

func (c *changing) set(parts ...Partition) { c.now.Store(&parts) }

// past asks for a history.
func past(t *testing.T, s *Server, query string) (int, History) {
	t.Helper()
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/history?"+query, http.NoBody))
	var h History
	if w.Code == http.StatusOK {
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &h))
	}
	return w.Code, h
}

func values(h History) (out []float64) {
	for _, s := range h.Items {
		out = append(out, s.Value)
	}
	return out
}

func TestTheLastHourIsSampledEveryTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &changing{}
		s, err := New(DefaultConfig(), Deps{Log: hclog.NewNullLogger(), Mirror: m, Registry: prometheus.NewRegistry()})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		m.set(Partition{Topic: "a", LagRecords: 4, LagSeconds: 9, RecordsPerSecond: 1}, Partition{Topic: "a", Partition: 1, LagRecords: -1, RecordsPerSecond: 2},
			Partition{Topic: "b", LagRecords: 5, LagSeconds: 3, BytesPerSecond: 7})
		go s.sample(ctx)
		began := time.Now()
		time.Sleep(historyInterval) // of the bubble
		synctest.Wait()
		for query, want := range map[string]float64{
			"metric=records_per_second": 3, "metric=bytes_per_second": 7, "metric=lag_records": 9, "metric=lag_seconds": 9,
			"metric=records_per_second&topic=a": 3, "metric=lag_records&topic=a": 4, "metric=lag_seconds&topic=b": 3, "metric=bytes_per_second&topic=b": 7,
		} {
			code, h := past(t, s, query)
			require.Equal(t, http.StatusOK, code, query)
			require.Equal(t, []float64{want}, values(h), query)
			require.InDelta(t, 10, h.IntervalSeconds, 0)
			require.True(t, h.Items[0].Time.Equal(began.Add(historyInterval)))
		}

		m.set(Partition{Topic: "b", LagRecords: 6}) // a has left
		time.Sleep(2 * historyInterval)
		synctest.Wait()
		_, h := past(t, s, "metric=lag_records&topic=b")
		require.Equal(t, []float64{5, 6, 6}, values(h))
		_, h = past(t, s, "metric=lag_records&since=15s")
		require.Equal(t, []float64{6, 6}, values(h))
		_, h = past(t, s, "metric=lag_records&since="+url.QueryEscape(began.Add(20*time.Second).Format(time.RFC3339)))
		require.Equal(t, []float64{6, 6}, values(h))
		_, h = past(t, s, "metric=lag_records&topic=a")
		require.Equal(t, []float64{4}, values(h), "what a topic was stays")

		m.set(Partition{Topic: "a", LagRecords: 1}, Partition{Topic: "b", LagRecords: 7}) // and comes back
		time.Sleep(historyInterval)
		synctest.Wait()
		_, h = past(t, s, "metric=lag_records&topic=a")
		require.Equal(t, []float64{4, 1}, values(h))
		require.Equal(t, 3*historyInterval, h.Items[1].Time.Sub(h.Items[0].Time))

		m.set(Partition{Topic: "b", LagRecords: 8})
		time.Sleep(historySpan)
		synctest.Wait()
		_, h = past(t, s, "metric=lag_records")
		require.Len(t, h.Items, historySamples)
		require.InDelta(t, 8, h.Items[0].Value, 0)
		code, _ := past(t, s, "metric=lag_records&topic=a")
		require.Equal(t, http.StatusNotFound, code)
	})
}

// A lag that nobody knew was drawn as none.
func TestALagThatIsNotKnownIsAGapInItsHistory(t *testing.T) {
	t.Parallel()
	m := &changing{}
	s, err := New(DefaultConfig(), Deps{Log: hclog.NewNullLogger(), Mirror: m, Registry: prometheus.NewRegistry()})
	require.NoError(t, err)
	m.set()
	for _, lags := range [][2]int64{{3, 4}, {-1, 4}, {-1, -1}} {
		s.history.add(time.Now(), []Topic{{Topic: "a", LagRecords: lags[0], RecordsPerSecond: 1}, {Topic: "b", LagRecords: lags[1], LagSeconds: 2}})
	}
	s.history.add(time.Now(), nil)
	for query, want := range map[string][]float64{
		"metric=lag_records": {7, 4, 0}, "metric=lag_records&topic=a": {3}, "metric=lag_seconds&topic=a": {0}, "metric=lag_seconds&topic=b": {2, 2, 2},
		"metric=records_per_second&topic=a": {1, 1, 1}, "metric=lag_seconds": {2, 2, 2, 0},
	} {
		_, h := past(t, s, query)
		require.Equal(t, want, values(h), query)
	}
	trend := s.history.trend("a", lagRecords)
	require.NotNil(t, trend[0])
	require.Equal(t, []*float64{nil, nil, nil}, trend[1:])
}

func TestWhoDoesNotLeadTakesNoSamples(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &changing{}
		m.set(Partition{Topic: "a"})
		s, err := New(DefaultConfig(), Deps{Log: hclog.NewNullLogger(), Mirror: m, Registry: prometheus.NewRegistry(), Leadership: standby{""}})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		go s.sample(ctx)
		time.Sleep(time.Minute)
		synctest.Wait()
		items, kept := s.history.read("", 0, time.Time{})
		require.True(t, kept)
		require.Empty(t, items)
		cancel()
		synctest.Wait()
	})
}

func TestHistoryRefusesWhatItCannotTell(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for _, row := range []struct {
		query string
		code  int
		has   []string
	}{
		{"", 422, []string{`metric \"\": must be one of records_per_second, bytes_per_second, lag_records, lag_seconds`}},
		{"metric=lag", 422, []string{`metric \"lag\"`}},
		{"metric=lag&since=soon", 422, []string{`metric \"lag\"`, `since \"soon\": must be a time (RFC 3339) or a duration back such as 15m`}},
		{"metric=lag_records&since=-5m", 422, []string{`since \"-5m\"`}},
		{"metric=lag_records&topic=nosuch", 404, []string{`topic \"nosuch\" is not mirrored`, `"code":"not_found"`}},
		{"metric=lag_records&topic=orders", 404, []string{`has no samples yet`, `"code":"not_kept"`}},
		{"metric=lag_records", 200, []string{`{"metric":"lag_records","topic":"","interval_seconds":10,"items":[]}`}},
	} {
		code, _, body := h.do(t, http.MethodGet, "/api/v1/history?"+row.query)
		require.Equal(t, row.code, code, row.query)
		for _, text := range row.has {
			require.Contains(t, body, text)
		}
	}
}

// namedTopics are so many topics, from a number on.
func namedTopics(from, n int) []Topic {
	out := make([]Topic, n)
	for i := range out {
		out[i] = Topic{Topic: fmt.Sprintf("topic-%06d", from+i), LagRecords: int64(from + i)}
	}
	return out
}

func TestHistoryTakesNoMoreThanItsShareOfMemory(t *testing.T) { // not parallel: it measures the heap
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	h := newHistory()
	for i := range historySamples {
		h.add(time.Unix(int64(i), 0), namedTopics(0, 3*historyTopics))
	}
	used := heap() - before
	runtime.KeepAlive(h)
	require.Less(t, used, uint64(15<<20))
	require.Len(t, h.topics, historyTopics)
}

func TestAPlaceOfATopicThatLeftIsTaken(t *testing.T) {
	t.Parallel()
	h := newHistory()
	at := time.Unix(0, 0)
	h.add(at, namedTopics(0, historyTopics))
	h.add(at, namedTopics(5, historyTopics)) // five have left, five are new
	_, kept := h.read(fmt.Sprintf("topic-%06d", historyTopics), 0, time.Time{})
	require.False(t, kept, "full, and nobody knows yet who has left")
	h.add(at, namedTopics(5, historyTopics))
	items, kept := h.read(fmt.Sprintf("topic-%06d", historyTopics+4), 2, time.Time{})
	require.True(t, kept)
	require.Len(t, items, 1)
	require.InDelta(t, historyTopics+4, items[0].Value, 0)
	_, kept = h.read("topic-000000", 0, time.Time{})
	require.False(t, kept)
}

// A list of topics may bring the newest samples of each along, so that a page with a line for each topic asks once.
func TestTopicsComeWithTheirTrend(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	all := totalsOfTopics(h.mirror.snapshot.Partitions) // bills, orders, zebra
	for range trendSamples {
		h.server.history.add(time.Now(), all)
	}
	h.server.history.add(time.Now(), all[:1])
	h.server.history.add(time.Now(), all[:2])
	code, _, body := h.do(t, http.MethodGet, "/api/v1/topics?trend=lag_records&limit=2")
	require.Equal(t, http.StatusOK, code)
	var got List[Topic]
	require.NoError(t, json.Unmarshal([]byte(body), &got))
	require.Len(t, got.Items, 2)
	require.Equal(t, "orders", got.Next)
	orders := got.Items[1].Trend
	require.Len(t, orders, trendSamples)
	require.InDelta(t, 12, *orders[0], 0)
	require.Nil(t, orders[trendSamples-2])
	require.InDelta(t, 12, *orders[trendSamples-1], 0)

	_, _, body = h.do(t, http.MethodGet, "/api/v1/topics?trend=lag_records&topic=zebra")
	require.Contains(t, body, `"topic":"zebra"`)
	require.Contains(t, body, `null,null]`)
	require.NotContains(t, body, `"orders"`)
	_, _, body = h.do(t, http.MethodGet, "/api/v1/topics")
	require.NotContains(t, body, `"trend"`)
	code, _, body = h.do(t, http.MethodGet, "/api/v1/topics?trend=colour")
	require.Equal(t, http.StatusUnprocessableEntity, code)
	require.Contains(t, body, "colour")
}
