package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// entry is a record that the source has acknowledged.
type entry struct {
	offset int64
	number int
	life   int // of the topic: how often it was made anew before
}

// feed writes keyed, numbered records to a topic until it is ended.
type feed struct {
	topic     string
	bootstrap []string
	rate      int  // records a second
	txn       bool // in transactions, each fourth of them aborted

	stop  context.CancelFunc
	ended chan struct{}

	mu     sync.Mutex
	ledger map[int32][]entry // guarded by mu; by partition, in order; without transactions only
	next   int               // guarded by mu; number of the next record
	life   int               // guarded by mu
	err    error             // guarded by mu; the first record that failed
}

// start begins, again after end.
func (f *feed) start(ctx context.Context) {
	ctx, f.stop = context.WithCancel(context.WithoutCancel(ctx))
	f.ended = make(chan struct{})
	go func() { // owned by the feed: end waits for it
		defer close(f.ended)
		for ctx.Err() == nil {
			if err := f.run(ctx); err != nil && !f.txn {
				f.fail(err)
				return
			} // a transaction does not outlive every death of its coordinator: the next client of its id aborts what it left
		}
	}()
}

func (f *feed) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = fmt.Errorf("write to %s: %w", f.topic, err)
	}
}

// end waits until all that was written is acknowledged.
func (f *feed) end() error {
	f.stop()
	<-f.ended
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

const turn = 200 * time.Millisecond

// run writes a client's records, turn by turn, with sizes and codecs that change.
func (f *feed) run(ctx context.Context) error {
	options := []kgo.Opt{
		kgo.SeedBrokers(f.bootstrap...), kgo.DefaultProduceTopic(f.topic), kgo.AlwaysRetryEOF(), kgo.ProducerLinger(20 * time.Millisecond),
		kgo.ProducerBatchCompression([]kgo.CompressionCodec{kgo.Lz4Compression(), kgo.NoCompression(), kgo.ZstdCompression()}[f.number()%3]),
		kgo.RecordPartitioner(kgo.RoundRobinPartitioner()), kgo.UnknownTopicRetries(-1),
	}
	if f.txn {
		options = append(options, kgo.TransactionalID("chaos-"+f.topic), kgo.TransactionTimeout(20*time.Second))
	}
	cl, err := kgo.NewClient(options...)
	if err != nil {
		return fmt.Errorf("create producer: %w", err)
	}
	defer cl.Close()
	whole := context.WithoutCancel(ctx) // a turn that has begun is finished, so that the ledger is complete
	for n := 0; ctx.Err() == nil; n++ {
		began := time.Now()
		if err := f.turn(whole, cl, n); err != nil {
			return err
		}
		await(ctx, turn-time.Since(began))
	}
	return flush(whole, cl)
}

// flush waits until all is acknowledged, but not for ever: a cluster that takes nothing any more is a failure.
func flush(ctx context.Context, cl *kgo.Client) error {
	ctx, cancel := context.WithTimeout(ctx, 2*healedWithin)
	defer cancel()
	if err := cl.Flush(ctx); err != nil {
		return fmt.Errorf("%d records are not acknowledged: %w", cl.BufferedProduceRecords(), err)
	}
	return nil
}

func (f *feed) turn(ctx context.Context, cl *kgo.Client, n int) error {
	if !f.txn {
		f.write(ctx, cl)
		if n%10 != 9 {
			return nil
		}
		return flush(ctx, cl)
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := cl.BeginTransaction(); err != nil {
		return fmt.Errorf("begin transaction: %w", err)
	}
	f.write(ctx, cl)
	return errors.Join(cl.Flush(ctx), cl.EndTransaction(ctx, kgo.TransactionEndTry(n%4 != 3)))
}

// write hands over a turn's records.
func (f *feed) write(ctx context.Context, cl *kgo.Client) {
	f.mu.Lock()
	first, life := f.next, f.life
	count := max(1, f.rate*int(turn/time.Millisecond)/1000)
	f.next += count
	f.mu.Unlock()
	for i := range count {
		number := first + i
		value := make([]byte, 12+rand.IntN(400))
		copy(value, fmt.Sprintf("%012d", number))
		cl.Produce(ctx, &kgo.Record{Key: strconv.AppendInt([]byte("key-"), int64(number%97), 10), Value: value}, func(r *kgo.Record, err error) {
			switch {
			case f.txn:
			case err != nil:
				f.fail(err)
			default:
				f.mu.Lock()
				f.ledger[r.Partition] = append(f.ledger[r.Partition], entry{r.Offset, number, life})
				f.mu.Unlock()
			}
		})
	}
}

func (f *feed) number() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.next
}

// await waits, or until ctx ends.
func await(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
