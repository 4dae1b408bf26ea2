package connector_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/causeway-mirror/causeway/connector"
	"github.com/causeway-mirror/causeway/operator"
)

// outage is two clusters, of which the target can be away, and a mirror between them with a folder to spill to.
type outage struct {
	t              *testing.T
	source, target *kfake.Cluster
	cl             *kgo.Client
	away           atomic.Bool
	state, dir     string
	made           int // records
}

const outageRecord = 10 << 10

func newOutage(t *testing.T) *outage {
	t.Helper()
	o := &outage{t: t, state: t.TempDir(), dir: filepath.Join(t.TempDir(), "spill")}
	for name, at := range map[string]**kfake.Cluster{"source": &o.source, "target": &o.target} {
		kc, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.ClusterID(name), kfake.SeedTopics(1, "orders"))
		require.NoError(t, err)
		t.Cleanup(kc.Close)
		*at = kc
	}
	o.target.Control(func(kmsg.Request) (kmsg.Response, error, bool) {
		o.target.KeepControl()
		if o.away.Load() {
			return nil, errors.New("away"), true
		}
		return nil, nil, false
	})
	var err error
	o.cl, err = kgo.NewClient(kgo.SeedBrokers(o.source.ListenAddrs()...), kgo.DefaultProduceTopic("orders"), kgo.ProducerBatchMaxBytes(1<<17),
		kgo.ProducerBatchCompression(kgo.NoCompression()))
	require.NoError(t, err)
	t.Cleanup(o.cl.Close)
	return o
}

func (o *outage) start(change func(*connector.Config)) (c *connector.Connector, stop func()) {
	o.t.Helper()
	return start(o.t, o.source.ListenAddrs(), o.target.ListenAddrs(), o.state, func(cfg *connector.Config) {
		cfg.MemoryBytes, cfg.ShutdownTimeout = 64<<20, 2*time.Second
		cfg.Spill.Dir, cfg.Spill.MaxBytes, cfg.Spill.SyncInterval = o.dir, 1<<30, 50*time.Millisecond
		cfg.Spill.Limits.OverflowTimeout = 100 * time.Millisecond
		if change != nil {
			change(cfg)
		}
	})
}

// produce appends n records whose values count on.
func (o *outage) produce(n int) {
	o.t.Helper()
	var rs []*kgo.Record
	for range n {
		v := make([]byte, outageRecord)
		copy(v, fmt.Sprintf("%08d", o.made))
		for i := 8; i < len(v); i++ {
			v[i] = byte(i * o.made >> 3)
		}
		rs = append(rs, &kgo.Record{Value: v})
		o.made++
	}
	produce(o.t, o.cl, rs...)
}

// spilled is how much lies on disk.
func (o *outage) spilled() (bytes int64) {
	_ = filepath.WalkDir(o.dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			if info, err := e.Info(); err == nil {
				bytes += info.Size()
			}
		}
		return nil
	})
	return bytes
}

func (o *outage) awaitSpilled(records int) {
	o.t.Helper()
	require.Eventually(o.t, func() bool { return o.spilled() > int64(records)*outageRecord }, 60*time.Second, 20*time.Millisecond, "not on disk")
}

// expire deletes all that the source has.
func (o *outage) expire() {
	o.t.Helper()
	adm := kadm.NewClient(o.cl)
	ends, err := adm.ListEndOffsets(o.t.Context(), "orders")
	require.NoError(o.t, err)
	_, err = adm.DeleteRecords(o.t.Context(), ends.Offsets())
	require.NoError(o.t, err)
	starts, err := adm.ListStartOffsets(o.t.Context(), "orders")
	require.NoError(o.t, err)
	at, _ := starts.Lookup("orders", 0)
	require.Equal(o.t, int64(o.made), at.Offset, "the source kept something")
}

