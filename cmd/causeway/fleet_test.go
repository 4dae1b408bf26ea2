package main

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/api"
	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/operator"
	"github.com/causeway-mirror/causeway/route"
)

// fakeOperator does what is asked of topics and partitions in memory.
type fakeOperator struct {
	mu       sync.Mutex
	topics   map[string]int32 // partitions of those that are mirrored
	settings map[string]operator.Topic
	resets   map[route.Partition]operator.Place
	retried  map[route.Partition]bool
	log      *events.Log // tells of resets, as the connector does; nil where another process tells
	mirror   api.Mirror  // nil: one without partitions
}

func newFakeOperator() fakeOperator {
	return fakeOperator{
		topics: map[string]int32{"orders": 4}, settings: map[string]operator.Topic{}, resets: map[route.Partition]operator.Place{},
		retried: map[route.Partition]bool{},
	}
}

// known says whether there is such a partition.
func (f *fakeOperator) known(p route.Partition) error {
	if p.Partition >= f.topics[p.Topic] {
		return fmt.Errorf("%w: partition %q is not known", api.ErrNotFound, p)
	}
	return nil
}

func (f *fakeOperator) configure(topic string, change func(*operator.Topic)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.topics[topic]; !ok {
		return fmt.Errorf("%w: topic %q is not known", api.ErrNotFound, topic)
	}
	t := f.settings[topic].Clone()
	change(&t)
	f.settings[topic] = t
	return nil
}

func (f *fakeOperator) configurePart(p route.Partition, change func(*operator.Settings)) error {
	if err := f.known(p); err != nil {
		return err
	}
	return f.configure(p.Topic, func(t *operator.Topic) {
		own := t.Partitions[p.Partition]
		change(&own)
		t.Set(p.Partition, own)
	})
}

func (f *fakeOperator) PauseTopic(_ context.Context, topic string, on bool) error {
	return f.configure(topic, func(t *operator.Topic) { t.Paused = on })
}

func (f *fakeOperator) LimitTopic(_ context.Context, topic string, l operator.Limits) error {
	return f.configure(topic, func(t *operator.Topic) { t.Limits = l })
}

func (f *fakeOperator) PausePartition(_ context.Context, p route.Partition, on bool) error {
	return f.configurePart(p, func(s *operator.Settings) { s.Paused = on })
}

func (f *fakeOperator) LimitPartition(_ context.Context, p route.Partition, l operator.Limits) error {
	return f.configurePart(p, func(s *operator.Settings) { s.Limits = l })
}

func (*fakeOperator) RetryDeadLetters(_ context.Context, topic string) (api.DeadLetters, error) {
	if topic != "orders" {
		return api.DeadLetters{}, fmt.Errorf("%w: there is no such dead-letter topic: %s.dead-letter", api.ErrNotFound, topic)
	}
	return api.DeadLetters{Topic: topic, DeadLetterTopic: topic + ".dead-letter", PutBack: 3, Refused: 1}, nil
}

func (*fakeOperator) DeadLetters(_ context.Context, topic string) ([]api.DeadLetter, error) {
	if topic != "orders" {
		return nil, fmt.Errorf("%w: there is no such dead-letter topic: %s.dead-letter", api.ErrNotFound, topic)
	}
	return []api.DeadLetter{{
		DeadLetterTopic: topic + ".dead-letter", DeadLetterOffset: 4, Topic: topic, Partition: 3, Offset: 1006, TargetTopic: topic, TargetPartition: 3,
		Reason: "oversized: MESSAGE_TOO_LARGE", Time: time.Unix(1_700_000_000, 0).UTC(), Bytes: 1_500_000,
	}}, nil
}

func (f *fakeOperator) Reset(_ context.Context, p route.Partition, to operator.Place) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.known(p); err != nil {
		return err
	}
	f.resets[p] = to
	if f.log != nil {
		f.log.Emit(events.Of(p, events.CheckpointOverridden, events.Warning, "an operator has set the position").Range(120, 120).
			Because("reset to " + to.String() + "; it was 5000"))
	}
	return nil
}

func (f *fakeOperator) Retry(_ context.Context, p route.Partition) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.retried[p] = true
	return f.known(p)
}

// lacking is what a fakeFleet has not.
type lacking struct{ api.Fleet }

// fakeFleet is a cluster of workers in memory. What its tests do not need it does not have.
type fakeFleet struct {
	lacking
	fakeOperator

	source  map[string]int32 // partitions of the topics that there are
	pins    map[route.Partition]string
	drained map[string]bool // by worker, of all that there are
}

func newFakeFleet() *fakeFleet {
	return &fakeFleet{
		fakeOperator: newFakeOperator(), source: map[string]int32{"orders": 4, "audit": 3},
		pins: map[route.Partition]string{}, drained: map[string]bool{"mirror-1": false, "mirror-2": false},
	}
}

func (f *fakeFleet) Topics() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.topics))
}

func (f *fakeFleet) Topic(name string) (api.FleetTopic, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, ok := f.topics[name]
	return api.FleetTopic{Partitions: n}, ok
}

