package fetcher

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/causeway-mirror/causeway/batch"
	"github.com/causeway-mirror/causeway/cluster"
	"github.com/causeway-mirror/causeway/internal/slab"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/wire"
)

const patience = 20 * time.Second

// fakeLane keeps what it gets and complains about whatever a lane must not see.
type fakeLane struct {
	mu         sync.Mutex
	position   route.Offset
	epoch      int32 // of what is right before the position
	generation uint32
	room       int32
	values     []string
	wants      int
	appends    int
	bytes      int64
	faults     []*route.Fault
	extent     route.Extent
	wrong      []string
	closed     bool         // no call may come any more
	inAppend   func()       // called at the begin of Append, without the lock
	keep       []*slab.Slab // retained when keeping
	keeping    bool
	reader     batch.Reader
	blind      bool // do not decode
}

func newLane(from route.Offset) *fakeLane {
	return &fakeLane{position: from, epoch: -1, room: 1 << 20, generation: 1}
}

func (l *fakeLane) Want() (route.Position, uint32, int32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wants++
	l.called("Want")
	return route.Position{Offset: l.position, LeaderEpoch: l.epoch}, l.generation, l.room
}

func (l *fakeLane) called(what string) {
	if l.closed {
		l.wrong = append(l.wrong, what+" after Remove")
	}
}

func (l *fakeLane) Append(generation uint32, s *slab.Slab, batches []batch.Batch, at route.Position, x route.Extent) {
	if l.inAppend != nil {
		l.inAppend()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.called("Append")
	if generation != l.generation {
		return
	}
	l.appends++
	l.extent = x
	if (s == nil) != (len(batches) == 0) {
		l.wrong = append(l.wrong, "slab and batches do not go together")
	}
	floor, next := l.position, at.Offset
	for i, b := range batches {
		if b.NextOffset() <= floor || i > 0 && b.BaseOffset() < floor {
			l.wrong = append(l.wrong, fmt.Sprintf("batch %d..%d at position %d", b.BaseOffset(), b.LastOffset(), floor))
		}
		if b.Control() || b.Records() == 0 {
			l.wrong = append(l.wrong, fmt.Sprintf("batch %d must not be forwarded", b.BaseOffset()))
		}
		l.bytes += int64(len(b))
		if !l.blind {
			l.decode(b)
		}
		floor = b.NextOffset()
		if l.keeping {
			s.Retain(1)
			l.keep = append(l.keep, s)
		}
	}
	if next < floor || next <= l.position {
		l.wrong = append(l.wrong, fmt.Sprintf("next %d after %d at position %d", next, floor, l.position))
	}
	l.position, l.epoch = next, at.LeaderEpoch
}

func (l *fakeLane) decode(b batch.Batch) {
	if err := l.reader.Reset(b); err != nil {
		l.wrong = append(l.wrong, err.Error())
		return
	}
	for {
		r, err := l.reader.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			l.wrong = append(l.wrong, err.Error())
			return
		}
		if r.Offset >= l.position {
			l.values = append(l.values, string(r.Value))
		}
	}
}

func (l *fakeLane) Extent(x route.Extent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.called("Extent")
	l.extent = x
}

func (l *fakeLane) Fail(generation uint32, f *route.Fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.called("Fail")
	if generation == l.generation {
		l.faults = append(l.faults, f)
	}
}

// with runs fn under the lane's lock.
func (l *fakeLane) with(fn func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fn()
}

func (l *fakeLane) count() (n int) {
	l.with(func() { n = len(l.values) })
	return n
}

func (l *fakeLane) fault() (f *route.Fault) {
	l.with(func() {
		if n := len(l.faults); n > 0 {
			f = l.faults[n-1]
		}
	})
	return f
}

// rig is fetchers on a cluster.
type rig struct {
	t      testing.TB
	addrs  []string
	f      *Fetchers
	cl     *kgo.Client // of produce
	budget *slab.Budget
	lanes  []*fakeLane
	stop   context.CancelFunc
	done   chan struct{}
}

