package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/api"
	"github.com/causeway-mirror/causeway/controller"
	"github.com/causeway-mirror/causeway/route"
)

// addresses are workers' APIs by id.
type addresses map[string]string

func (a addresses) Workers(context.Context) (map[string]controller.Whereabouts, error) {
	out := map[string]controller.Whereabouts{}
	for id, address := range a {
		out[id] = controller.Whereabouts{Address: address, Session: "session-" + id}
	}
	return out, nil
}

// serving answers with what handle gives for a call.
func serving(t *testing.T, handle func(r *http.Request) (int, any)) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		code, body := handle(r)
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(body)
	}))
	t.Cleanup(s.Close)
	return s
}

func TestTheWorkersMeasureThemselves(t *testing.T) {
	pages := map[string]api.List[api.Partition]{
		"":         {Items: []api.Partition{{Topic: "orders", Partition: 0, BytesPerSecond: 10, RecordsPerSecond: 1}}, Next: "orders/0"},
		"orders/0": {Items: []api.Partition{{Topic: "orders", Partition: 1, BytesPerSecond: 20, RecordsPerSecond: 2}}},
	}
	left := api.List[api.Excluded]{Items: []api.Excluded{{Topic: "circling", Reason: "a loop"}}}
	good := serving(t, func(r *http.Request) (int, any) {
		if strings.HasSuffix(r.URL.Path, "/excluded-topics") {
			return http.StatusOK, left
		}
		return http.StatusOK, pages[r.URL.Query().Get("after")]
	})
	bad := serving(t, func(*http.Request) (int, any) { return http.StatusInternalServerError, nil })
	client := &http.Client{Timeout: workerTimeout}
	t.Cleanup(client.CloseIdleConnections)
	c := newCrew(addresses{"w1": good.URL, "w2": bad.URL}, client, hclog.NewNullLogger())
	rates, err := c.Rates(t.Context())
	require.NoError(t, err, "one worker that does not answer hides no other")
	require.Equal(t, map[route.Partition]controller.Rate{
		{Topic: "orders", Partition: 0}: {Bytes: 10, Messages: 1}, {Topic: "orders", Partition: 1}: {Bytes: 20, Messages: 2},
	}, rates)
	require.Equal(t, map[string]string{"circling": "a loop"}, c.excluded())
	c.directory = addresses{"w2": bad.URL}
	again, err := c.Rates(t.Context())
	require.NoError(t, err, "what was seen a moment ago is not asked for again")
	require.Equal(t, rates, again)
	c.last.Store(nil)
	_, err = c.Rates(t.Context())
	require.ErrorContains(t, err, "worker w2")
	c.directory = addresses{}
	rates, err = c.Rates(t.Context())
	require.NoError(t, err)
	require.Empty(t, rates)
}

// A worker that had been killed was shown with what it last said until its session was over.
func TestAWorkerThatStopsAnsweringIsSilentAndNothingOfItIsKept(t *testing.T) {
	var down atomic.Bool
	w1 := serving(t, func(*http.Request) (int, any) {
		return http.StatusOK, api.List[api.Partition]{Items: []api.Partition{{Topic: "orders", Worker: "w1"}}}
	})
	w2 := serving(t, func(*http.Request) (int, any) {
		if down.Load() {
			return http.StatusInternalServerError, nil
		}
		return http.StatusOK, api.List[api.Partition]{Items: []api.Partition{{Topic: "clicks", Worker: "w2", SpilledBytes: 100}}}
	})
	never := serving(t, func(*http.Request) (int, any) { return http.StatusInternalServerError, nil })
	client := &http.Client{Timeout: workerTimeout}
	t.Cleanup(client.CloseIdleConnections)
	c := newCrew(addresses{"w1": w1.URL, "w2": w2.URL, "w3": never.URL}, client, hclog.NewNullLogger())
	require.NoError(t, c.Take(t.Context()))
	require.Len(t, c.seen(), 2)
	require.Empty(t, c.Silent(), "of one that never answered nothing is known")
	require.Equal(t, map[string][]route.Partition{"w2": {{Topic: "clicks"}}}, c.Spilled())

	down.Store(true)
	require.NoError(t, c.Take(t.Context()))
	require.Len(t, c.seen(), 1)
	require.Len(t, c.Silent(), 1)
	require.Contains(t, c.Silent(), "w2")
	require.Equal(t, map[string][]route.Partition{"w2": {{Topic: "clicks"}}}, c.Spilled(), "what it has on disk is there still")
	require.Zero(t, c.quiet("w2"), "one answer that is late is no news")
	long := time.Now().Add(-20500 * time.Millisecond)
	c.last.Load().answered["w2"] = long
	require.NoError(t, c.Take(t.Context()))
	require.Equal(t, long, c.Silent()["w2"], "it is silent since it answered last")
	require.Equal(t, 20*time.Second, c.quiet("w2"))
	require.Zero(t, c.quiet("w1"))

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, c.Take(ended))
	require.Len(t, c.Silent(), 1, "a look that was cut short tells nothing")

	c.directory = addresses{"w2": w2.URL}
	require.NoError(t, c.Take(t.Context()))
	require.Empty(t, c.seen(), "also when none answers")
	down.Store(false)
	require.NoError(t, c.Take(t.Context()))
	require.Empty(t, c.Silent())
	require.Len(t, c.seen(), 1)
}

