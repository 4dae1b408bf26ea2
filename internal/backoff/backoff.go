package backoff

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff counts the failures of one caller. It is not for concurrent use.
type Backoff struct {
	base, limit time.Duration
	random      *rand.Rand
	failures    int
}

// New returns a Backoff whose n-th wait is random between zero and base·2ⁿ⁻¹, never above limit. Both must be positive and base at most
// limit. The random source becomes the Backoff's own.
func New(base, limit time.Duration, random *rand.Rand) *Backoff {
	if base <= 0 || limit < base || random == nil {
		panic("BUG: backoff needs 0 < base <= limit and a random source")
	}
	return &Backoff{base: base, limit: limit, random: random}
}

// Next counts a failure and gives the time to wait before the next try: more than zero, at most the ceiling of this failure.
func (b *Backoff) Next() time.Duration {
	ceiling := b.Ceiling()
	b.failures++
	return 1 + time.Duration(b.random.Int64N(int64(ceiling)))
}

// Ceiling is the longest that Next can answer now.
func (b *Backoff) Ceiling() time.Duration {
	d := b.base
	for range b.failures {
		if d > b.limit/2 {
			return b.limit
		}
		d *= 2
	}
	return d
}

// Failures is how often Next was called since the last Reset.
func (b *Backoff) Failures() int { return b.failures }

// Reset forgets the failures. Call it after a success.
func (b *Backoff) Reset() { b.failures = 0 }

// Wait counts a failure and waits for Next, or returns the context's error as soon as that ends.
func (b *Backoff) Wait(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	timer := time.NewTimer(b.Next())
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
