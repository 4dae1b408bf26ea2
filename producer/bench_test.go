package producer

import (
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/causeway-mirror/causeway/batch"
	"github.com/causeway-mirror/causeway/route"
)

// ready is a lane that always has a batch.
type ready struct {
	fakeLane
	b batch.Batch
}

func (l *ready) Next() int                             { return len(l.b) }
func (l *ready) Take() (batch.Batch, bool)             { return l.b, true }
func (*ready) Answer(bool, route.Offset, *route.Fault) {}

// BenchmarkRequest builds requests of a batch from each of 100 lanes and hands out the answers: what the producer itself costs.
func BenchmarkRequest(b *testing.B) {
	p := New(DefaultConfig(), Deps{Log: hclog.NewNullLogger(), Registerer: prometheus.NewRegistry()})
	l := newLink(p, 0)
	resp := &kmsg.ProduceResponse{Topics: []kmsg.ProduceResponseTopic{{Topic: "t", Partitions: make([]kmsg.ProduceResponseTopicPartition, 100)}}}
	for i := range int32(100) {
		s := p.Slot(route.Partition{Topic: "t", Partition: i})
		s.link.Store(l)
		s.Attach(&ready{b: make([]byte, 1000)})
	}
	b.ReportAllocs()
	for b.Loop() {
		r := l.build()
		if len(r.items) != 100 {
			b.Fatal(len(r.items))
		}
		for i := range resp.Topics[0].Partitions {
			resp.Topics[0].Partitions[i].Partition = r.items[i].slot.target.Partition
		}
		r.answered(resp, nil)
	}
}
