package main

import (
	"bytes"
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/api"
	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/route"
)

// shownMirror is a fake mirror that also has excluded topics, as the API wants it.
type shownMirror struct {
	fakeMirror

	lag      int64
	excluded []api.Excluded
}

func (s *shownMirror) Excluded() []api.Excluded {
	return append([]api.Excluded{{Topic: "__internal", Reason: "internal topic"}}, s.excluded...)
}

func (s *shownMirror) WaitCaughtUp(ctx context.Context, _ string, lag int64) (int64, bool, error) {
	if s.lag <= lag {
		return s.lag, true, nil
	}
	<-ctx.Done()
	return s.lag, false, nil
}

// serveAPI runs a real API over a fake mirror.
func serveAPI(t *testing.T, partitions int) (base string, log *events.Log, mirror *shownMirror) {
	t.Helper()
	r := route.Route{Source: "a", Target: "b", ID: "1"}
	reg := prometheus.NewRegistry()
	log = events.NewLog(r, "w1", 100, hclog.NewNullLogger(), reg)
	mirror = &shownMirror{}
	mirror.state.State = api.StateMirroring
	for p := range partitions {
		mirror.state.Partitions = append(mirror.state.Partitions, api.Partition{
			Topic: "orders", Partition: int32(p), TargetTopic: "a.orders", TargetPartition: int32(p), State: api.StateMirroring,
			Extent: api.Extent{SourceEnd: 1234}, Acked: 1230, Committed: -1, LagRecords: 4, Path: "raw", RecordsPerSecond: 10,
		})
	}
	server, err := api.New(api.DefaultConfig(), api.Deps{
		Log: hclog.NewNullLogger(), Mirror: mirror, Events: log, Registry: reg,
		Identity: api.Identity{Role: "standalone", Version: "v1", Worker: "w1", Route: r, Started: time.Now()},
	})
	require.NoError(t, err)
	web := httptest.NewServer(server)
	t.Cleanup(web.Close)
	return web.URL, log, mirror
}

func TestReads(t *testing.T) {
	t.Parallel()
	base, log, _ := serveAPI(t, 3)
	p := route.Partition{Topic: "orders", Partition: 1}
	old := log.Emit(events.Of(p, events.RangeSkipped, events.Error, "range skipped").Range(5, 9).Because("retention"))
	log.Emit(events.Event{Type: events.TopicDiscovered, Severity: events.Info, Topic: "orders", Message: "topic found"})
	for _, row := range []struct {
		name       string
		args       []string
		has, lacks []string
	}{
		{"status", []string{"status"}, []string{"a -> b (@a@b@1)", "3 mirroring", "12 records", "topic_discovered orders topic found", "range_skipped orders-1 range skipped (offsets 5 to 9): retention"}, nil},
		{"status json", []string{"status", "-o", "json"}, []string{`"role": "standalone"`, `"recent_events": [`, `"mirroring": 3`}, nil},
		{"status yaml", []string{"status", "-o", "yaml"}, []string{"role: standalone\n", "lag_records: 12\n"}, []string{"{"}},
		{"topics", []string{"topics", "list"}, []string{"TOPIC", "orders", "a.orders", "3 mirroring"}, nil},
		{"topics filtered", []string{"topics", "list", "--filter", "zzz", "-o", "json"}, []string{"[]"}, []string{"orders"}},
		{"excluded topics", []string{"topics", "list", "--excluded"}, []string{"__internal", "internal topic"}, nil},
		{"one topic", []string{"topics", "describe", "orders"}, []string{"orders -> a.orders", "orders-2", "1,230", "raw"}, nil},
		{"partitions", []string{"partitions", "list", "--topic", "orders"}, []string{"PARTITION", "orders-0", "a.orders-2", "1,234"}, nil},
		{"no partition of a topic", []string{"partitions", "list", "--topic", "orders", "--filter", "zzz", "-o", "yaml"}, []string{"[]"}, nil},
		{"events", []string{"events"}, []string{"range_skipped", "range skipped (offsets 5 to 9): retention", "topic_discovered"}, nil},
		{"events by type", []string{"events", "--type", "topic_discovered", "-o", "json"}, []string{`"topic_discovered"`}, []string{"range_skipped"}},
		{"events after an id", []string{"events", "--since", id10(old.ID)}, []string{"topic_discovered"}, []string{"range_skipped"}},
		{"events of the last hour", []string{"events", "--since", "1h"}, []string{"range_skipped"}, nil},
		{"events since a time to come", []string{"events", "--since", time.Now().Add(time.Hour).Format(time.RFC3339)}, []string{"ID"}, []string{"orders"}},
		{"wait", []string{"wait", "--topic", "orders"}, []string{"caught up with what the source had at "}, []string{"behind"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := command(t.Context(), append(row.args, "--api", base)...)
			require.Equal(t, 0, code, stderr)
			for _, text := range row.has {
				require.Contains(t, stdout, text)
			}
			for _, text := range row.lacks {
				require.NotContains(t, stdout, text)
			}
		})
	}
}

