package cluster_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/helix"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// session is the workers' session timeout: short, or tests of its end would take long.
const session = 4 * time.Second

// lab is a cluster of workers: brokers, a ZooKeeper, and a controller in the test's process that does what assign says.
type lab struct {
	kafka     *kafkatest.Cluster
	zookeeper *kafkatest.ZooKeeper // nil where there are several
	servers   string               // of ZooKeeper, as a client takes them
	cluster   string               // also the group
	session   *helix.Session
	admin     *helix.Admin
}

func newLab(t *testing.T) *lab {
	t.Helper()
	return newLabOn(t, kafkatest.SharedZooKeeper(t))
}

// newLabOn is newLab on a ZooKeeper of the test's own.
func newLabOn(t *testing.T, zookeeper *kafkatest.ZooKeeper) *lab {
	t.Helper()
	l := &lab{
		kafka: kafkatest.Shared(t, kafkatest.Kafka3), zookeeper: zookeeper,
		cluster: strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-")),
	}
	l.servers = l.zookeeper.Addr()
	l.lead(t)
	return l
}

// setUp makes the cluster.
func (l *lab) setUp(t *testing.T) (cfg helix.Config, log hclog.Logger) {
	t.Helper()
	cfg = helix.Config{ZooKeeper: l.servers, Cluster: helix.Cluster(l.cluster), SessionTimeout: time.Minute}
	log = hclog.New(&hclog.LoggerOptions{Level: hclog.Warn, Output: testLog{t}})
	var err error
	l.session, err = helix.Open(t.Context(), cfg, log)
	require.NoError(t, err)
	t.Cleanup(l.session.Close)
	l.admin = helix.NewAdmin(l.session, cfg.Cluster)
	require.NoError(t, l.admin.CreateCluster(t.Context(), map[string]string{"allowParticipantAutoJoin": "true"}))
	return cfg, log
}

// lead sets the cluster up and has it controlled until the test ends.
func (l *lab) lead(t *testing.T) {
	t.Helper()
	cfg, log := l.setUp(t)
	leading := helix.DefaultControllerConfig()
	leading.Config, leading.Name = cfg, "controller"
	c := helix.NewController(leading, helix.ControllerDeps{
		Log: log, Registerer: prometheus.NewRegistry(),
		Lead: func(ctx context.Context, _ *helix.Term) error { <-ctx.Done(); return nil },
	})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }() // owned by the test: the cleanup waits for it
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
}

// brokers are the addresses for the programs under test, as a YAML list has them. Where the cluster has proxies, they go through them.
func (l *lab) brokers() string {
	if all := l.kafka.ProxyBootstrap(); len(all) > 0 {
		return strings.Join(all, ", ")
	}
	return strings.Join(l.kafka.Bootstrap(), ", ")
}

type testLog struct{ t *testing.T }

func (l testLog) Write(text []byte) (int, error) {
	l.t.Logf("%s", text)
	return len(text), nil
}

// assign gives all partitions of a topic to a worker; empty: to nobody.
func (l *lab) assign(t *testing.T, topic string, partitions int, id string) {
	t.Helper()
	set := func(is *helix.IdealState) error {
		for p := range partitions {
			name := strconv.Itoa(p)
			is.Unassign(name)
			if id != "" {
				is.Assign(name, id, helix.Online)
			}
		}
		return nil
	}
	err := l.admin.UpdateIdealState(t.Context(), topic, set)
	if err == nil {
		return
	}
	require.ErrorIs(t, err, helix.ErrNotFound)
	is := helix.NewIdealState(topic, partitions, 1)
	require.NoError(t, set(is))
	require.NoError(t, l.admin.AddResource(t.Context(), is))
}

// live says whether a worker is a member.
func (l *lab) live(t *testing.T, id string) bool {
	t.Helper()
	found, _, err := l.session.Exists(t.Context(), "/"+l.cluster+"/LIVEINSTANCES/"+id, nil)
	require.NoError(t, err)
	return found
}

func (l *lab) awaitGone(t *testing.T, id string) {
	t.Helper()
	require.Eventually(t, func() bool { return !l.live(t, id) }, 20*time.Second, 5*time.Millisecond, "%s stays alive", id)
}

// awaitStates waits until all partitions of a topic are reported by a worker as being in a state.
func (l *lab) awaitStates(t *testing.T, topic string, partitions int, id string, state helix.State) {
	t.Helper()
	require.Eventually(t, func() bool {
		states, err := l.admin.CurrentStates(t.Context(), id, topic)
		if err != nil {
			return false
		}
		n := 0
		for _, s := range states {
			if s == state {
				n++
			}
		}
		return n == partitions
	}, 30*time.Second, 10*time.Millisecond, "%s: not %d partitions %s on %s", topic, partitions, state, id)
}

// stored is the plain offset of a partition; empty if there is none.
func (l *lab) stored(t *testing.T, topic string, partition int) string {
	t.Helper()
	data, _, err := l.session.Get(t.Context(), l.offsetPath(topic, partition), nil)
	if err != nil {
		require.ErrorIs(t, err, helix.ErrNotFound)
	}
	return string(data)
}

func (l *lab) offsetPath(topic string, partition int) string {
	return "/consumers/" + l.cluster + "/offsets/" + topic + "/" + strconv.Itoa(partition)
}

// requireCopy fails unless the copy has each record once, in order, and at least so many.
func (l *lab) requireCopy(t *testing.T, topic string, least int64) {
	t.Helper()
	d := kafkatest.Compare(t, l.kafka.Bootstrap(), l.kafka.Bootstrap(), topic, topic+".copy")
	t.Log(topic, d.String())
	require.True(t, d.Equal(), d.String())
	require.GreaterOrEqual(t, d.Records, least)
}

// feed writes to a topic until it is ended.
type feed struct {
	stop    context.CancelFunc
	ended   chan struct{}
	written int64 // after ended
	err     error // after ended
}

func (l *lab) startFeed(t *testing.T, topic string, rate int) *feed {
	t.Helper()
	stopping, stop := context.WithCancel(t.Context())
	f := &feed{stop: stop, ended: make(chan struct{})}
	ctx := context.WithoutCancel(t.Context()) // a turn that has begun is finished, so that the source is complete
	go func() {                               // owned by the feed: end and the cleanup wait for it
		defer close(f.ended)
		for turn := 0; stopping.Err() == nil && f.err == nil; turn++ {
			var res kafkatest.LoadResult
			res, f.err = kafkatest.Generate(ctx, l.kafka.Bootstrap(), kafkatest.LoadOptions{
				Topic: topic, First: turn * rate, Records: rate, Rate: rate, BatchBytes: []int{2 << 10, 64 << 10}[turn%2],
				Linger: 20 * time.Millisecond, // a batch a record would be the brokers' work alone
			})
			f.written += res.Committed
		}
	}()
	t.Cleanup(func() {
		stop()
		<-f.ended
	})
	return f
}

// end ends the feed after its turn and returns how many records it wrote.
func (f *feed) end(t *testing.T) int64 {
	t.Helper()
	f.stop()
	<-f.ended
	require.NoError(t, f.err)
	return f.written
}
