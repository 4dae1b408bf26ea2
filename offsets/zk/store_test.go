package zk

import (
	"bytes"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	zookeeper "github.com/go-zookeeper/zk"
	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/offsets/storetest"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// places numbers the chroots, so that tests share a server and nothing else.
var places atomic.Int32

func newPlace() string { return "/place-" + strconv.Itoa(int(places.Add(1))) }

const group = "causeway-a-b"

// config is of a place on the shared server, and makes it.
func config(t testing.TB, place string) Config {
	t.Helper()
	other(t, place).set(place, "")
	cfg := DefaultConfig()
	cfg.Address, cfg.Group, cfg.SessionTimeout = kafkatest.SharedZooKeeper(t).Addr()+place, group, 5*time.Second
	return cfg
}

func open(t testing.TB, cfg Config) *Store {
	t.Helper()
	s, err := Open(t.Context(), cfg, hclog.NewNullLogger())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// others is a client that writes as operators and uReplicator do.
type others struct {
	t    testing.TB
	conn *zookeeper.Conn
	root string // of the group
}

func other(t testing.TB, place string) others {
	t.Helper()
	conn, states, err := zookeeper.Connect([]string{kafkatest.SharedZooKeeper(t).Addr()}, time.Minute, zookeeper.WithLogger(libraryLog{hclog.NewNullLogger()}))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	for e := range states { // it tries for as long as the test may run
		if e.State == zookeeper.StateHasSession {
			break
		}
	}
	return others{t, conn, place + "/consumers/" + group}
}

func (o others) plain(topic string, partition int) string {
	return o.root + "/offsets/" + topic + "/" + strconv.Itoa(partition)
}

func (o others) rest(topic string, partition int) string {
	return o.root + "/causeway/" + topic + "/" + strconv.Itoa(partition)
}

// set writes without condition, as they do, and makes what is missing.
func (o others) set(path, value string) {
	o.t.Helper()
	for i, c := range path {
		if c == '/' && i > 0 {
			_, err := o.conn.Create(path[:i], nil, 0, zookeeper.WorldACL(zookeeper.PermAll))
			if err != nil {
				require.ErrorIs(o.t, err, zookeeper.ErrNodeExists)
			}
		}
	}
	_, err := o.conn.Create(path, []byte(value), 0, zookeeper.WorldACL(zookeeper.PermAll))
	if err != nil {
		require.ErrorIs(o.t, err, zookeeper.ErrNodeExists)
		_, err = o.conn.Set(path, []byte(value), -1)
	}
	require.NoError(o.t, err)
}

func (o others) get(path string) string {
	o.t.Helper()
	data, _, err := o.conn.Get(path)
	require.NoError(o.t, err)
	return string(data)
}

func (o others) version(path string) int32 {
	o.t.Helper()
	_, stat, err := o.conn.Exists(path)
	require.NoError(o.t, err)
	return stat.Version
}

func (o others) remove(path string) {
	o.t.Helper()
	require.NoError(o.t, o.conn.Delete(path, -1))
}

func loadOne(t testing.TB, s *Store, topic string, partition int32) (offsets.Checkpoint, bool) {
	t.Helper()
	p := route.Partition{Topic: topic, Partition: partition}
	found, err := s.Load(t.Context(), []route.Partition{p})
	require.NoError(t, err)
	c, ok := found[p]
	return c, ok
}

func requireStored(t testing.TB, s *Store, want offsets.Checkpoint) {
	t.Helper()
	got, ok := loadOne(t, s, want.Partition.Topic, want.Partition.Partition)
	require.True(t, ok)
	require.True(t, got.Equal(want), "got %+v\nwant %+v", got, want)
}

func advanced(c offsets.Checkpoint, by route.Offset) offsets.Checkpoint {
	c.SourceOffset, c.TargetOffset, c.Sequence = c.SourceOffset+by, c.TargetOffset+by, c.Sequence+int32(by)
	return c
}

func TestStore(t *testing.T) {
	t.Parallel()
	kafkatest.Require(t)
	storetest.Run(t, func(t *testing.T) storetest.Open {
		t.Helper()
		cfg := config(t, newPlace())
		return func() offsets.Store {
			s, err := Open(t.Context(), cfg, hclog.NewNullLogger())
			require.NoError(t, err)
			return s
		}
	})
}

// A path with a slip of the pen used to be made, and looked like a store that holds nothing: everything was copied from the start.
func TestPathThatIsNotThereIsNoEmptyStore(t *testing.T) {
	t.Parallel()
	place := newPlace()
	cfg := config(t, place)
	cfg.Address += "/of-a-slip"
	var log bytes.Buffer
	s, err := Open(t.Context(), cfg, hclog.New(&hclog.LoggerOptions{Output: &log}))
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	c := storetest.Checkpoint("t", 0, 10)
	refused := func() {
		t.Helper()
		_, err := s.Load(t.Context(), []route.Partition{c.Partition})
		requireUnavailable(t, err)
		require.ErrorContains(t, err, place+"/of-a-slip: zookeeper has no such path")
		_, err = s.Route(t.Context())
		requireUnavailable(t, err)
		_, err = s.Events(t.Context())
		requireUnavailable(t, err)
		requireUnavailable(t, s.Begin(t.Context(), nil, c))
		requireUnavailable(t, s.SaveRoute(t.Context(), offsets.NoRoute()))
		requireUnavailable(t, s.SaveEvent(t.Context(), []byte("{}")))
	}
	refused()
	o := other(t, place)
	found, _, err := o.conn.Exists(place + "/of-a-slip")
	require.NoError(t, err)
	require.False(t, found, "made by a reader")
	require.Equal(t, 1, strings.Count(log.String(), "positions can be neither read nor stored"))

	o.set(place+"/of-a-slip", "")
	require.NoError(t, s.Begin(t.Context(), nil, c), "it is waited for")
	requireStored(t, s, c)
	for _, node := range []string{"/causeway/t/0", "/causeway/t", "/causeway", "/offsets/t/0", "/offsets/t", "/offsets", ""} {
		o.remove(place + "/of-a-slip/consumers/" + group + node)
	}
	o.remove(place + "/of-a-slip/consumers")
	o.remove(place + "/of-a-slip")
	refused()
	require.ErrorIs(t, s.Save(t.Context(), []offsets.Checkpoint{advanced(c, 1)}), offsets.ErrUnavailable, "removed while it is used")
}
