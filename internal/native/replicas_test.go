package native

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/handler"
)

// TestWhoMayHaveAPartitionAtOnce holds which topics two workers may have at the same time.
func TestWhoMayHaveAPartitionAtOnce(t *testing.T) {
	t.Parallel()
	f := Default()
	require.False(t, f.Shared("orders"))
	require.Equal(t, 1, f.Replicas("orders"))
	f.Route.Topics.Overrides = map[string]handler.TopicConfig{"orders": {Replicas: 2}, "clicks": {}}
	require.True(t, f.Shared("orders"))
	require.False(t, f.Shared("clicks"))
	require.Equal(t, 2, f.Replicas("orders"))
	f = Default()
	f.Controller.Rebalance.Handover = HandoverOverlap
	require.True(t, f.Shared("clicks"), "while it moves")
}
