package api

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"mime"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/operator"
	"github.com/causeway-mirror/causeway/route"
)

// operation is a method of a path as the document has it.
type operation struct {
	method, path string
	roles        []string
	node         map[string]any
}

// roles are the processes that serve the API.
func roles() []string { return []string{"standalone", "worker", "controller"} }

func readDescription(t *testing.T) (description, []operation) {
	t.Helper()
	var d description
	require.NoError(t, yaml.Unmarshal(document, &d.root))
	var all []operation
	for path, item := range table(d.root, "paths") {
		for method, node := range item.(map[string]any) {
			if method == "parameters" {
				continue
			}
			o := operation{method: strings.ToUpper(method), path: path, node: node.(map[string]any)}
			for _, role := range o.node["x-roles"].([]any) {
				o.roles = append(o.roles, role.(string))
			}
			all = append(all, o)
		}
	}
	slices.SortFunc(all, func(a, b operation) int { return strings.Compare(a.path+a.method, b.path+b.method) })
	return d, all
}

// answeringFleet succeeds in everything, or fails with err in everything.
type answeringFleet struct {
	Fleet // what no native call needs

	err error
}

func (f answeringFleet) Topic(string) (FleetTopic, bool) {
	return FleetTopic{Partitions: 3}, !errors.Is(f.err, ErrNotFound)
}

func (f answeringFleet) Add(context.Context, string, int32) error { return f.err }
func (f answeringFleet) AddFromSource(context.Context, string) (int32, error) {
	return 3, f.err
}
func (f answeringFleet) InSource(context.Context, string) (int32, error)              { return 100, f.err }
func (f answeringFleet) Expand(context.Context, string, int32) error                  { return f.err }
func (f answeringFleet) Delete(context.Context, string) error                         { return f.err }
func (f answeringFleet) TakeOff(context.Context, route.Partition, bool) error         { return f.err }
func (f answeringFleet) Drain(context.Context, string, bool) error                    { return f.err }
func (f answeringFleet) Move(context.Context, route.Partition, string) error          { return f.err }
func (f answeringFleet) Backup() ([]byte, error)                                      { return []byte(`{"v":1,"topics":{}}`), f.err }
func (f answeringFleet) Restore(context.Context, []byte) error                        { return f.err }
func (f answeringFleet) Reset(context.Context, route.Partition, operator.Place) error { return f.err }
func (f answeringFleet) Retry(context.Context, route.Partition) error                 { return f.err }
func (f answeringFleet) LimitTopic(context.Context, string, operator.Limits) error    { return f.err }
func (f answeringFleet) LimitPartition(context.Context, route.Partition, operator.Limits) error {
	return f.err
}

func (f answeringFleet) RetryDeadLetters(_ context.Context, topic string) (DeadLetters, error) {
	return DeadLetters{Topic: topic, DeadLetterTopic: topic + ".dead-letter", PutBack: 3, Refused: 1}, f.err
}

func (f answeringFleet) DeadLetters(_ context.Context, topic string) ([]DeadLetter, error) {
	return []DeadLetter{{DeadLetterTopic: topic + ".dead-letter", Topic: topic, Offset: 6, Reason: "oversized"}}, f.err
}

func (f answeringFleet) PauseTopic(context.Context, string, bool) error              { return f.err }
func (f answeringFleet) PausePartition(context.Context, route.Partition, bool) error { return f.err }
func (f answeringFleet) Rebalance(context.Context) error                             { return f.err }
func (answeringFleet) Workers() []FleetWorker {
	p := route.Partition{Topic: "orders", Partition: 2}
	return []FleetWorker{{ID: "w1", Live: true, Partitions: []route.Partition{p}, Rates: map[route.Partition]FleetRate{p: {Bytes: 1.5, Messages: 2}}}, {ID: "w2"}}
}

// dictionary translates offsets of one topic.
type dictionary struct{}

func (dictionary) Translate(_ context.Context, p route.Partition, offset route.Offset) (Translation, error) {
	t := Translation{Topic: p.Topic, Partition: p.Partition, Offset: int64(offset), TargetTopic: p.Topic, TargetPartition: p.Partition, TargetOffset: int64(offset) - 1, Exact: true}
	if p.Topic != "orders" {
		return t, ErrNotFound
	}
	return t, nil
}

