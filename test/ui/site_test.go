package ui_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
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

// crew is a cluster of workers that is made up: what the API asks of a mirror and of a fleet, in memory. It does at once what it is told.
type crew struct {
	api.Fleet // what no call of the page needs

	log *events.Log

	mu      sync.Mutex
	parts   []api.Partition // guarded by mu, as all below
	workers []api.FleetWorker
}

// Snapshot gives a copy.
func (c *crew) Snapshot() api.Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	return api.Snapshot{State: api.StateMirroring, Partitions: slices.Clone(c.parts)}
}

// Excluded has none.
func (*crew) Excluded() []api.Excluded { return nil }

// WaitCaughtUp does not wait.
func (*crew) WaitCaughtUp(context.Context, string, int64) (int64, bool, error) { return 0, true, nil }

// Workers counts each worker's partitions.
func (c *crew) Workers() []api.FleetWorker {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := slices.Clone(c.workers)
	for i := range out {
		out[i].Rates = map[route.Partition]api.FleetRate{}
		for _, p := range c.parts {
			if p.Worker == out[i].ID {
				id := route.Partition{Topic: p.Topic, Partition: p.Partition}
				out[i].Partitions = append(out[i].Partitions, id)
				out[i].Rates[id] = api.FleetRate{Bytes: p.BytesPerSecond, Messages: p.RecordsPerSecond}
			}
		}
	}
	return out
}

// each changes the partitions that match, and fails if there are none.
func (c *crew) each(match func(*api.Partition) bool, change func(*api.Partition)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := false
	for i := range c.parts {
		if match(&c.parts[i]) {
			found = true
			change(&c.parts[i])
		}
	}
	if !found {
		return fmt.Errorf("%w: nothing is like that", api.ErrNotFound)
	}
	return nil
}

func only(p route.Partition) func(*api.Partition) bool {
	return func(q *api.Partition) bool { return q.Topic == p.Topic && q.Partition == p.Partition }
}

func paused(on bool) func(*api.Partition) {
	return func(p *api.Partition) {
		p.State = api.StateMirroring
		if on {
			p.State = api.StatePaused
		}
	}
}

// RetryDeadLetters finds none.
func (*crew) RetryDeadLetters(_ context.Context, topic string) (api.DeadLetters, error) {
	return api.DeadLetters{Topic: topic}, nil
}

// DeadLetters has none.
func (*crew) DeadLetters(context.Context, string) ([]api.DeadLetter, error) { return nil, nil }

// PauseTopic pauses at once.
func (c *crew) PauseTopic(_ context.Context, topic string, on bool) error {
	return c.each(func(p *api.Partition) bool { return p.Topic == topic }, paused(on))
}

// PausePartition pauses at once.
func (c *crew) PausePartition(_ context.Context, p route.Partition, on bool) error {
	return c.each(only(p), paused(on))
}

// Retry mends.
func (c *crew) Retry(_ context.Context, p route.Partition) error {
	return c.each(only(p), func(q *api.Partition) { q.State, q.Reason = api.StateMirroring, "" })
}

// Reset tells where to.
func (c *crew) Reset(_ context.Context, p route.Partition, to operator.Place) error {
	return c.each(only(p), func(*api.Partition) {
		c.log.Emit(events.Of(p, events.CheckpointOverridden, events.Warning, "an operator has set the position: "+to.String()))
	})
}

// Move moves at once.
func (c *crew) Move(_ context.Context, p route.Partition, worker string) error {
	return c.each(only(p), func(q *api.Partition) { q.Worker = worker })
}

// AddFromSource adds three partitions.
func (c *crew) AddFromSource(_ context.Context, topic string) (int32, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n := range int32(3) {
		c.parts = append(c.parts, api.Partition{Topic: topic, Partition: n, TargetTopic: topic, TargetPartition: n, State: api.StateStarting})
	}
	return 3, nil
}

// Delete removes at once.
func (c *crew) Delete(_ context.Context, topic string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.parts = slices.DeleteFunc(c.parts, func(p api.Partition) bool { return p.Topic == topic })
	return nil
}

// Drain marks.
func (c *crew) Drain(_ context.Context, worker string, on bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := slices.IndexFunc(c.workers, func(w api.FleetWorker) bool { return w.ID == worker })
	c.workers[at].Draining = on
	return nil
}

// Rebalance tells of it.
func (c *crew) Rebalance(context.Context) error {
	c.log.Emit(events.Event{Type: events.RebalanceStarted, Severity: events.Info, Message: "2 partitions get another owner"})
	return nil
}

// leads is the controller that leads a crew.
type leads struct{ crew *crew }

// Fleet is the crew.
func (l leads) Fleet() (api.Fleet, bool) { return l.crew, true }

// Leader is this process.
func (leads) Leader(context.Context) (id, address string) {
	return "controller-1", "http://controller-1:8080"
}

