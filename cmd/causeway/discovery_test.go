package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/api"
	"github.com/causeway-mirror/causeway/cluster"
	"github.com/causeway-mirror/causeway/connector"
	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/handler"
	"github.com/causeway-mirror/causeway/internal/native"
	"github.com/causeway-mirror/causeway/letters"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/offsets/bolt"
	"github.com/causeway-mirror/causeway/operator"
	"github.com/causeway-mirror/causeway/route"
)

// fakeCluster lists its topics, or fails.
type fakeCluster struct {
	mu     sync.Mutex
	topics map[string]cluster.Topic
	err    error
}

func (f *fakeCluster) Topics(context.Context) (map[string]cluster.Topic, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.topics, f.err
}

func (f *fakeCluster) set(err error, topics ...cluster.Topic) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.topics, f.err = map[string]cluster.Topic{}, err
	for _, t := range topics {
		f.topics[t.Name] = t
	}
}

// fakeMirror remembers what was added.
type fakeMirror struct {
	mu    sync.Mutex
	added []route.Partition
	state api.Snapshot
	fail  error
	stuck chan struct{} // Run waits for it after ctx has ended
}

func (f *fakeMirror) Add(parts ...route.Partition) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.added = append(f.added, parts...)
}

func (f *fakeMirror) parts() []route.Partition {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]route.Partition(nil), f.added...)
}

func (f *fakeMirror) Run(ctx context.Context) error {
	if f.fail != nil {
		return f.fail
	}
	<-ctx.Done()
	if f.stuck != nil {
		<-f.stuck
	}
	return nil
}

func (f *fakeMirror) Snapshot() api.Snapshot { return f.state }

func (*fakeMirror) Excluded() []api.Excluded { return nil }

func (*fakeMirror) WaitCaughtUp(context.Context, string, int64) (int64, bool, error) {
	return 0, true, nil
}

func (*fakeMirror) Configure(string, operator.Topic) {}

func (*fakeMirror) Retry(route.Partition) bool { return false }

func (*fakeMirror) Reset(context.Context, route.Partition, connector.Reset) error { return nil }
func (*fakeMirror) PutBack(context.Context, string) (topic string, r letters.Result, err error) {
	return "", letters.Result{}, nil
}

func (*fakeMirror) DeadLetters(context.Context, string) ([]letters.Letter, error) { return nil, nil }

func (*fakeMirror) Translate(context.Context, route.Partition, route.Offset) (connector.Translation, error) {
	return connector.Translation{}, nil
}

func (*fakeMirror) TranslateGroup(context.Context, string) ([]connector.Translation, error) {
	return nil, nil
}

type discoveryHarness struct {
	*discovery

	source, target *fakeCluster
	mirror         *fakeMirror
	store          *bolt.Store
	log            *events.Log
}

func filterOf(t *testing.T, include, exclude []string) native.Filter {
	t.Helper()
	s := defaultSettings()
	s.Route.Topics.Include, s.Route.Topics.Exclude = include, exclude
	f, err := s.Filter()
	require.NoError(t, err)
	return f
}