func (d dictionary) TranslateGroup(ctx context.Context, group string) (all []Translation, err error) {
	for p := range int32(3) {
		one, _ := d.Translate(ctx, route.Partition{Topic: "orders", Partition: p}, route.Offset(10*p+int32(len(group))))
		all = append(all, one)
	}
	return all, nil
}

// leader leads with a fleet.
type leader struct{ fleet Fleet }

func (l leader) Fleet() (Fleet, bool)                      { return l.fleet, true }
func (leader) Leader(context.Context) (id, address string) { return "c1", "http://c1:8080" }

// serverOf builds the server of a role with something of everything to show.
func serverOf(t *testing.T, role string, lead Leadership, change func(*Config, *fakeMirror)) *Server {
	t.Helper()
	h := newHarness(t)
	h.log.Emit(events.Of(route.Partition{Topic: "orders", Partition: 3}, events.RangeSkipped, events.Error, "skipped").Range(5, 9).Because("gone"))
	cfg := DefaultConfig()
	change(&cfg, h.mirror)
	id := h.server.deps.Identity
	id.Role = role
	deps := Deps{Log: hclog.NewNullLogger(), Mirror: h.mirror, Events: h.log, Registry: prometheus.NewRegistry(), Identity: id}
	switch l, leads := lead.(leader); {
	case role == "controller":
		deps.Leadership = lead
	case role == "standalone" && leads:
		deps.Operator = l.fleet
	case role == "standalone":
		deps.Operator = answeringFleet{}
	}
	if role != "controller" {
		deps.Translator = dictionary{}
	}
	s, err := New(cfg, deps)
	require.NoError(t, err)
	s.history.add(time.Now(), totalsOfTopics(h.mirror.snapshot.Partitions))
	return s
}

func unchanged(*Config, *fakeMirror) {}

func TestTheDocumentHasEveryRouteOfEachRoleAndNoOther(t *testing.T) {
	t.Parallel()
	_, operations := readDescription(t)
	for _, role := range roles() {
		var documented []string
		for _, o := range operations {
			if slices.Contains(o.roles, role) {
				pattern := o.method + " " + o.path
				if o.path == "/" {
					pattern += "{$}"
				}
				documented = append(documented, pattern)
			}
		}
		require.ElementsMatch(t, documented, serverOf(t, role, leader{answeringFleet{}}, unchanged).mux.patterns, role)
	}
}

func TestTheDocumentIsWellFormed(t *testing.T) {
	t.Parallel()
	d, operations := readDescription(t)
	names := map[any]bool{}
	for _, o := range operations {
		require.NotEmpty(t, o.node["summary"], o.path)
		require.NotEmpty(t, o.roles, o.path)
		require.Subset(t, roles(), o.roles, o.path)
		require.False(t, names[o.node["operationId"]], "twice: %v", o.node["operationId"])
		names[o.node["operationId"]] = true
		require.Equal(t, changes(o.method), o.node["security"] != nil, "%s %s", o.method, o.path)
		declared := map[string]bool{}
		own, _ := o.node["parameters"].([]any)
		shared, _ := table(table(d.root, "paths"), o.path)["parameters"].([]any)
		for _, p := range append(own, shared...) {
			parameter, err := d.resolve(p.(map[string]any))
			require.NoError(t, err, o.path)
			if parameter["in"] == "path" {
				declared["{"+parameter["name"].(string)+"}"] = true
			}
		}
		for part := range strings.SplitSeq(o.path, "/") {
			require.Equal(t, strings.HasPrefix(part, "{"), declared[part], "%s: %s", o.path, part)
		}
	}
	d.schemas(func(at string, schema map[string]any) {
		for keyword := range schema {
			require.Contains(t, keywords(), keyword, at)
		}
		_, err := d.resolve(schema)
		require.NoError(t, err, at)
	})
	var types []any
	for _, kind := range events.Types() {
		types = append(types, string(kind))
	}
	require.Equal(t, types, table(table(table(d.root, "components"), "schemas"), "EventType")["enum"])
}

// request is one that gets a documented answer.
type request struct {
	lead   Leadership
	change func(*Config, *fakeMirror)
	path   string
	body   string
}