// standby is a controller that knows its leader and nothing else.
type standby struct{}

// Fleet is the leader's.
func (standby) Fleet() (api.Fleet, bool) { return nil, false }

// Leader is somewhere else.
func (standby) Leader(context.Context) (id, address string) {
	return "controller-1", "http://127.0.0.1:1"
}

// newCrew makes topics with partitions each, on three workers; with trouble, some of them are not well.
func newCrew(topics, partitions int, trouble bool) *crew {
	c := &crew{}
	for _, id := range []string{"mirror-1", "mirror-2", "mirror-3"} {
		c.workers = append(c.workers, api.FleetWorker{ID: id, Live: true})
	}
	for t := range topics {
		name := fmt.Sprintf("topic-%04d", t)
		for n := range partitions {
			p := api.Partition{
				Topic: name, Partition: int32(n), TargetTopic: "sjc1." + name, TargetPartition: int32(n), Worker: c.workers[(t+n)%3].ID, State: api.StateMirroring,
				Extent: api.Extent{SourceEnd: 1_000_000}, Acked: 999_990, LagRecords: 10, LagSeconds: .2, RecordsPerSecond: float64(100 + t%50), BytesPerSecond: float64(40_000 + 100*t), Path: "raw",
			}
			switch {
			case trouble && t == 1 && n == 2:
				p.State, p.Reason, p.LagRecords, p.LagSeconds = api.StateHalted, "MESSAGE_TOO_LARGE: a batch of 1204331 bytes; the target takes 1048588", 45_000, 340
				p.Acked, p.RecordsPerSecond, p.BytesPerSecond = 955_000, 0, 0
			case trouble && t == 3 && n < 2:
				p.State, p.Reason, p.LagSeconds = api.StateDegraded, "target broker 2: connection refused", 95
				p.Acked, p.LagRecords, p.RecordsPerSecond, p.BytesPerSecond = 991_000, 9000, 0, 0
			case trouble && t == 5:
				p.State, p.RecordsPerSecond, p.BytesPerSecond = api.StatePaused, 0, 0
			case trouble && t == 6 && n == 0:
				p.SourceEnd, p.LagRecords, p.LagSeconds = -1, -1, 0
			}
			c.parts = append(c.parts, p)
		}
	}
	return c
}

// serve runs the API's own server until the test ends, and gives the page's address.
func serve(t testing.TB, c *crew, role string, lead api.Leadership, token string) string {
	t.Helper()
	r := route.Route{Source: "sjc1", Target: "dca1", ID: "1"}
	reg := prometheus.NewRegistry()
	c.log = events.NewLog(r, "controller-1", 1000, hclog.NewNullLogger(), reg)
	c.log.Emit(events.Event{Type: events.WorkerLost, Severity: events.Warning, Message: "worker mirror-4 left or was lost"})
	c.log.Emit(events.Event{
		Type: events.RebalanceStarted, Severity: events.Info, Message: "16 partitions get another owner",
		Reason: "6 from mirror-4 to mirror-1 (owner_gone); 5 from mirror-4 to mirror-2 (owner_gone); 4 from mirror-4 to mirror-3 (owner_gone); topic-0002-3 from mirror-1 to mirror-3 (balance)",
	})
	c.log.Emit(events.Event{Type: events.RebalanceFinished, Severity: events.Info, Message: "16 partitions got another owner"})
	c.log.Emit(events.Of(route.Partition{Topic: "topic-0001", Partition: 2}, events.PartitionHalted, events.Error, "it stands still").Because("MESSAGE_TOO_LARGE"))
	cfg := api.DefaultConfig()
	if token != "" {
		cfg.TokenFile = filepath.Join(t.TempDir(), "token")
		require.NoError(t, os.WriteFile(cfg.TokenFile, []byte(token), 0o600))
	}
	deps := api.Deps{
		Log: hclog.NewNullLogger(), Mirror: c, Events: c.log, Registry: reg, Leadership: lead,
		Identity: api.Identity{Role: role, Version: "v1", Worker: "mirror-1", Route: r, Started: time.Now()},
	}
	if lead == nil {
		deps.Operator = c
	} else {
		peers := api.NewPeers("")
		t.Cleanup(peers.CloseIdleConnections)
		deps.Peers = peers
	}
	server, err := api.New(cfg, deps)
	require.NoError(t, err)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx, listener) }() // owned by the test, whose end waits for it
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-done)
	})
	return "http://" + listener.Addr().String()
}

// answers waits until an address serves.
func answers(t testing.TB, url string) {
	t.Helper()
	client := &http.Client{Timeout: time.Second}
	defer client.CloseIdleConnections()
	require.Eventually(t, func() bool {
		r, err := client.Get(strings.TrimSuffix(url, "/") + "/readyz")
		if err != nil {
			return false
		}
		defer r.Body.Close()
		return r.StatusCode == http.StatusOK
	}, time.Minute, 100*time.Millisecond)
}