func newDiscovery(t *testing.T, include ...string) discoveryHarness {
	t.Helper()
	store, err := bolt.Open(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	h, err := handler.New(handler.Config{Mapping: map[string]string{"bad": "bad"}, Rename: "{source}.{topic}"}, "a", "b")
	require.NoError(t, err)
	log := events.NewLog(route.Route{Source: "a", Target: "b", ID: "1"}, "w", 100, hclog.NewNullLogger(), prometheus.NewRegistry())
	d := discoveryHarness{source: &fakeCluster{}, target: &fakeCluster{}, mirror: &fakeMirror{}, store: store, log: log}
	d.discovery = &discovery{
		source: d.source, target: d.target, sourceName: "source a (h:1)", targetName: "target b (h:2)", mirror: d.mirror, store: store, mapper: h,
		filter: filterOf(t, include, []string{"secret"}), events: log, log: hclog.NewNullLogger(), interval: time.Millisecond,
	}
	return d
}

func (d discoveryHarness) types() []events.Type {
	found := d.log.Since(0)
	var types []events.Type
	for i := range found {
		types = append(types, found[i].Type)
	}
	return types
}

// TestAListenerThatIsNoneOfKafkasIsCalledOne: a target that was an HTTP server's port gave "client has run out of available brokers: unexpected EOF".
func TestAListenerThatIsNoneOfKafkasIsCalledOne(t *testing.T) {
	t.Parallel()
	err := unanswered("target (127.0.0.1:8080)", fmt.Errorf("no broker is left: %w", io.ErrUnexpectedEOF))
	require.EqualError(t, err, "target (127.0.0.1:8080): unreachable: the connection was closed before an answer came: "+
		"what listens there speaks no Kafka, wants TLS or SASL, or is about to end")
}

func TestDiscoveryFindsTopicsAndPartitions(t *testing.T) {
	t.Parallel()
	d := newDiscovery(t, ".*", "absent")
	d.source.set(nil, cluster.Topic{Name: "orders", Partitions: 2}, cluster.Topic{Name: "__consumer_offsets", Partitions: 50, Internal: true}, cluster.Topic{Name: "secret", Partitions: 1})
	require.NoError(t, d.round(t.Context()))
	require.Equal(t, []route.Partition{{Topic: "orders", Partition: 0}, {Topic: "orders", Partition: 1}}, d.mirror.parts())
	require.Equal(t, []api.Excluded{
		{Topic: "__consumer_offsets", Reason: "internal topic"},
		{Topic: "secret", Reason: "matches the exclude pattern secret"},
		{Topic: "absent", Reason: "does not exist on the source"},
	}, d.Excluded())
	require.Equal(t, []events.Type{events.TopicDiscovered}, d.types())

	d.source.set(nil, cluster.Topic{Name: "orders", Partitions: 3}, cluster.Topic{Name: "absent", Partitions: 1})
	require.NoError(t, d.round(t.Context()))
	require.ElementsMatch(t, []route.Partition{{Topic: "absent"}, {Topic: "orders", Partition: 2}}, d.mirror.parts()[2:])
	require.Empty(t, d.Excluded())
	require.Equal(t, []events.Type{events.TopicDiscovered, events.TopicDiscovered, events.PartitionsAdded}, d.types())

	d.source.set(nil) // a cluster in trouble may leave topics out
	require.NoError(t, d.round(t.Context()))
	d.source.set(nil, cluster.Topic{Name: "orders", Partitions: 3})
	require.NoError(t, d.round(t.Context()))
	require.Len(t, d.mirror.parts(), 4, "nothing is added twice")
}

// TestCopiesAreNotCopiedAgain: with {source}.{topic} on one cluster, a.orders would become a.a.orders, and so on.
func TestCopiesAreNotCopiedAgain(t *testing.T) {
	t.Parallel()
	topics := []cluster.Topic{{Name: "orders", Partitions: 1}, {Name: "a.orders", Partitions: 1}, {Name: "a.other", Partitions: 1}, {Name: "bad", Partitions: 1}}
	two := newDiscovery(t, ".*")
	two.source.set(nil, topics...)
	require.NoError(t, two.round(t.Context()))
	require.Len(t, two.mirror.parts(), 4, "on another cluster the names mean something else")

	one := newDiscovery(t, ".*")
	one.oneCluster = true
	one.source.set(nil, topics...)
	require.NoError(t, one.round(t.Context()))
	require.Equal(t, []route.Partition{{Topic: "a.other"}, {Topic: "orders"}}, one.mirror.parts())
	const reason = "source and target are one cluster, and topic %s is copied here: copies of copies would never end"
	require.Equal(t, []api.Excluded{{Topic: "a.orders", Reason: fmt.Sprintf(reason, "orders")}, {Topic: "bad", Reason: fmt.Sprintf(reason, "bad")}}, one.Excluded())
}

func TestFirstTopicsAreStoredOnce(t *testing.T) {
	t.Parallel()
	d := newDiscovery(t, ".*")
	d.source.set(nil, cluster.Topic{Name: "orders", Partitions: 1})
	require.NoError(t, d.round(t.Context()))
	d.source.set(nil, cluster.Topic{Name: "orders", Partitions: 1}, cluster.Topic{Name: "later", Partitions: 1})
	require.NoError(t, d.round(t.Context()))
	r, err := d.store.Route(t.Context())
	require.NoError(t, err)
	require.True(t, r.Discovered)
	require.Equal(t, map[string]int32{"orders": 1}, r.FirstTopics)
}

// busyStore refuses the first write of a route, as when the mirror has just written its producer id.
type busyStore struct {
	routeStore
	refused bool
}

func (b *busyStore) SaveRoute(ctx context.Context, r offsets.Route) error {
	if !b.refused {
		b.refused = true
		return offsets.ErrConflict
	}
	return b.routeStore.SaveRoute(ctx, r)
}

func TestFirstTopicsSurviveAConflict(t *testing.T) {
	t.Parallel()
	d := newDiscovery(t, ".*")
	d.discovery.store = &busyStore{routeStore: d.store}
	d.source.set(nil, cluster.Topic{Name: "orders", Partitions: 1})
	require.NoError(t, d.round(t.Context()))
	r, err := d.store.Route(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[string]int32{"orders": 1}, r.FirstTopics)
}

func TestDiscoveryRetriesAndNamesTheTrouble(t *testing.T) {
	t.Parallel()
	d := newDiscovery(t, "orders")
	ready, trouble := d.state()
	require.False(t, ready)
	require.Empty(t, trouble)
	d.target.set(errors.New("connection refused"))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); d.run(ctx) }()
	require.Eventually(t, func() bool { _, trouble = d.state(); return trouble != "" }, 10*time.Second, time.Millisecond)
	require.Contains(t, trouble, "target b (h:2)")
	require.Contains(t, trouble, "connection refused")
	require.Empty(t, d.mirror.parts())
	d.source.set(nil, cluster.Topic{Name: "orders", Partitions: 1})
	d.target.set(nil)
	require.Eventually(t, func() bool { ready, trouble = d.state(); return ready && trouble == "" }, 10*time.Second, time.Millisecond)
	require.Eventually(t, func() bool { return len(d.mirror.parts()) == 1 }, 10*time.Second, time.Millisecond)
	cancel()
	<-done
	require.Equal(t, []events.Type{events.RouteDegraded, events.RouteRecovered, events.TopicDiscovered}, d.types())
}

