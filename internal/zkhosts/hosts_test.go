package zkhosts

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHostsAreTriedInTurn(t *testing.T) {
	t.Parallel()
	var h Hosts
	require.NoError(t, h.Init([]string{"a", "b"}))
	require.Equal(t, 2, h.Len())
	next := func(want string, rest bool) {
		t.Helper()
		server, start := h.Next()
		require.Equal(t, want, server)
		require.Equal(t, rest, start)
	}
	next("a", false)
	next("b", false)
	next("a", true)
	next("b", false)
	next("a", true)
	h.Connected()
	next("b", false)
	next("a", false)
	next("b", true)
}
