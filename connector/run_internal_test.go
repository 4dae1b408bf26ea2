package connector

import (
	"bytes"
	"io"
	"reflect"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/cluster"
	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/handler"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/offsets/bolt"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/wire"
)

// idle is a connector that is not run and reaches nobody; what it logs goes to out.
func idle(t *testing.T, out io.Writer) *Connector {
	t.Helper()
	return idleOn(t, stored(t), out)
}

func stored(t *testing.T) offsets.Store {
	t.Helper()
	store, err := bolt.Open(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}

func idleOn(t *testing.T, store offsets.Store, out io.Writer) *Connector {
	t.Helper()
	h, err := handler.New(handler.DefaultConfig(), "src", "dst")
	require.NoError(t, err)
	log, reg, way := hclog.New(&hclog.LoggerOptions{Output: out}), prometheus.NewRegistry(), route.Route{Source: "src", Target: "dst", ID: "1"}
	c, err := New(DefaultConfig(), Deps{
		Log: log, Registerer: reg, Route: way, Worker: "w1", Store: store, Events: events.NewLog(way, "w1", 100, log, reg), Handler: h,
		Source: cluster.Config{Name: "src", Bootstrap: []string{"localhost:1"}}, Target: cluster.Config{Name: "dst", Bootstrap: []string{"localhost:1"}},
	})
	require.NoError(t, err)
	return c
}

// one is topic t with one partition, whose checkpoint is stored.
func one(t *testing.T, c *Connector, change func(*offsets.Checkpoint)) (*pair, *partition) {
	t.Helper()
	return oneOf(t, c, "t", change)
}

// oneOf is one of another topic.
func oneOf(t *testing.T, c *Connector, topic string, change func(*offsets.Checkpoint)) (*pair, *partition) {
	t.Helper()
	p := route.Partition{Topic: topic}
	at := offsets.Checkpoint{Partition: p, SourceOffset: 5, TargetOffset: 5, Sequence: 5, ProducerID: 7, LeaderEpoch: -1, Opened: true, Writer: "w1"}
	if change != nil {
		change(&at)
	}
	require.NoError(t, c.deps.Store.Begin(t.Context(), nil, at))
	c.Add(p)
	align, err := c.deps.Handler.Align(topic, 1, 1)
	require.NoError(t, err)
	part := c.parts[p]
	meta := wire.TopicMetadata{Partitions: []wire.PartitionMetadata{{Replicas: []int32{0}}}}
	return &pair{topic: handler.Topic{Source: topic, Target: topic}, align: align, source: meta, target: meta, parts: []*partition{part}, replicas: 1}, part
}

// hook calls then once, when a line with some text is written.
type hook struct {
	text string
	then func()
}

func (h *hook) Write(line []byte) (int, error) {
	if then := h.then; then != nil && bytes.Contains(line, []byte(h.text)) {
		h.then = nil
		then()
	}
	return len(line), nil
}

// A partition that leaves in the moment in which it begins must not stay with the fetchers: the next lane of it would never get anything.
func TestPartitionThatLeavesWhileItBeginsIsNotFetched(t *testing.T) {
	t.Parallel()
	h := &hook{text: "the partition runs"}
	c := idle(t, h)
	pair, part := one(t, c, nil)
	part.told = true // so that its recovery is told
	h.then = func() { require.NoError(t, c.Offline(t.Context(), part.source)) }
	require.NoError(t, c.startTopic(t.Context(), pair))
	c.drains.Wait()
	require.Nil(t, h.then)
	require.Zero(t, reflect.ValueOf(c.fetchers.Fetchers).Elem().FieldByName("members").Len())
}

// After a clean end nothing is in flight behind the checkpoint, so a filter that was changed since duplicates nothing, and nothing of the kind
// is told.
func TestNewEpochBehindACleanEndIsNoDoubt(t *testing.T) {
	t.Parallel()
	c := idle(t, io.Discard)
	pair, part := one(t, c, func(at *offsets.Checkpoint) { at.Clean = true })
	pair.topic.Fingerprint = "1:changed"
	require.NoError(t, c.startTopic(t.Context(), pair))
	known, err := c.deps.Store.Load(t.Context(), []route.Partition{part.source})
	require.NoError(t, err)
	at := known[part.source]
	require.Equal(t, int16(1), at.ProducerEpoch)
	require.False(t, at.Clean)
	told := c.deps.Events.Since(0)
	require.Empty(t, told)
}
