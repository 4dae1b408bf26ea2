package fetcher

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/causeway-mirror/causeway/batch"
	"github.com/causeway-mirror/causeway/internal/slab"
	"github.com/causeway-mirror/causeway/route"
)

// endless is a lane that takes everything and begins again at the end of the log, until it has had enough.
type endless struct {
	f          *Fetchers
	p          route.Partition
	end        route.Offset
	left       int // batches
	position   route.Offset
	generation uint32
	bytes      int64
	answers    int
	done       chan struct{}
}

func (l *endless) Want() (route.Position, uint32, int32) {
	if l.left <= 0 {
		return route.Position{Offset: l.position, LeaderEpoch: -1}, l.generation, 0
	}
	return route.Position{Offset: l.position, LeaderEpoch: -1}, l.generation, 4 << 20
}

func (l *endless) Append(generation uint32, _ *slab.Slab, batches []batch.Batch, at route.Position, _ route.Extent) {
	if generation != l.generation || l.left <= 0 {
		return
	}
	l.answers++
	next := at.Offset
	for _, b := range batches {
		l.bytes += int64(len(b))
	}
	l.position = next
	if next >= l.end {
		l.position = 0
		l.generation++
	}
	if l.left -= len(batches); l.left <= 0 {
		close(l.done)
	}
}

func (*endless) Extent(route.Extent)       {}
func (*endless) Fail(uint32, *route.Fault) { panic("BUG: nothing fails here") }

// BenchmarkFetch reads 16 KiB batches from an in-process cluster, alone and beside 1,000 idle partitions; one operation is one batch.
func BenchmarkFetch(b *testing.B) {
	for _, row := range []struct {
		name string
		idle int32
	}{{"alone", 0}, {"beside 1000 idle", 1000}} {
		b.Run(row.name, func(b *testing.B) {
			kc := newKfake(b, kfake.NumBrokers(1), kfake.SeedTopics(1, "a"), kfake.SeedTopics(max(row.idle, 1), "idle"))
			cfg := DefaultConfig()
			r := newRig(b, kc, cfg, 128<<20)
			cl := r.client(kgo.ProducerBatchCompression(kgo.NoCompression()))
			const n = 1024
			value := make([]byte, 16<<10)
			for range n {
				require.NoError(b, cl.ProduceSync(b.Context(), &kgo.Record{Topic: "a", Value: value}).FirstErr())
			}
			for p := range row.idle {
				r.add("idle", p, newLane(0))
			}
			before := -1
			allCold := func() bool { // cold lanes are not asked again
				sum := 0
				for _, l := range r.lanes {
					l.with(func() { sum += l.wants })
				}
				same := sum == before
				before = sum
				return same
			}
			require.Eventually(b, allCold, patience, 300*time.Millisecond)
			b.ReportAllocs()
			b.ResetTimer()
			p := route.Partition{Topic: "a"}
			l := &endless{f: r.f, p: p, end: n, left: b.N, done: make(chan struct{})}
			r.f.Add(p, route.TopicID{}, l)
			<-l.done
			b.StopTimer()
			r.f.Remove(p)
			b.ReportMetric(float64(l.bytes)/1e6/b.Elapsed().Seconds(), "MB/s")
			b.ReportMetric(float64(b.N)/float64(l.answers), "batches/answer")
		})
	}
}