func TestReadsTakeTheAddressFromAFile(t *testing.T) {
	t.Parallel()
	base, _, _ := serveAPI(t, 1)
	_, port, _ := strings.Cut(strings.TrimPrefix(base, "http://"), ":")
	file := writeFile(t, "server: {listen: ':"+port+"'}")
	code, stdout, stderr := command(t.Context(), "status", "--config", file, "--log-level", "debug", "--log-format", "json")
	require.Equal(t, 0, code, stderr)
	require.Contains(t, stdout, "@a@b@1")
	require.Contains(t, stderr, `"url":"http://127.0.0.1:`+port+`/api/v1/status"`)
	code, _, stderr = command(t.Context(), "status", "--config", file, "--api", "127.0.0.1:1")
	require.Equal(t, exitFailure, code, "a flag wins over the file")
	require.Contains(t, stderr, "causeway: cannot reach the mirror at --api http://127.0.0.1:1: connection refused; is the controller, or the mirror, running there? try another --api URL\n")
	code, _, stderr = command(t.Context(), "status", "--api", "http://nobody.invalid:8080")
	require.Equal(t, exitFailure, code)
	require.Regexp(t, `cannot reach the mirror at --api http://nobody\.invalid:8080: lookup nobody\.invalid.*; is the controller`, stderr)
	code, _, stderr = command(t.Context(), "status", "--log-level", "loud")
	require.Equal(t, exitFailure, code)
	require.Contains(t, stderr, `log.level (--log-level) "loud"`)
}

func TestReadsSayNo(t *testing.T) {
	t.Parallel()
	base, _, _ := serveAPI(t, 1)
	code, _, stderr := command(t.Context(), "topics", "describe", "a b", "--api", base)
	require.Equal(t, exitFailure, code)
	require.Contains(t, stderr, `topic "a b" is not mirrored (not_found, http 404)`)
	code, stdout, stderr := command(t.Context(), "partitions", "list", "--topic", "nope", "--api", base)
	require.Equal(t, exitFailure, code, "an empty table would say that there is such a topic")
	require.Empty(t, stdout)
	require.Contains(t, stderr, `topic "nope" is not mirrored (not_found, http 404)`)
}

func TestListsReadEveryPage(t *testing.T) {
	t.Parallel()
	base, _, _ := serveAPI(t, 2500)
	code, stdout, stderr := command(t.Context(), "partitions", "list", "--api", base)
	require.Equal(t, 0, code, stderr)
	require.Equal(t, 2501, strings.Count(stdout, "\n"), "a header and every partition")
	require.Equal(t, 1, strings.Count(stdout, "\norders-2499 "), "one and not twice, over pages")
}

func TestWaitTimesOut(t *testing.T) {
	t.Parallel()
	base, _, mirror := serveAPI(t, 1)
	mirror.lag = 7
	code, _, stderr := command(t.Context(), "wait", "--topic", "orders", "--timeout", "50ms", "--api", base)
	require.Equal(t, exitFailure, code)
	require.Equal(t, "causeway: timed out after 50ms: still 7 records behind (timeout, http 408)\n", stderr)
	code, stdout, _ := command(t.Context(), "wait", "--topic", "orders", "--lag", "7", "--timeout", "50ms", "--api", base)
	require.Equal(t, exitOK, code)
	require.Regexp(t, `^7 records behind what the source had at \d\d:\d\d:\d\d\n$`, stdout)
}

