package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/handler"
	"github.com/causeway-mirror/causeway/internal/conf"
	"github.com/causeway-mirror/causeway/internal/native"
	"github.com/causeway-mirror/causeway/mirror"
)

func TestConnectorConfig(t *testing.T) {
	t.Parallel()
	f := native.Default()
	f.Route.On["diverged"], f.Route.On["refused"] = "recopy", "skip"
	f.Route.Start, f.Worker.InFlight, f.Worker.Memory = "24h", "4MiB", conf.Bytes(1<<30)
	c, err := Config(&f, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	require.NoError(t, err)
	require.Equal(t, "2026-01-01T03:04:05Z", c.Start)
	require.Equal(t, int64(4<<20), c.InFlightBytes)
	require.Equal(t, int64(1<<30), c.MemoryBytes)
	require.Equal(t, mirror.Policies{Truncated: mirror.Continue, Recreated: mirror.Continue, Diverged: mirror.Recopy, Deleted: mirror.Halt, TargetLost: mirror.Halt, ForeignWriter: mirror.Continue, Oversized: mirror.Halt, Refused: mirror.Skip}, c.On)
	require.Equal(t, "{topic}.dead-letter", c.DeadLetter)
	require.Equal(t, f.Spill(), c.Spill)
	require.NoError(t, c.Validate())
}

// What the file's check called valid, the worker refused at its start.
func TestFileThatIsValidIsNotRefusedByTheConnector(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(w *native.Worker){
		"ack window":              func(w *native.Worker) { w.AckWindow = 10_000 },
		"ack window too large":    func(w *native.Worker) { w.AckWindow = 10_001 },
		"no ack window":           func(w *native.Worker) { w.AckWindow = 0 },
		"commit interval":         func(w *native.Worker) { w.CommitInterval = conf.Duration(10 * time.Millisecond) },
		"commit interval too low": func(w *native.Worker) { w.CommitInterval = conf.Duration(10*time.Millisecond - 1) },
		"memory":                  func(w *native.Worker) { w.Memory = 64 << 20 },
		"memory too low":          func(w *native.Worker) { w.Memory = 64<<20 - 1 },
		"no streams":              func(w *native.Worker) { w.Streams = 0 },
		"no fetchers":             func(w *native.Worker) { w.Fetchers = 0 },
		"no time for the end":     func(w *native.Worker) { w.ShutdownTimeout = 0 },
		"in flight":               func(w *native.Worker) { w.InFlight = "1" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := native.Default()
			change(&f.Worker)
			c, err := Config(&f, time.Now())
			require.NoError(t, err)
			require.Equal(t, c.Validate() == nil, f.ValidateWorker() == nil, "%v, but %v", f.ValidateWorker(), c.Validate())
		})
	}
}

// TestWhoMayHaveAPartitionAtOnce holds which topics two workers may have at the same time.
func TestWhoMayHaveAPartitionAtOnce(t *testing.T) {
	t.Parallel()
	f := native.Default()
	of := company(&f)
	require.Equal(t, mirror.Alone, of("orders"))
	f.Controller.Rebalance.Handover = native.HandoverOverlap
	require.Equal(t, mirror.FormerOwner, of("orders"))
	f.Route.Topics.Overrides = map[string]handler.TopicConfig{"orders": {Replicas: 2}}
	require.Equal(t, mirror.Standby, of("orders"))
	require.Equal(t, mirror.FormerOwner, of("clicks"))
}
