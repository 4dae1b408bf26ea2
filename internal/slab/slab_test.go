package slab

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestClassHoldsWhatItIsAskedFor(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 1<<28).Draw(t, "n")
		c := class(n)
		if size(c) < n {
			t.Fatalf("class %d of %d bytes has only %d", c, n, size(c))
		}
		if c > 0 && size(c-1) >= n {
			t.Fatalf("class %d of %d bytes is too large: %d would do", c, n, size(c-1))
		}
	})
}

func TestBufferReturnsAfterLastRelease(t *testing.T) {
	t.Parallel()
	b := NewBudget(1 << 20)
	p := NewPool(b, 1<<20).Poison()
	require.NoError(t, b.Reserve(t.Context(), 10_000))
	s := p.Get(5_000, 10_000)
	require.Equal(t, int64(5_000), b.Used())
	s.Retain(1)
	s.Release()
	require.Equal(t, int64(5_000), b.Used())
	held := s.Bytes()
	s.Release()
	require.Equal(t, int64(0), b.Used())
	require.Equal(t, byte(0xdb), held[0])
	require.Same(t, s, p.Get(5_100, 0))
	require.Panics(t, func() { b.Return(1 << 20) })
}

func TestReserveKeepsOrderAndEnds(t *testing.T) {
	t.Parallel()
	b := NewBudget(100)
	require.NoError(t, b.Reserve(t.Context(), 80))
	ended, end := context.WithCancel(t.Context())
	end()
	require.ErrorIs(t, b.Reserve(ended, 30), context.Canceled)
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan error, 1)
	go func() { got <- b.Reserve(ctx, 90) }()
	waiting := func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return len(b.waiters) == 1
	}
	require.Eventually(t, waiting, 5*time.Second, time.Millisecond)
	require.ErrorIs(t, b.Reserve(ended, 1), context.Canceled, "a small reservation overtook a waiting large one")
	cancel()
	require.ErrorIs(t, <-got, context.Canceled)
	require.NoError(t, b.Reserve(t.Context(), 1))
	go func() { got <- b.Reserve(t.Context(), 1000) }()
	require.Eventually(t, waiting, 5*time.Second, time.Millisecond)
	b.Return(81)
	require.NoError(t, <-got)
	require.Equal(t, int64(1000), b.Used())
}