// bodies are what a successful write brings.
func bodies() map[string]string {
	return map[string]string{
		"POST /api/v1/topics":                                      `{"topic":"orders"}`,
		"POST /api/v1/topics/{topic}/expand":                       `{"partitions":6}`,
		"POST /api/v1/topics/{topic}/partitions/{partition}/move":  `{"worker":"w1"}`,
		"PUT /api/v1/topics/{topic}/limits":                        `{"records_per_second":5}`,
		"PUT /api/v1/topics/{topic}/partitions/{partition}/limits": `{"bytes_per_second":5}`,
		"POST /api/v1/topics/{topic}/partitions/{partition}/reset": `{"to":"earliest"}`,
		"POST /api/v1/restore":                                     `{"v":1}`,
	}
}

// queries are what a successful read needs, or what makes one fail.
func queries(path string, status int) string {
	switch {
	case status == http.StatusUnprocessableEntity:
		return map[string]string{"/api/v1/events": "?since=x", "/api/v1/history": "?since=x", "/api/v1/wait": "?lag=x", "/api/v1/offsets/translate": "?offset=x"}[path]
	case path == "/api/v1/history" && status == http.StatusNotFound:
		return "?metric=lag_seconds&topic=nosuch"
	case path == "/api/v1/history":
		return "?metric=lag_seconds&topic=orders&since=1h"
	case path == "/api/v1/offsets/translate":
		return map[bool]string{true: "?topic=nosuch&offset=5", false: "?topic=orders&partition=2&offset=5"}[status == http.StatusNotFound]
	case path == "/api/v1/wait" && status == http.StatusNotFound:
		return "?topic=nosuch"
	case path == "/api/v1/wait":
		return "?topic=orders&timeout=1ms"
	}
	return ""
}

// causing makes a request that is answered with a status.
func causing(t *testing.T, o operation, status int) request {
	t.Helper()
	topic := "orders"
	if status == http.StatusNotFound && o.method == http.MethodGet {
		topic = "nosuch"
	}
	r := request{
		lead: leader{answeringFleet{}}, change: unchanged, body: bodies()[o.method+" "+o.path],
		path: strings.NewReplacer("{topic}", topic, "{partition}", "2", "{id}", "w1").Replace(o.path) + queries(o.path, status),
	}
	switch status {
	case http.StatusUnauthorized:
		token := filepath.Join(t.TempDir(), "token")
		require.NoError(t, os.WriteFile(token, []byte("s3cret"), 0o600))
		r.change = func(c *Config, _ *fakeMirror) { c.TokenFile = token }
	case http.StatusTemporaryRedirect:
		r.lead = standby{"http://c1:8080"}
	case http.StatusNotFound:
		r.lead = leader{answeringFleet{err: ErrNotFound}}
	case http.StatusConflict:
		r.lead = leader{answeringFleet{err: ErrExists}}
	case http.StatusUnprocessableEntity:
		r.lead = leader{answeringFleet{err: ErrInvalid}}
		if o.method == http.MethodGet && !strings.Contains(r.path, "?") {
			r.path += "?limit=x"
		}
	case http.StatusRequestTimeout:
		r.change = func(_ *Config, m *fakeMirror) { m.lag.Store(42) }
	case http.StatusServiceUnavailable:
		r.lead = standby{""}
		r.change = func(_ *Config, m *fakeMirror) { m.snapshot.State = StateDegraded }
	}
	return r
}

// TestEveryDocumentedAnswerIsGivenAsDocumented has a handler give each answer of the document once for each role that has it.
func TestEveryDocumentedAnswerIsGivenAsDocumented(t *testing.T) {
	t.Parallel()
	d, operations := readDescription(t)
	for _, o := range operations {
		for text, node := range table(o.node, "responses") {
			status, err := strconv.Atoi(text)
			require.NoError(t, err)
			response, err := d.resolve(node.(map[string]any))
			require.NoError(t, err)
			for _, role := range o.roles {
				if role != "controller" && needsLeader(o, status) {
					continue
				}
				t.Run(role+" "+o.method+" "+o.path+" "+text, func(t *testing.T) {
					t.Parallel()
					in := causing(t, o, status)
					r := httptest.NewRequestWithContext(t.Context(), o.method, in.path, strings.NewReader(in.body))
					w := httptest.NewRecorder()
					serverOf(t, role, in.lead, in.change).ServeHTTP(w, r)
					require.Equal(t, status, w.Code, w.Body)
					for name := range table(response, "headers") {
						require.NotEmpty(t, w.Header().Get(name), name)
					}
					d.compare(t, table(response, "content"), w)
				})
			}
		}
	}
}

