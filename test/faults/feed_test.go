package faults_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// feed writes to a source topic until it is ended.
type feed struct {
	stop    context.CancelFunc
	ended   chan struct{}
	written int64 // after ended
	err     error // after ended
}

// startFeed writes about so many records a second, in turns of a second: paced ones, which make small batches, and ones all at once, which
// make large ones, with changing sizes and codecs; every fourth in transactions, some of them aborted. It ends with the test.
func startFeed(t *testing.T, bootstrap []string, topic string, rate int) *feed {
	t.Helper()
	return feedTurns(t, bootstrap, func(turn int) kafkatest.LoadOptions {
		o := turnOf(topic, turn, rate)
		if turn%4 == 3 {
			o.TxnRecords, o.AbortEvery = max(rate/6, 1), 3
		}
		return o
	})
}

// startPlainFeed is startFeed without transactions, which don't outlive the brokers that they are made on.
func startPlainFeed(t *testing.T, bootstrap []string, topic string, rate int) *feed {
	t.Helper()
	return feedTurns(t, bootstrap, func(turn int) kafkatest.LoadOptions { return turnOf(topic, turn, rate) })
}

func feedTurns(t *testing.T, bootstrap []string, turns func(turn int) kafkatest.LoadOptions) *feed {
	t.Helper()
	return feedWithin(t, bootstrap, time.Second, turns)
}

// feedWithin writes turns one after the other, with a pause after every second one.
func feedWithin(t *testing.T, bootstrap []string, pause time.Duration, turns func(turn int) kafkatest.LoadOptions) *feed {
	t.Helper()
	stopping, stop := context.WithCancel(t.Context())
	f := &feed{stop: stop, ended: make(chan struct{})}
	ctx := context.WithoutCancel(t.Context()) // a turn that has begun is finished, so that the source is complete
	go func() {                               // owned by the feed: end and the cleanup wait for it
		defer close(f.ended)
		for turn := 0; stopping.Err() == nil && f.err == nil; turn++ {
			var res kafkatest.LoadResult
			res, f.err = kafkatest.Generate(ctx, bootstrap, turns(turn))
			f.written += res.Committed
			if turn%2 == 1 {
				await(stopping, pause)
			}
		}
	}()
	t.Cleanup(func() {
		stop()
		<-f.ended
	})
	return f
}

func turnOf(topic string, turn, rate int) kafkatest.LoadOptions {
	o := kafkatest.LoadOptions{
		Topic: topic, First: turn * rate, Records: rate, ValueBytes: []int{30, 200, 1000}[turn%3],
		Codec: []string{"lz4", "none", "zstd", "gzip", "snappy"}[turn%5], BatchBytes: []int{2 << 10, 64 << 10, 8 << 10, 512 << 10}[turn%4],
		Headers: turn % 3,
	}
	if turn%2 == 0 {
		o.Rate = rate
	}
	return o
}

func await(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// end ends the feed after its turn and returns how many records it wrote.
func (f *feed) end(t *testing.T) int64 {
	t.Helper()
	f.stop()
	<-f.ended
	require.NoError(t, f.err)
	return f.written
}

// upTo is a random time, not longer than most.
func upTo(most time.Duration) time.Duration { return rand.N(most) }
