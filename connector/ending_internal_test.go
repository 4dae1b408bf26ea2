package connector

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/cluster"
	"github.com/causeway-mirror/causeway/route"
)

// TestAnEndWhilePartitionsBeginIsNoWarning: what an interrupt cuts off is no trouble of a cluster's.
func TestAnEndWhilePartitionsBeginIsNoWarning(t *testing.T) {
	t.Parallel()
	var logged bytes.Buffer
	log := hclog.New(&hclog.LoggerOptions{Output: &logged})
	admin := cluster.NewAdmin(cluster.Config{Name: "target", Bootstrap: []string{"127.0.0.1:1"}}, hclog.NewNullLogger())
	c := &Connector{deps: Deps{Log: log}, admin: administration{target: admin}}
	t.Cleanup(func() { require.NoError(t, admin.Close()) })
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	_, err := c.idExpiration(ctx)
	require.ErrorIs(t, err, context.Canceled)
	p := &partition{source: route.Partition{Topic: "orders"}}
	c.blocked([]*partition{p}, fmt.Errorf("target: %w", err))
	require.Empty(t, logged.String())
	c.blocked([]*partition{p}, fmt.Errorf("target: %w", context.DeadlineExceeded))
	require.Contains(t, logged.String(), "partitions can't be started yet")
}