func (f *fakeFleet) Add(_ context.Context, topic string, partitions int32) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.topics[topic]; ok {
		return fmt.Errorf("%w: topic %q is mirrored already", api.ErrExists, topic)
	}
	f.topics[topic] = partitions
	return nil
}

func (f *fakeFleet) AddFromSource(ctx context.Context, topic string) (int32, error) {
	n, err := f.InSource(ctx, topic)
	if err != nil {
		return 0, err
	}
	return n, f.Add(ctx, topic, n)
}

func (f *fakeFleet) InSource(_ context.Context, topic string) (int32, error) {
	n, ok := f.source[topic]
	if !ok {
		return 0, fmt.Errorf("%w: topic %q does not exist in the source cluster", api.ErrAbsent, topic)
	}
	return n, nil
}

func (f *fakeFleet) Expand(_ context.Context, topic string, partitions int32) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.topics[topic] = partitions
	return nil
}

func (f *fakeFleet) Delete(_ context.Context, topic string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.topics[topic]; !ok {
		return fmt.Errorf("%w: topic %q is not known", api.ErrNotFound, topic)
	}
	delete(f.topics, topic)
	return nil
}

func (f *fakeFleet) Workers() []api.FleetWorker {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []api.FleetWorker
	for _, id := range slices.Sorted(maps.Keys(f.drained)) {
		p := route.Partition{Topic: "orders", Partition: int32(len(out))}
		out = append(out, api.FleetWorker{
			ID: id, Live: true, Draining: f.drained[id], Partitions: []route.Partition{p},
			Rates: map[route.Partition]api.FleetRate{p: {Bytes: 2e6, Messages: 1500}},
		})
	}
	return out
}

func (f *fakeFleet) Drain(_ context.Context, worker string, on bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.drained[worker]; !ok {
		return fmt.Errorf("%w: worker %q is not known", api.ErrNotFound, worker)
	}
	f.drained[worker] = on
	return nil
}

func (f *fakeFleet) Move(_ context.Context, p route.Partition, worker string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.known(p); err != nil {
		return err
	}
	if _, ok := f.drained[worker]; !ok && worker != "" {
		return fmt.Errorf("%w: worker %q is not known", api.ErrNotFound, worker)
	}
	f.pins[p] = worker
	return nil
}

// savedFleet is a backup of a fakeFleet.
type savedFleet struct {
	Version int               `json:"v"`
	Topics  []topicPartitions `json:"topics"`
}

func (f *fakeFleet) Backup() ([]byte, error) {
	saved := savedFleet{Version: 1}
	for _, name := range f.Topics() {
		saved.Topics = append(saved.Topics, topicPartitions{name, f.topics[name]})
	}
	return json.Marshal(saved)
}

func (f *fakeFleet) Restore(_ context.Context, backup []byte) error {
	var saved savedFleet
	if err := json.Unmarshal(backup, &saved); err != nil || saved.Version != 1 {
		return fmt.Errorf("%w: v: %d: must be 1", api.ErrInvalid, saved.Version)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, topic := range saved.Topics {
		f.topics[topic.Topic] = topic.Partitions
	}
	return nil
}

// lead is who leads, as one controller sees it.
type lead struct {
	fleet  *fakeFleet // nil: another one does
	leader string     // its address
}

func (l lead) Fleet() (api.Fleet, bool)                 { return l.fleet, l.fleet != nil }
func (l lead) Leader(context.Context) (id, addr string) { return "c1", l.leader }

// apiOf builds a real API in a role. Behind it is a leadership, an operator, or nothing.
func apiOf(t *testing.T, role string, behind any, change ...func(*api.Config)) *api.Server {
	t.Helper()
	r := route.Route{Source: "a", Target: "b", ID: "1"}
	reg := prometheus.NewRegistry()
	log := events.NewLog(r, "w1", 100, hclog.NewNullLogger(), reg)
	cfg := api.DefaultConfig()
	for _, f := range change {
		f(&cfg)
	}
	deps := api.Deps{
		Log: hclog.NewNullLogger(), Mirror: &shownMirror{}, Events: log, Registry: reg,
		Identity: api.Identity{Role: role, Version: "v1", Worker: "w1", Route: r, Started: time.Now()},
	}
	switch b := behind.(type) {
	case lead:
		deps.Leadership = b
	case *fakeOperator:
		b.log, deps.Operator = log, b
		if b.mirror != nil {
			deps.Mirror = b.mirror
		}
	}
	server, err := api.New(cfg, deps)
	require.NoError(t, err)
	return server
}

// serve gives the address of a handler.
func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	web := httptest.NewServer(h)
	t.Cleanup(web.Close)
	return web.URL
}

// told runs a command that must succeed and gives its line.
func told(t *testing.T, base, line string) string {
	t.Helper()
	code, stdout, stderr := command(t.Context(), append(words(line), "--api", base)...)
	require.Equal(t, exitOK, code, "%s: %s", line, stderr)
	require.Empty(t, stderr, line)
	require.Equal(t, 1, strings.Count(stdout, "\n"), "one line of what was done: %s", stdout)
	return strings.TrimSpace(stdout)
}

// authorityOf gives a file with the authority of a TLS server.
func authorityOf(t *testing.T, s *httptest.Server) string {
	t.Helper()
	return writeFile(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})))
}
