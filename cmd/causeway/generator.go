package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// demoTopic is a topic that the demo fills.
type demoTopic struct {
	name       string
	partitions int32
	codec      kgo.CompressionCodec
}

// demoTopics use every codec, so that the demo shows batches of each kind passing untouched.
func demoTopics() []demoTopic {
	return []demoTopic{
		{"clicks", 4, kgo.Lz4Compression()},
		{"customers", 2, kgo.GzipCompression()},
		{"orders", 6, kgo.ZstdCompression()},
		{"payments", 3, kgo.SnappyCompression()},
		{"raw-events", 2, kgo.NoCompression()},
	}
}

// generator produces made-up records to the demo's source.
type generator struct {
	rate    int // records per second over all topics
	clients []*kgo.Client
	topics  []demoTopic
	random  *rand.Rand
	sent    atomic.Int64
	failure atomic.Pointer[error]
}

func newGenerator(bootstrap []string, perSecond int) (*generator, error) {
	g := &generator{rate: perSecond, topics: demoTopics(), random: rand.New(rand.NewPCG(1, 2))}
	for _, t := range g.topics {
		client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap...), kgo.ClientID("causeway-demo"), kgo.DefaultProduceTopic(t.name),
			kgo.ProducerBatchCompression(t.codec), kgo.ProducerLinger(20*time.Millisecond))
		if err != nil {
			g.close()
			return nil, fmt.Errorf("open generator of topic %s: %w", t.name, err)
		}
		g.clients = append(g.clients, client)
	}
	return g, nil
}

func (g *generator) close() {
	for _, c := range g.clients {
		c.Close()
	}
}

// run produces until ctx ends and returns when all is acknowledged.
func (g *generator) run(ctx context.Context) error {
	const tick = 20 * time.Millisecond
	began, made := time.Now(), 0
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	last := context.WithoutCancel(ctx) // what was begun is finished
	for ctx.Err() == nil {
		// By the clock and not by ticks, which a busy machine drops.
		for due := int(time.Since(began).Seconds() * float64(g.rate)); made < due; made++ {
			g.produce(last, made)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
	limited, cancel := context.WithTimeout(last, 10*time.Second)
	defer cancel()
	for i, c := range g.clients {
		if err := c.Flush(limited); err != nil {
			return fmt.Errorf("flush topic %s: %w", g.topics[i].name, err)
		}
	}
	if p := g.failure.Load(); p != nil {
		return fmt.Errorf("produce to the demo's source: %w", *p)
	}
	return nil
}

func (g *generator) produce(ctx context.Context, n int) {
	i := g.random.IntN(len(g.clients))
	g.clients[i].Produce(ctx, g.record(n), func(_ *kgo.Record, err error) {
		if err != nil {
			g.failure.CompareAndSwap(nil, &err)
			return
		}
		g.sent.Add(1)
	})
}

// record makes one of every sort that a mirror could get wrong: null and empty keys and values, repeated headers, null header values.
func (g *generator) record(n int) *kgo.Record {
	id := g.random.IntN(5000)
	rec := &kgo.Record{
		Key:       fmt.Appendf(nil, "id-%d", id),
		Value:     fmt.Appendf(nil, `{"n":%d,"id":%d,"amount":%d.%02d,"note":%q}`, n, id, g.random.IntN(1000), g.random.IntN(100), strings.Repeat("causeway ", 1+g.random.IntN(30))),
		Timestamp: time.Now().Truncate(time.Millisecond),
	}
	switch g.random.IntN(20) {
	case 0:
		rec.Value = nil
	case 1:
		rec.Value = []byte{}
	case 2:
		rec.Key = nil
	case 3:
		rec.Headers = []kgo.RecordHeader{{Key: "trace", Value: fmt.Appendf(nil, "%016x", g.random.Uint64())}, {Key: "trace", Value: []byte("twice")}, {Key: "null", Value: nil}}
	}
	return rec
}
