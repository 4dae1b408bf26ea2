package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
	require.Equal(t, mirror.Policies{Truncated: mirror.Continue, Recreated: mirror.Continue, Diverged: mirror.Recopy, Oversized: mirror.Halt, Refused: mirror.Skip}, c.On)
	require.Equal(t, "{topic}.dead-letter", c.DeadLetter)
	require.NoError(t, c.Validate())
}