// A worker that was killed and started again on its port answered for the one that had been killed, whose partitions were called mirroring.
func TestAWorkerDoesNotAnswerForItsFormerSelf(t *testing.T) {
	var session atomic.Value
	session.Store("session-w1")
	worker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(api.SessionHeader, session.Load().(string))
		_ = json.NewEncoder(w).Encode(api.List[api.Partition]{Items: []api.Partition{{Topic: "orders", Worker: "w1"}}})
	}))
	t.Cleanup(worker.Close)
	client := &http.Client{Timeout: workerTimeout}
	t.Cleanup(client.CloseIdleConnections)
	c := newCrew(addresses{"w1": worker.URL}, client, hclog.NewNullLogger())
	require.NoError(t, c.Take(t.Context()))
	require.Empty(t, c.Silent())
	for _, other := range []string{"none", "session-later"} {
		session.Store(other)
		require.NoError(t, c.Take(t.Context()))
		require.Contains(t, c.Silent(), "w1", other)
		require.Empty(t, c.seen(), other)
	}
	session.Store("session-w1")
	require.NoError(t, c.Take(t.Context()))
	require.Empty(t, c.Silent())
}

// Partitions of a worker that had been killed were mirroring, and not behind, until its session was over.
func TestWhatASilentWorkerHasIsDegraded(t *testing.T) {
	c := newCrew(addresses{}, http.DefaultClient, hclog.NewNullLogger())
	v := &view{crew: c, mapped: unnamed}
	online := controller.Assignment{0: {"w1": controller.Online}}
	topic := controller.Topic{Name: "orders", Partitions: 1, Assigned: online}
	s := &controller.State{
		Topics: map[string]controller.Topic{"orders": topic}, Views: map[string]controller.Assignment{"orders": online},
		Workers: map[string]controller.Worker{"w1": {ID: "w1", Live: true}},
	}
	p := route.Partition{Topic: "orders"}
	one, told := v.shown(s, topic, p, api.Partition{})
	require.False(t, told)
	require.Equal(t, api.StateMirroring, one.State)
	require.EqualValues(t, -1, one.LagRecords, "nobody has measured it yet, and it was told to be 0")
	require.EqualValues(t, -1, one.LagBytes)
	c.last.Store(&sight{silent: map[string]time.Time{"w1": time.Now().Add(-20500 * time.Millisecond)}})
	one, _ = v.shown(s, topic, p, api.Partition{})
	require.Equal(t, api.StateDegraded, one.State)
	require.Equal(t, "its worker w1 has not answered for 20s", one.Reason)
	s.Workers["w1"] = controller.Worker{ID: "w1"}
	one, _ = v.shown(s, topic, p, api.Partition{})
	require.Equal(t, api.StateUnassigned, one.State, "now it is gone")
}

// Which of the two was shown, the order of a map decided.
func TestAPartitionThatMovesIsShownAsItsOwnerSeesIt(t *testing.T) {
	list := func(p api.Partition) string {
		return serving(t, func(r *http.Request) (int, any) {
			if strings.HasSuffix(r.URL.Path, "/excluded-topics") {
				return http.StatusOK, api.List[api.Excluded]{}
			}
			return http.StatusOK, api.List[api.Partition]{Items: []api.Partition{p}}
		}).URL
	}
	client := &http.Client{Timeout: workerTimeout}
	t.Cleanup(client.CloseIdleConnections)
	p := route.Partition{Topic: "orders"}
	said := func(worker, state string, bytes float64) api.Partition {
		return api.Partition{Topic: p.Topic, Worker: worker, State: state, BytesPerSecond: bytes}
	}
	c := newCrew(addresses{
		"w1": list(said("w1", api.StateDraining, 3)), "w2": list(said("w2", api.StateStarting, 1)), "w3": list(said("w3", api.StateDraining, 0)),
	}, client, hclog.NewNullLogger())
	for range 20 {
		c.last.Store(nil)
		rates, err := c.Rates(t.Context())
		require.NoError(t, err)
		require.Equal(t, map[route.Partition]controller.Rate{p: {Bytes: 3}}, rates)
		require.Equal(t, said("w2", api.StateStarting, 1), c.seen()[p].of("w2"))
		require.Equal(t, "w1", c.seen()[p].of("w4").Worker)
	}
}

func TestTheMeasuringServiceIsAskedAsEver(t *testing.T) {
	var asked []string
	service := serving(t, func(r *http.Request) (int, any) {
		asked = append(asked, r.URL.Path+" "+r.URL.Query().Get("tier"))
		return http.StatusOK, map[string]any{
			"orders": []map[string]any{{"startTimeSec": 0, "endTimeSec": 600, "totalBytes": 1200, "totalCount": 600}},
			"other":  []map[string]any{{"startTimeSec": 600, "endTimeSec": 600, "totalBytes": 1200, "totalCount": 600}},
		}
	})
	client := &http.Client{Timeout: workerTimeout}
	t.Cleanup(client.CloseIdleConnections)
	c := &chaperone{
		address: strings.TrimPrefix(service.URL, "http://"), tier: "sjc", client: client,
		topics: func() map[string]int32 { return map[string]int32{"orders": 2, "other": 1} },
	}
	rates, err := c.Rates(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"/chaperone3/rawmetrics sjc"}, asked)
	require.Equal(t, map[route.Partition]controller.Rate{
		{Topic: "orders", Partition: 0}: {Bytes: 1, Messages: 0.5}, {Topic: "orders", Partition: 1}: {Bytes: 1, Messages: 0.5},
	}, rates)
	require.Len(t, chunks(map[string]int32{"a": 1, "b": 1, "c": 1}, 2), 2)
	require.Empty(t, chunks(nil, 2))
}