func fast() Config {
	c := DefaultConfig()
	c.Fetchers = 2
	c.ColdWait, c.ColdAfter, c.RetryMax = 100*time.Millisecond, 200*time.Millisecond, 200*time.Millisecond
	c.MetadataMin, c.GoneAfter, c.RequestTimeout = 10*time.Millisecond, 500*time.Millisecond, 3*time.Second
	c.RecreatedAfter = 50 * time.Millisecond
	return c
}

func newKfake(t testing.TB, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	kc, err := kfake.NewCluster(opts...)
	require.NoError(t, err)
	t.Cleanup(kc.Close)
	return kc
}

func newRig(t testing.TB, kc *kfake.Cluster, cfg Config, budgetBytes int64) *rig {
	t.Helper()
	return newRigAt(t, kc.ListenAddrs(), cfg, budgetBytes)
}

func newRigAt(t testing.TB, addrs []string, cfg Config, budgetBytes int64) *rig {
	t.Helper()
	r := &rig{t: t, addrs: addrs}
	require.NoError(t, cfg.Validate())
	wcfg := wire.DefaultConfig()
	wcfg.RedialBackoff, wcfg.RedialLimit = 10*time.Millisecond, 100*time.Millisecond
	client, err := wire.New(cluster.Config{Name: "source", Bootstrap: addrs}, wcfg, hclog.NewNullLogger())
	require.NoError(t, err)
	r.budget = slab.NewBudget(budgetBytes)
	pool := slab.NewPool(r.budget, 1<<20)
	if _, bench := t.(*testing.B); !bench {
		pool.Poison()
	}
	r.f = New(cfg, Deps{Client: client, Pool: pool, Log: hclog.NewNullLogger(), Route: "@a@b@1"})
	ctx, cancel := context.WithCancel(context.Background())
	r.stop, r.done = cancel, make(chan struct{})
	go func() { // owned by the cleanup below
		defer close(r.done)
		_ = r.f.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-r.done
		client.Close()
		for _, l := range r.lanes {
			for _, s := range l.keep {
				s.Release()
			}
			require.Empty(t, l.wrong)
		}
		require.Zero(t, r.budget.Used(), "budget not given back")
	})
	return r
}

func (r *rig) add(topic string, partition int32, l *fakeLane) *fakeLane {
	r.lanes = append(r.lanes, l)
	r.f.Add(route.Partition{Topic: topic, Partition: partition}, route.TopicID{}, l)
	return l
}

func (r *rig) wake(topic string, partition int32) {
	r.f.Wake(route.Partition{Topic: topic, Partition: partition})
}

func (r *rig) client(opts ...kgo.Opt) *kgo.Client {
	r.t.Helper()
	return newKgo(r.t, r.addrs, opts...)
}

func newKgo(t testing.TB, addrs []string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append(opts, kgo.SeedBrokers(addrs...), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	require.NoError(t, err)
	t.Cleanup(cl.Close)
	return cl
}

// produce writes n numbered records, one batch each.
func (r *rig) produce(topic string, partition int32, from, n int) {
	r.t.Helper()
	if r.cl == nil {
		r.cl = r.client()
	}
	for i := from; i < from+n; i++ {
		rec := &kgo.Record{Topic: topic, Partition: partition, Value: []byte(value(i))}
		require.NoError(r.t, r.cl.ProduceSync(context.Background(), rec).FirstErr())
	}
}

func value(i int) string { return fmt.Sprintf("value-%d", i) }

func values(from, n int) []string {
	var vs []string
	for i := from; i < from+n; i++ {
		vs = append(vs, value(i))
	}
	return vs
}

func eventually(t testing.TB, ok func() bool, what string) {
	t.Helper()
	require.Eventually(t, ok, patience, 2*time.Millisecond, what)
}

func (l *fakeLane) requireValues(t testing.TB, want []string) {
	t.Helper()
	eventually(t, func() bool { return l.count() >= len(want) }, fmt.Sprintf("expected %d records", len(want)))
	l.with(func() {
		require.Equal(t, want, l.values)
		require.Empty(t, l.wrong)
	})
}
