package kafkatest

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// LoadOptions says what Load writes. Only Topic and Records are required.
type LoadOptions struct {
	// Topic must exist, see Cluster.CreateTopic.
	Topic string
	// Records is how many to write, of those in aborted transactions included.
	Records int
	// First is the number of the first record. The number stands in twelve digits at the head of each value.
	First int
	// ValueBytes is each value's length, at least 12. Default: 200. Values compress about as event logs do.
	ValueBytes int
	// Codec is none, gzip, snappy, lz4 or zstd. Default: lz4.
	Codec string
	// BatchBytes bounds a batch before compression. Default: 65536.
	BatchBytes int
	// Keys is the number of different keys; 0 gives each record its own, a negative one none at all.
	Keys int
	// Headers is the number of headers of each record.
	Headers int
	// TxnRecords is how many records make a transaction; 0 means none are used.
	TxnRecords int
	// AbortEvery aborts each so manieth transaction, counted from 1; 0 aborts none.
	AbortEvery int
	// Rate bounds records a second; 0 means as fast as it goes.
	Rate int
	// Linger is how long a batch waits for more records. Default: 5 ms.
	Linger time.Duration
}

// LoadResult is what Load wrote.
type LoadResult struct {
	Committed int64 // records that a read_committed consumer sees
	Aborted   int64
}

// Load writes numbered records, round-robin over the topic's partitions and in order within each, and returns when all are
// acknowledged. A failed record fails the test.
func Load(t testing.TB, bootstrap []string, opts LoadOptions) LoadResult {
	t.Helper()
	res, err := Generate(t.Context(), bootstrap, opts)
	if err != nil {
		t.Fatalf("load topic %s: %v", opts.Topic, err)
	}
	return res
}

// Generate is Load outside a test. It ends early, with an error, when ctx does; the result then counts what was acknowledged.
func Generate(ctx context.Context, bootstrap []string, opts LoadOptions) (LoadResult, error) {
	opts = opts.withDefaults()
	cl, err := opts.client(bootstrap)
	if err != nil {
		return LoadResult{}, err
	}
	defer cl.Close()
	g := &generator{cl: cl, opts: opts, rng: rand.New(rand.NewPCG(uint64(opts.First), 1))}
	g.fill()
	if err = g.run(ctx); err == nil && opts.TxnRecords > 0 {
		err = g.settle(ctx)
	}
	return g.res, err
}

// settle waits until no transaction is open: a coordinator answers before it has written the markers, and until then readers of committed records
// see less than was committed.
func (g *generator) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	admin := kadm.NewClient(g.cl)
	for {
		stable, err := admin.ListCommittedOffsets(ctx, g.opts.Topic)
		if err != nil {
			return fmt.Errorf("list last stable offsets: %w", err)
		}
		ends, err := admin.ListEndOffsets(ctx, g.opts.Topic)
		if err != nil {
			return fmt.Errorf("list end offsets: %w", err)
		}
		if maps.EqualFunc(stable[g.opts.Topic], ends[g.opts.Topic], func(a, b kadm.ListedOffset) bool { return a.Offset == b.Offset }) {
			return nil
		}
		if err := sleepUntil(ctx, time.Now().Add(10*time.Millisecond)); err != nil {
			return fmt.Errorf("wait for the markers of transactions: %w", err)
		}
	}
}

func (o LoadOptions) withDefaults() LoadOptions {
	if o.ValueBytes == 0 {
		o.ValueBytes = 200
	}
	o.ValueBytes = max(o.ValueBytes, 12)
	if o.Codec == "" {
		o.Codec = "lz4"
	}
	if o.BatchBytes == 0 {
		o.BatchBytes = 64 << 10
	}
	if o.Linger == 0 {
		o.Linger = 5 * time.Millisecond
	}
	return o
}

func (o LoadOptions) client(bootstrap []string) (*kgo.Client, error) {
	codec, ok := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}[o.Codec]
	if !ok {
		return nil, fmt.Errorf("unknown codec %q", o.Codec)
	}
	all := []kgo.Opt{
		kgo.SeedBrokers(bootstrap...), kgo.DefaultProduceTopic(o.Topic), kgo.ProducerBatchCompression(codec),
		kgo.ProducerBatchMaxBytes(int32(o.BatchBytes)), kgo.ProducerLinger(o.Linger),
		kgo.RecordPartitioner(kgo.RoundRobinPartitioner()), kgo.MaxBufferedRecords(50_000),
		kgo.AlwaysRetryEOF(), kgo.UnknownTopicRetries(-1), // brokers are killed while they are written to, and come back without knowing all topics
	}
	if o.TxnRecords > 0 {
		all = append(all, kgo.TransactionalID(fmt.Sprintf("load-%s-%d", o.Topic, o.First)))
	}
	cl, err := kgo.NewClient(all...)
	if err != nil {
		return nil, fmt.Errorf("create producer: %w", err)
	}
	return cl, nil
}

