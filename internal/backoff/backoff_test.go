package backoff

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/causeway-mirror/causeway/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func seeded(a uint64) *rand.Rand { return rand.New(rand.NewPCG(a, 1)) }

func TestCeilingDoublesUpToTheLimit(t *testing.T) {
	t.Parallel()
	b := New(100*time.Millisecond, time.Second, seeded(1))
	var got []time.Duration
	for range 7 {
		got = append(got, b.Ceiling())
		b.Next()
	}
	const ms = time.Millisecond
	require.Equal(t, []time.Duration{100 * ms, 200 * ms, 400 * ms, 800 * ms, 1000 * ms, 1000 * ms, 1000 * ms}, got)
	require.Equal(t, 7, b.Failures())
	b.Reset()
	require.Zero(t, b.Failures())
	require.Equal(t, 100*ms, b.Ceiling())
}

func TestEveryWaitIsWithinItsBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		base := time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "base"))
		limit := time.Duration(rapid.Int64Range(int64(base), 1<<63-1).Draw(t, "limit"))
		b := New(base, limit, seeded(rapid.Uint64().Draw(t, "seed")))
		before := time.Duration(0)
		for range 80 {
			ceiling := b.Ceiling()
			require.GreaterOrEqual(t, ceiling, before, "never shorter, no overflow")
			require.LessOrEqual(t, ceiling, limit)
			before = ceiling
			next := b.Next()
			require.Positive(t, next)
			require.LessOrEqual(t, next, ceiling)
		}
	})
}

// TestJitterIsFull: waits must fill the whole range, or callers that failed together come back together.
func TestJitterIsFull(t *testing.T) {
	t.Parallel()
	var quarters [4]int
	b := New(time.Second, time.Second, seeded(7))
	const n = 4000
	for range n {
		quarters[min(int(b.Next()*4/time.Second), 3)]++
	}
	for _, q := range quarters {
		require.InDelta(t, n/4, q, n/40)
	}
}

func TestWaitTakesItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, twin := New(time.Second, time.Minute, seeded(3)), New(time.Second, time.Minute, seeded(3))
		for range 10 {
			began := time.Now()
			require.NoError(t, b.Wait(t.Context()))
			require.Equal(t, twin.Next(), time.Since(began))
		}
	})
}

func TestWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := New(time.Hour, time.Hour, seeded(3))
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		began := time.Now()
		require.ErrorIs(t, b.Wait(ctx), context.DeadlineExceeded)
		require.Equal(t, time.Millisecond, time.Since(began))
		require.Equal(t, 1, b.Failures())
		require.ErrorIs(t, b.Wait(ctx), context.DeadlineExceeded, "at once")
		require.Equal(t, time.Millisecond, time.Since(began))
		require.Equal(t, 1, b.Failures(), "a wait that did not begin is no failure")
	})
}

func TestNewRefusesNonsense(t *testing.T) {
	t.Parallel()
	for _, row := range [][2]time.Duration{{0, time.Second}, {-1, time.Second}, {time.Second, time.Millisecond}} {
		require.Panics(t, func() { New(row[0], row[1], seeded(1)) })
	}
	require.Panics(t, func() { New(1, 1, nil) })
}
