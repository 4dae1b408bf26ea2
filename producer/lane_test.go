package producer

import (
	"context"
	"encoding/binary"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/batch"
	"github.com/causeway-mirror/causeway/cluster"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/wire"
)

// fakeLane has numbered batches. After a fault it asks, and begins again behind the last acknowledged one.
type fakeLane struct {
	slot *Slot
	size int

	mu      sync.Mutex
	asking  bool
	asks    bool // an inquiry is under way
	ready   int
	sent    int
	acked   int
	flying  []int
	faults  []*route.Fault
	hints   int
	most    int // unanswered at once
	all     int // answers with acks=all
	sentAll int
	some    bool // wants acks=1
	wrong   string

	answering func() // called in Answer

	question offsets.Question // 0 = AskProducer
	hint     offsets.Hint     // the last
	unread   []*route.Fault   // answers to inquiries
}

func (l *fakeLane) Next() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.asking && !l.asks:
		return -1
	case l.asking || l.sent == l.ready:
		return 0
	}
	return l.size
}

func (l *fakeLane) Take() (batch.Batch, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.asking || l.sent == l.ready {
		return nil, false
	}
	l.flying = append(l.flying, l.sent)
	l.most = max(l.most, len(l.flying))
	b := make([]byte, l.size)
	binary.BigEndian.PutUint64(b, uint64(l.sent))
	l.sent++
	l.slot.Wake() // as if more had become ready in this moment, while the request is being built
	return b, !l.some
}

func (l *fakeLane) SentAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sentAll++
}

func (l *fakeLane) Answer(all bool, base route.Offset, f *route.Fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.flying) == 0 {
		l.wrong = "answer to nothing"
		return
	}
	n := l.flying[0]
	l.flying = l.flying[1:]
	if l.answering != nil {
		l.answering()
	}
	if all {
		l.all++
	}
	switch {
	case f != nil:
		l.faults = append(l.faults, f)
		l.asking = true
	case !l.asking:
		if base != route.Offset(n) {
			l.wrong = "answer of another batch"
		}
		l.acked = n + 1
	}
	if l.asking && len(l.flying) == 0 {
		l.sent = l.acked
		l.slot.Wake()
	}
}

func (l *fakeLane) Inquiry() (q offsets.Inquiry, due time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.asking || l.asks || len(l.flying) > 0 {
		return q, due
	}
	l.asks = true
	return offsets.Inquiry{Question: max(l.question, offsets.AskProducer), ProducerID: 7}, due
}

func (l *fakeLane) Hint(h offsets.Hint, f *route.Fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asks = false
	l.hints++
	l.asking, l.hint = f != nil, h
	if f != nil {
		l.unread = append(l.unread, f)
	}
	l.slot.Wake()
}

// add makes n more batches ready.
func (l *fakeLane) add(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ready += n
	l.slot.Wake()
}

func (l *fakeLane) look(fn func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fn()
}

func (l *fakeLane) done() (done bool) {
	l.look(func() { done = l.acked == l.ready && len(l.flying) == 0 })
	return done
}

// rig is a producer that runs against a target.
type rig struct {
	t    testing.TB
	k    *target
	p    *Producer
	reg  *prometheus.Registry
	stop func()
}

func newRig(t testing.TB, brokers int, change func(*Config)) *rig {
	t.Helper()
	k := newTarget(t, brokers)
	cfg := DefaultConfig()
	cfg.RequestTimeout = 5 * time.Second
	if change != nil {
		change(&cfg)
	}
	require.NoError(t, cfg.Validate())
	wcfg := wire.DefaultConfig()
	wcfg.RedialBackoff, wcfg.RedialLimit = 5*time.Millisecond, 50*time.Millisecond
	client, err := wire.New(cluster.Config{Name: "target", Bootstrap: k.addrs}, wcfg, hclog.NewNullLogger())
	require.NoError(t, err)
	reg := prometheus.NewPedanticRegistry()
	r := &rig{t: t, k: k, reg: reg, p: New(cfg, Deps{Client: client, Log: hclog.NewNullLogger(), Registerer: reg, Route: "@a@b@1"})}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.p.Run(ctx) }() // owned by stop
	r.stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-ended)
		client.Close()
	})
	t.Cleanup(r.stop)
	return r
}

// lane attaches a lane that writes to a partition led by a broker.
func (r *rig) lane(part, leader int32) *fakeLane {
	l := r.unattached(part, leader)
	l.slot.Attach(l)
	return l
}

func (r *rig) unattached(part, leader int32) *fakeLane {
	p := route.Partition{Topic: "t", Partition: part}
	r.k.with(func() { r.k.leaders[p] = leader })
	return &fakeLane{slot: r.p.Slot(p), size: 100, asking: true}
}

func eventually(t testing.TB, ok func() bool, what string) {
	t.Helper()
	require.Eventually(t, ok, 20*time.Second, time.Millisecond, what)
}

func (r *rig) finish(lanes ...*fakeLane) {
	r.t.Helper()
	for _, l := range lanes {
		eventually(r.t, l.done, "a lane does not come to its end")
		require.Empty(r.t, l.wrong)
	}
}