// generator writes the records of one Load.
type generator struct {
	cl     *kgo.Client
	opts   LoadOptions
	rng    *rand.Rand
	bodies [][]byte
	res    LoadResult
	acked  atomic.Int64 // records acknowledged in the open transaction, or since the start without transactions
	failed atomic.Pointer[error]
}

// fill makes a stock of bodies to choose from, because making each anew would cost more than sending it.
func (g *generator) fill() {
	words := []string{"user", "session", "page", "click", "view", "amount", "currency", "region", "device", "latency", "status", "reason"}
	for range 512 {
		body := []byte("{")
		for len(body) < g.opts.ValueBytes {
			word := words[g.rng.IntN(len(words))]
			body = fmt.Appendf(body, "%q:\"%s-%d\",", word, words[g.rng.IntN(len(words))], g.rng.IntN(100_000))
		}
		g.bodies = append(g.bodies, body[:g.opts.ValueBytes])
	}
}

func (g *generator) run(ctx context.Context) error {
	perTxn, txns := g.opts.Records, 1
	if g.opts.TxnRecords > 0 {
		perTxn = g.opts.TxnRecords
		txns = (g.opts.Records + perTxn - 1) / perTxn
	}
	began := time.Now()
	for i := range txns {
		low := i * perTxn
		abort := g.opts.AbortEvery > 0 && (i+1)%g.opts.AbortEvery == 0
		if err := g.batch(ctx, began, low, min(low+perTxn, g.opts.Records), abort); err != nil {
			return err
		}
	}
	return nil
}

// batch writes records low to high-1: one transaction, or all without.
func (g *generator) batch(ctx context.Context, began time.Time, low, high int, abort bool) error {
	txn := g.opts.TxnRecords > 0
	if txn {
		if err := g.cl.BeginTransaction(); err != nil {
			return fmt.Errorf("begin transaction: %w", err)
		}
	}
	g.acked.Store(0)
	err := g.produce(ctx, began, low, high)
	if errFlush := g.cl.Flush(ctx); err == nil {
		err = errFlush
	}
	if failed := g.failed.Load(); err == nil && failed != nil {
		err = *failed
	}
	if err == nil && txn {
		err = g.cl.EndTransaction(ctx, kgo.TransactionEndTry(!abort))
	}
	switch n := g.acked.Load(); {
	case txn && abort:
		g.res.Aborted += n
	case !txn || err == nil:
		g.res.Committed += n
	}
	return err
}

func (g *generator) produce(ctx context.Context, began time.Time, low, high int) error {
	for i := low; i < high; i++ {
		if g.opts.Rate > 0 {
			if err := sleepUntil(ctx, began.Add(time.Duration(i)*time.Second/time.Duration(g.opts.Rate))); err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		g.cl.Produce(ctx, g.record(g.opts.First+i), func(_ *kgo.Record, err error) {
			if err != nil {
				g.failed.CompareAndSwap(nil, &err)
				return
			}
			g.acked.Add(1)
		})
	}
	return nil
}

func (g *generator) record(number int) *kgo.Record {
	value := append(fmt.Appendf(nil, "%012d", number), g.bodies[g.rng.IntN(len(g.bodies))][12:]...)
	r := &kgo.Record{Value: value}
	switch {
	case g.opts.Keys == 0:
		r.Key = strconv.AppendInt([]byte("key-"), int64(number), 10)
	case g.opts.Keys > 0:
		r.Key = strconv.AppendInt([]byte("key-"), int64(number%g.opts.Keys), 10)
	}
	for h := range g.opts.Headers {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: "h" + strconv.Itoa(h), Value: value[:12]})
	}
	return r
}

// sleepUntil returns at that time, or earlier with an error when ctx ends.
func sleepUntil(ctx context.Context, at time.Time) error {
	wait := time.Until(at)
	if wait <= 0 {
		return nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
