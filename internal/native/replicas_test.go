package native

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/handler"
)

// TestHowManyMirrorAPartition holds which topics have standbys.
func TestHowManyMirrorAPartition(t *testing.T) {
	t.Parallel()
	f := Default()
	require.Equal(t, 1, f.Replicas("orders"))
	f.Route.Topics.Overrides = map[string]handler.TopicConfig{"orders": {Replicas: 2}, "clicks": {}}
	require.Equal(t, 2, f.Replicas("orders"))
	require.Equal(t, 1, f.Replicas("clicks"))
}
