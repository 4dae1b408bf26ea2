package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// copyRecords copies all records that are there now, through franz-go's consumer and producer.
func copyRecords(ctx context.Context, o options, c *counters) error {
	codec, ok := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}[o.codec]
	if !ok {
		return fmt.Errorf("unknown codec %q", o.codec)
	}
	src, err := kgo.NewClient(kgo.SeedBrokers(o.src...), kgo.ConsumeTopics(o.topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxBytes(16<<20))
	if err != nil {
		return fmt.Errorf("create consumer: %w", err)
	}
	defer src.Close()
	dst, err := kgo.NewClient(kgo.SeedBrokers(o.dst...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(codec),
		kgo.MaxBufferedRecords(200_000), kgo.ProducerBatchMaxBytes(1_000_000), kgo.ProducerLinger(5*time.Millisecond))
	if err != nil {
		return fmt.Errorf("create producer: %w", err)
	}
	defer dst.Close()
	spans, err := offsets(ctx, src, o.topic)
	if err != nil {
		return err
	}
	var total int64
	for _, s := range spans {
		total += s.end - s.next
	}
	return pump(ctx, [2]*kgo.Client{src, dst}, o.to, total, c)
}

// pump moves total records from the first client to the second.
func pump(ctx context.Context, clients [2]*kgo.Client, to string, total int64, c *counters) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var wg sync.WaitGroup
	for n := int64(0); n < total; {
		fetches := clients[0].PollRecords(ctx, 50_000)
		if err := fetches.Err(); err != nil {
			return fmt.Errorf("consume: %w (%w)", err, context.Cause(ctx))
		}
		fetches.EachRecord(func(r *kgo.Record) {
			n++
			c.bytes.Add(int64(len(r.Key) + len(r.Value)))
			wg.Add(1)
			clients[1].Produce(ctx, &kgo.Record{Topic: to, Partition: r.Partition, Key: r.Key, Value: r.Value, Headers: r.Headers, Timestamp: r.Timestamp}, func(_ *kgo.Record, err error) {
				defer wg.Done()
				if err != nil {
					fail(fmt.Errorf("produce: %w", err))
					return
				}
				c.records.Add(1)
			})
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// span is what of a partition is to be copied: from next up to but without end.
type span struct{ next, end int64 }

// offsets returns what each partition of the topic holds.
func offsets(ctx context.Context, cl *kgo.Client, topic string) (map[int32]span, error) {
	adm := kadm.NewClient(cl)
	starts, err := adm.ListStartOffsets(ctx, topic)
	if err != nil {
		return nil, fmt.Errorf("list start offsets of %s: %w", topic, err)
	}
	ends, err := adm.ListEndOffsets(ctx, topic)
	if err != nil {
		return nil, fmt.Errorf("list end offsets of %s: %w", topic, err)
	}
	spans := map[int32]span{}
	ends.Each(func(end kadm.ListedOffset) {
		start, ok := starts.Lookup(topic, end.Partition)
		if !ok || start.Err != nil || end.Err != nil {
			err = fmt.Errorf("no offsets of %s-%d: %w, %w", topic, end.Partition, start.Err, end.Err)
			return
		}
		spans[end.Partition] = span{next: start.Offset, end: end.Offset}
	})
	if err == nil && len(spans) == 0 {
		err = fmt.Errorf("topic %s has no partitions", topic)
	}
	return spans, err
}