// TestStatusSaysWhatItDoesNotKnowAndLacks: a topic that is named and not there showed nowhere, and no lag was told where none was known.
func TestStatusSaysWhatItDoesNotKnowAndLacks(t *testing.T) {
	t.Parallel()
	base, _, mirror := serveAPI(t, 1)
	_, stdout, _ := command(t.Context(), "status", "--api", base)
	require.NotContains(t, stdout, "missing")
	mirror.excluded = []api.Excluded{{Topic: "order", Reason: missingReason}}
	mirror.state.Partitions[0].State, mirror.state.Partitions[0].LagRecords = api.StateHalted, -1
	code, stdout, stderr := command(t.Context(), "status", "--api", base)
	require.Equal(t, 0, code, stderr)
	require.Regexp(t, `(?m)^missing +order: does not exist on the source$`, stdout)
	require.NotContains(t, stdout, "__internal")
	require.Regexp(t, `(?m)^state +halted: its only partition$`, stdout)
	require.Regexp(t, `(?m)^lag +unknown$`, stdout)
	code, _, stderr = command(t.Context(), "wait", "--topic", "order", "--timeout", "1ms", "--api", base)
	require.Equal(t, exitFailure, code)
	require.Contains(t, stderr, `topic "order" is not mirrored: does not exist on the source`)
}

// TestAnInterruptIsCalledOne: what was under way when it came is of no use to anybody.
func TestAnInterruptIsCalledOne(t *testing.T) {
	t.Parallel()
	base, _, _ := serveAPI(t, 1)
	cluster := embedded(t, "orders").ListenAddrs()[0]
	ctx, interrupt := context.WithCancelCause(t.Context())
	interrupt(errors.New("interrupt signal received"))
	for line, want := range map[string]int{
		"wait --topic orders --api " + base:     exitFailure,
		"topics pause orders --api " + base:     exitFailure,
		"partitions list -o json --api " + base: exitFailure,
		"verify --topics orders --target-name b --rename x.{topic} --source " + cluster + " --target " + cluster: exitIncomparable,
	} {
		code, stdout, stderr := command(ctx, words(line)...)
		require.Equal(t, want, code, line)
		require.Empty(t, stdout, line)
		require.Equal(t, "causeway: interrupted\n", stderr, line)
	}
}

func TestAPlaceIsNoRange(t *testing.T) {
	t.Parallel()
	e := events.Of(route.Partition{Topic: "orders"}, events.PartitionHalted, events.Error, "the partition stands still").Range(7, 7).Because("why")
	require.Equal(t, "the partition stands still (at offset 7): why", eventText(&e))
	e = e.Range(7, 9)
	require.Equal(t, "the partition stands still (offsets 7 to 9): why", eventText(&e))
}

// safeBuffer is written by the program and read by the test.
type safeBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func TestFollowPrintsNewEventsUntilInterrupted(t *testing.T) {
	t.Parallel()
	base, log, _ := serveAPI(t, 1)
	log.Emit(events.Event{Type: events.RouteDegraded, Severity: events.Error, Message: "first"})
	ctx, cancel := context.WithCancel(t.Context())
	var out, errs safeBuffer
	done := make(chan int, 1)
	go func() { done <- run(ctx, []string{"events", "--follow", "--api", base}, &out, &errs) }()
	require.Eventually(t, func() bool { return strings.Contains(out.String(), "first") }, 10*time.Second, time.Millisecond)
	log.Emit(events.Event{Type: events.RouteRecovered, Severity: events.Info, Message: "second"})
	require.Eventually(t, func() bool { return strings.Contains(out.String(), "second") }, 10*time.Second, time.Millisecond)
	cancel()
	require.Equal(t, exitOK, <-done)
	require.Equal(t, 1, strings.Count(out.String(), "first"))
}

func TestWatchShowsAgain(t *testing.T) {
	t.Parallel()
	base, _, _ := serveAPI(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	var out, errs safeBuffer
	done := make(chan int, 1)
	go func() { done <- run(ctx, []string{"status", "--watch", "--api", base}, &out, &errs) }()
	require.Eventually(t, func() bool { return strings.Count(out.String(), "@a@b@1") >= 2 }, 10*time.Second, 10*time.Millisecond)
	cancel()
	require.Equal(t, exitOK, <-done)
	require.Regexp(t, `(?m)^--- \d{4}-\d\d-\d\dT`, out.String(), "blocks in a file are told apart by their time")
}

func TestLongNamesDoNotWidenTables(t *testing.T) {
	t.Parallel()
	base, _, mirror := serveAPI(t, 1)
	mirror.state.Partitions[0].Topic = "team." + strings.Repeat("x", 240)
	code, stdout, stderr := command(t.Context(), "partitions", "list", "--api", base)
	require.Equal(t, exitOK, code, stderr)
	require.Regexp(t, `(?m)^team\.x+…x+-0  +a\.orders-0 `, stdout)
	for line := range strings.Lines(stdout) {
		require.Less(t, len(line), 220)
	}
	_, stdout, _ = command(t.Context(), "partitions", "list", "--api", base, "-o", "json")
	require.Contains(t, stdout, mirror.state.Partitions[0].Topic)
}
