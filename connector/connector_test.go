package connector_test

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/cluster"
	"github.com/causeway-mirror/causeway/connector"
	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/handler"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/offsets/bolt"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// start runs a connector that copies each topic T to T-copy until stop is called; stop waits for its end.
func start(t *testing.T, src, dst []string, state string, change func(*connector.Config)) (c *connector.Connector, stop func()) {
	t.Helper()
	store, err := bolt.Open(state)
	require.NoError(t, err)
	return startOn(t, src, dst, store, change)
}

// startOn is start on a store, which stop closes.
func startOn(t *testing.T, src, dst []string, store offsets.Store, change func(*connector.Config)) (c *connector.Connector, stop func()) {
	t.Helper()
	c, _, stop = startWith(t, src, dst, store, change)
	return c, stop
}

// startWith is startOn with the events that the connector raises.
func startWith(t *testing.T, src, dst []string, store offsets.Store, change func(*connector.Config)) (c *connector.Connector, happened *events.Log, stop func()) {
	t.Helper()
	return startAs(t, src, dst, store, func(cfg *connector.Config, _ *handler.Config) {
		if change != nil {
			change(cfg)
		}
	})
}

// startAs is startWith with other ways of the handler, too.
func startAs(t *testing.T, src, dst []string, store offsets.Store, change func(*connector.Config, *handler.Config)) (
	c *connector.Connector, happened *events.Log, stop func(),
) {
	t.Helper()
	return startLogged(t, ends{src, dst}, store, testWriter{t}, change)
}

// ends are the brokers of both clusters.
type ends struct{ src, dst []string }

// startLogged is startAs with its log written elsewhere.
func startLogged(t *testing.T, at ends, store offsets.Store, out io.Writer, change func(*connector.Config, *handler.Config)) (
	c *connector.Connector, happened *events.Log, stop func(),
) {
	t.Helper()
	log := hclog.New(&hclog.LoggerOptions{Level: hclog.Debug, Output: out})
	cfg := connector.DefaultConfig()
	cfg.CommitInterval = 200 * time.Millisecond
	hc := handler.DefaultConfig()
	hc.Rename = "{topic}-copy"
	change(&cfg, &hc)
	h, err := handler.New(hc, "src", "dst")
	require.NoError(t, err)
	reg := prometheus.NewRegistry()
	r := route.Route{Source: "src", Target: "dst", ID: "1"}
	happened = events.NewLog(r, "w1", 100, log, reg)
	happened.Keep(store, offsets.MaxEvents)
	c, err = connector.New(cfg, connector.Deps{
		Log: log, Registerer: reg, Route: r, Worker: "w1", Store: store, Events: happened, Handler: h,
		Source: cluster.Config{Name: "src", Bootstrap: at.src}, Target: cluster.Config{Name: "dst", Bootstrap: at.dst},
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		require.NoError(t, <-done)
		require.NoError(t, store.Close())
	}
	t.Cleanup(stop)
	return c, happened, stop
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(b []byte) (int, error) {
	w.t.Logf("%s", b)
	return len(b), nil
}

func TestTopicIsCopiedAndResumed(t *testing.T) {
	t.Parallel()
	k := kafkatest.Shared(t, kafkatest.Kafka3)
	state := t.TempDir()
	k.CreateTopic(t, "copied", 3, nil)
	kafkatest.Load(t, k.Bootstrap(), kafkatest.LoadOptions{Topic: "copied", Records: 20_000, Headers: 2})
	parts := []route.Partition{{Topic: "copied", Partition: 0}, {Topic: "copied", Partition: 1}, {Topic: "copied", Partition: 2}}

	for round := range 3 {
		c, stop := start(t, k.Bootstrap(), k.Bootstrap(), state, nil)
		c.Add(parts...)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		require.Eventually(t, func() bool {
			_, ok, err := c.WaitCaughtUp(ctx, "copied", 0)
			return err == nil && ok
		}, 30*time.Second, 10*time.Millisecond)
		cancel()
		s := c.Status()
		t.Logf("round %d: %+v", round, s)
		stop()
		d := kafkatest.Compare(t, k.Bootstrap(), k.Bootstrap(), "copied", "copied-copy")
		require.True(t, d.Equal(), d.String())
		kafkatest.Load(t, k.Bootstrap(), kafkatest.LoadOptions{Topic: "copied", First: 20_000 + round*1000, Records: 1000})
	}
}