// exact reads the target: everything is there, in order, once.
func (o *outage) exact() {
	o.t.Helper()
	require.Eventually(o.t, func() bool {
		info := o.target.PartitionInfo("orders-copy", 0)
		return info != nil && info.HighWatermark >= int64(o.made)
	}, 60*time.Second, 20*time.Millisecond, "not all arrived")
	require.Equal(o.t, int64(o.made), o.target.PartitionInfo("orders-copy", 0).HighWatermark)
	cl, err := kgo.NewClient(kgo.SeedBrokers(o.target.ListenAddrs()...), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{
		"orders-copy": {0: kgo.NewOffset().At(0)},
	}))
	require.NoError(o.t, err)
	defer cl.Close()
	ctx, cancel := context.WithTimeout(o.t.Context(), 60*time.Second)
	defer cancel()
	for n := 0; n < o.made; {
		fetches := cl.PollFetches(ctx)
		require.NoError(o.t, ctx.Err())
		fetches.EachRecord(func(r *kgo.Record) {
			require.Equal(o.t, fmt.Sprintf("%08d", n), string(r.Value[:8]))
			require.Equal(o.t, byte((outageRecord-1)*n>>3), r.Value[outageRecord-1])
			n++
		})
	}
}

// Without a folder to spill to, what the source deletes in an outage of the target is lost.
func TestOutageOfTheTargetOutlastsTheSource(t *testing.T) {
	t.Parallel()
	o := newOutage(t)
	o.produce(50)
	c, stop := o.start(nil)
	c.Add(parts("orders", 1)...)
	o.exact()
	o.away.Store(true)
	o.produce(1500)
	o.awaitSpilled(1500)
	o.expire()
	o.away.Store(false)
	o.exact()
	o.produce(50)
	o.exact()
	require.Eventually(t, func() bool { return o.spilled() == 0 }, 20*time.Second, 20*time.Millisecond, "kept what is stored as copied")
	stop()
	entries, err := os.ReadDir(o.dir)
	require.NoError(t, err)
	for _, e := range entries {
		require.False(t, e.IsDir(), e.Name())
	}
}

// A worker that was started again while the target was away used to wait for the target before it read on.
func TestOutageOfTheTargetOutlastsTheSourceAndTheWorker(t *testing.T) {
	t.Parallel()
	o := newOutage(t)
	o.produce(50)
	c, stop := o.start(nil)
	c.Add(parts("orders", 1)...)
	o.exact()
	o.away.Store(true)
	o.produce(700)
	o.awaitSpilled(700)
	o.expire()
	stop()
	o.produce(700)
	c, stop = o.start(nil)
	c.Add(parts("orders", 1)...)
	o.awaitSpilled(1400)
	o.expire()
	o.away.Store(false)
	o.exact()
	stop()
}

// What is on disk at any moment does for a process that is started on it, as it is after a kill.
func TestOutageOfTheTargetOutlastsTheSourceAndAKilledWorker(t *testing.T) {
	t.Parallel()
	o := newOutage(t)
	o.produce(50)
	c, stop := o.start(nil)
	c.Add(parts("orders", 1)...)
	o.exact()
	o.away.Store(true)
	o.produce(700)
	o.awaitSpilled(700)
	state, dir := t.TempDir(), t.TempDir()
	require.NoError(t, os.CopyFS(state, os.DirFS(o.state)))
	require.NoError(t, os.CopyFS(dir, os.DirFS(o.dir)))
	stop()
	o.expire()
	o.state, o.dir = state, dir
	c, stop = o.start(nil)
	c.Add(parts("orders", 1)...)
	o.away.Store(false)
	o.exact()
	stop()
}

// A worker that was started while the target was away read as fast as the source gave, and went on when its topic was paused.
func TestOutageOfTheTargetHeedsLimitsAndPausesBeforeThereIsALane(t *testing.T) {
	t.Parallel()
	o := newOutage(t)
	o.produce(50)
	c, stop := o.start(nil)
	c.Add(parts("orders", 1)...)
	o.exact()
	stop()
	o.away.Store(true)
	o.produce(1500)
	const perSecond = 4 << 20
	begun := time.Now()
	c, stop = o.start(func(cfg *connector.Config) { cfg.Limits.BytesPerSecond = perSecond })
	c.Add(parts("orders", 1)...)
	o.awaitSpilled(1500)
	const atOnce = 4 << 20 // the largest answer
	require.Greater(t, time.Since(begun).Seconds(), float64(1500*outageRecord-2*atOnce)/perSecond)
	c.Configure("orders", operator.Topic{Settings: operator.Settings{Paused: true}})
	o.produce(100)
	require.Never(t, func() bool { return o.spilled() > 1600*outageRecord }, 3*time.Second, 100*time.Millisecond, "is paused, and was read on")
	c.Configure("orders", operator.Topic{})
	o.awaitSpilled(1600)
	o.away.Store(false)
	o.exact()
	stop()
}
