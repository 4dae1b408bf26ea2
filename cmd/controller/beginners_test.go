package main

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/api"
)

// TestNewOwnerIsAskedWhetherItHasBegun holds that a worker counts as begun when it says so of that very partition, and that nobody is asked without need.
func TestNewOwnerIsAskedWhetherItHasBegun(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	var state atomic.Value
	state.Store(api.StateStarting)
	w := serving(t, func(r *http.Request) (int, any) {
		asked.Add(1)
		return http.StatusOK, api.List[api.Partition]{Items: []api.Partition{
			{Topic: r.URL.Query().Get("topic"), Partition: 0, State: state.Load().(string)},
			{Topic: r.URL.Query().Get("topic"), Partition: 1, State: api.StateStarting},
		}}
	})
	client := &http.Client{Timeout: workerTimeout}
	t.Cleanup(client.CloseIdleConnections)
	b := newBeginners(addresses{"w1": w.URL}, client, hclog.NewNullLogger())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); b.run(ctx) }() // owned by the test, which waits for it
	t.Cleanup(func() { cancel(); <-ended })
	require.Zero(t, asked.Load(), "somebody was asked though nobody wants to know anything")
	require.False(t, b.Begun("orders", "0", "w1"))
	require.Eventually(t, func() bool { b.Begun("orders", "0", "w1"); return asked.Load() >= 2 }, 10*time.Second, 5*time.Millisecond)
	require.False(t, b.Begun("orders", "0", "w1"), "it is starting")
	state.Store(api.StateMirroring)
	require.Eventually(t, func() bool { return b.Begun("orders", "0", "w1") }, 10*time.Second, 5*time.Millisecond)
	require.False(t, b.Begun("orders", "1", "w1"))
	require.False(t, b.Begun("orders", "0", "w2"), "a worker without an address")
	require.True(t, b.Begun("orders", "zero", "w1"), "no partition of ours holds anybody up")
}

// TestNewOwnerThatHadThePartitionBeforeIsAskedAgain moves a partition away and back.
func TestNewOwnerThatHadThePartitionBeforeIsAskedAgain(t *testing.T) {
	t.Parallel()
	b := newBeginners(addresses{}, nil, hclog.NewNullLogger())
	require.False(t, b.Begun("orders", "0", "w1"))
	for who := range b.wanted {
		b.begun[who] = true
	}
	require.True(t, b.Begun("orders", "0", "w1"))
	for who := range b.wanted {
		b.wanted[who] = time.Now().Add(-time.Hour)
	}
	require.False(t, b.Begun("orders", "0", "w1"), "what it said an hour ago holds")
}