// TestRouteThatWasBegunIsReadWhileItsTargetIsAway: a mirror that was started again during an outage read nothing until the target was back, although
// the source would not keep the records for so long.
func TestRouteThatWasBegunIsReadWhileItsTargetIsAway(t *testing.T) {
	t.Parallel()
	d := newDiscovery(t, "orders")
	require.NoError(t, d.store.SaveRoute(t.Context(), offsets.Route{ProducerID: -1, Discovered: true, FirstTopics: map[string]int32{"orders": 1}}))
	d.source.set(nil, cluster.Topic{Name: "orders", Partitions: 1})
	d.target.set(errors.New("connection refused"))
	require.NoError(t, d.round(t.Context()))
	require.Len(t, d.mirror.parts(), 1)
}

// mute is a cluster that takes questions and answers none.
type mute struct{}

func (mute) Topics(ctx context.Context) (map[string]cluster.Topic, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestATargetThatIsNoKafkaIsToldWithinSeconds: for 23 s a mirror said no more than that it was asking both clusters.
func TestATargetThatIsNoKafkaIsToldWithinSeconds(t *testing.T) {
	t.Parallel()
	d := newDiscovery(t, "orders")
	synctest.Test(t, func(t *testing.T) {
		d.discovery.target = mute{}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); d.run(ctx) }()
		time.Sleep(silence)
		_, trouble := d.state()
		require.Empty(t, trouble)
		time.Sleep(time.Second)
		ready, trouble := d.state()
		require.False(t, ready)
		require.Equal(t, "target b (h:2): no answer for 6s: it is overloaded, or what listens there speaks no Kafka", trouble)
		cancel()
		<-done
	})
}

// TestTopicsWithImpossibleNamesAreNotLeftOutSilently: a name may be too long only once it is renamed.
func TestTopicsWithImpossibleNamesAreNotLeftOutSilently(t *testing.T) {
	t.Parallel()
	d := newDiscovery(t, ".*")
	long := strings.Repeat("a", 248)
	d.source.set(nil, cluster.Topic{Name: long, Partitions: 2}, cluster.Topic{Name: "orders", Partitions: 1})
	d.mirror.state = api.Snapshot{State: api.StateMirroring, Partitions: []api.Partition{{Topic: "orders", State: api.StateMirroring}}}
	for range 2 {
		require.NoError(t, d.round(t.Context()))
	}
	require.Equal(t, []route.Partition{{Topic: "orders"}}, d.mirror.parts())
	require.ElementsMatch(t, []events.Type{events.TopicDiscovered, events.PartitionHalted}, d.types(), "told once")
	found := d.log.Since(0)
	for i := range found {
		if e := &found[i]; e.Type == events.PartitionHalted {
			require.Equal(t, events.Warning, e.Severity)
			require.Equal(t, long, e.Topic)
			require.Contains(t, e.Reason, "has 250 characters of at most 249")
		}
	}
	require.Len(t, d.Excluded(), 1)
	v := &service{mirror: d.mirror, discovery: d.discovery}
	parts := v.Snapshot().Partitions
	require.Len(t, parts, 3)
	require.Equal(t, api.StateHalted, parts[1].State)
	require.Contains(t, parts[2].Reason, "has 250 characters of at most 249")
	for topic, want := range map[string]bool{"": false, long: false, "orders": true} {
		_, ok, err := v.WaitCaughtUp(t.Context(), topic, 0)
		require.Equal(t, want, ok, topic)
		require.Equal(t, want, err == nil, topic)
	}
}

func TestWaitOverNothingIsNoSuccessWhileNamedTopicsAreMissing(t *testing.T) {
	t.Parallel()
	d := newDiscovery(t, "absent")
	require.NoError(t, d.round(t.Context()))
	_, ok, err := (&service{mirror: d.mirror, discovery: d.discovery}).WaitCaughtUp(t.Context(), "", 0)
	require.False(t, ok)
	require.EqualError(t, err, "no topic is mirrored: topic absent does not exist on the source")
}

func TestTopicsOnOneTargetAreWarnedOfOnce(t *testing.T) {
	t.Parallel()
	d := newDiscovery(t, ".*")
	var err error
	d.mapper, err = handler.New(handler.Config{Mapping: map[string]string{"a": "all", "b": "all"}}, "x", "y")
	require.NoError(t, err)
	var text bytes.Buffer
	d.discovery.log = hclog.New(&hclog.LoggerOptions{Output: &text})
	d.source.set(nil, cluster.Topic{Name: "a", Partitions: 1}, cluster.Topic{Name: "b", Partitions: 1}, cluster.Topic{Name: "c", Partitions: 1})
	for range 2 {
		require.NoError(t, d.round(t.Context()))
	}
	require.Equal(t, 1, strings.Count(text.String(), "topics share a target topic"))
	require.Contains(t, text.String(), `topics="a,b" target=all`)
}