// needsLeader says that an answer tells of another leader, which only a controller has.
func needsLeader(o operation, status int) bool {
	return status == http.StatusServiceUnavailable && o.path != "/readyz" || status == http.StatusTemporaryRedirect
}

// compare holds an answer against what is documented of its content.
func (d description) compare(t *testing.T, content map[string]any, w *httptest.ResponseRecorder) {
	t.Helper()
	if len(content) == 0 {
		if w.Code != http.StatusFound { // a redirect of net/http has a line for people
			require.Empty(t, w.Body.String())
		}
		return
	}
	kind, _, err := mime.ParseMediaType(w.Header().Get("Content-Type"))
	require.NoError(t, err)
	require.Contains(t, slices.Collect(maps.Keys(content)), kind)
	if kind != "application/json" {
		require.NotEmpty(t, w.Body.String())
		return
	}
	var value any
	decoder := json.NewDecoder(w.Body)
	decoder.UseNumber()
	require.NoError(t, decoder.Decode(&value))
	require.Empty(t, d.check(table(table(content, kind), "schema"), value, "answer"))
}

func TestTheCheckerFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	d, _ := readDescription(t)
	for text, want := range map[string]string{
		`{"code":"x","message":"y"}`:          "",
		`{"code":"x"}`:                        "message is missing",
		`{"code":1,"message":"y"}`:            "answer.code: 1 is no string",
		`{"code":"x","message":"y","more":0}`: "more is not described",
		`[]`:                                  "is no object",
	} {
		faults := d.check(map[string]any{"$ref": "#/components/schemas/Failure"}, decoded(t, text), "answer")
		if want == "" {
			require.Empty(t, faults)
			continue
		}
		require.Len(t, faults, 1, text)
		require.Contains(t, faults[0], want)
	}
	for name, text := range map[string]string{
		"Offset": "-2", "EventType": `"nosuch"`, "Next": "3", "Status": `{}`, "TopicList": `{"items":[3],"next":""}`, "RouteState": `"x"`, "Nosuch": "1",
	} {
		require.NotEmpty(t, d.check(map[string]any{"$ref": "#/components/schemas/" + name}, decoded(t, text), "answer"), name)
	}
	require.NotEmpty(t, d.check(map[string]any{"type": "integer"}, decoded(t, "1.5"), "answer"))
	require.NotEmpty(t, d.check(map[string]any{"type": "string", "format": "date-time"}, decoded(t, `"today"`), "answer"))
}

func decoded(t *testing.T, text string) (value any) {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	require.NoError(t, decoder.Decode(&value))
	return value
}

// TestListsAreSortedByWhatTheDocumentNames holds the document's words against the lists'.
func TestListsAreSortedByWhatTheDocumentNames(t *testing.T) {
	t.Parallel()
	_, operations := readDescription(t)
	for path, names := range map[string][]string{
		"/api/v1/topics": topicLister().sortNames(), "/api/v1/partitions": partitionLister().sortNames(),
		"/api/v1/excluded-topics": excludedLister().sortNames(), "/api/v1/workers": workerLister().sortNames(),
		"/api/v1/dead-letters/{topic}": deadLetterLister().sortNames(), "/api/v1/offsets/translate": translationLister().sortNames(),
	} {
		at := slices.IndexFunc(operations, func(o operation) bool { return o.path == path && o.method == http.MethodGet })
		var documented []string
		for _, p := range operations[at].node["parameters"].([]any) {
			if parameter := p.(map[string]any); parameter["name"] == "sort" {
				for _, name := range table(parameter, "schema")["enum"].([]any) {
					documented = append(documented, name.(string))
				}
			}
		}
		for _, name := range names {
			require.Contains(t, documented, name, path)
			require.Contains(t, documented, "-"+name, path)
		}
		require.Len(t, documented, 2*len(names), path)
	}
}

func TestTheDocumentIsServed(t *testing.T) {
	t.Parallel()
	code, header, body := newHarness(t).do(t, http.MethodGet, "/api/v1/openapi.yaml")
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, "application/yaml", header.Get("Content-Type"))
	require.Contains(t, body, "openapi: 3.0.3")
}
