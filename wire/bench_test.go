package wire

import (
	"io"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// BenchmarkProduce sends requests of eight batches to a peer that answers at once.
func BenchmarkProduce(b *testing.B) {
	for _, size := range []int{16 << 10, 64 << 10} {
		b.Run(strconv.Itoa(size>>10)+"K", func(b *testing.B) {
			c, p := connected(b, DefaultConfig())
			resp := kmsg.NewPtrProduceResponse()
			resp.Version = maxProduce
			resp.Topics = []kmsg.ProduceResponseTopic{{Topic: "topic", Partitions: make([]kmsg.ProduceResponseTopicPartition, 8)}}
			ready := answer(0, resp)
			go func() {
				var head [12]byte
				for {
					if _, err := io.ReadFull(p.in, head[:]); err != nil {
						return
					}
					n := int64(head[0])<<24 | int64(head[1])<<16 | int64(head[2])<<8 | int64(head[3])
					if _, err := io.CopyN(io.Discard, p.in, n-8); err != nil {
						return
					}
					copy(ready[4:], head[8:])
					if _, err := p.Write(ready); err != nil {
						return
					}
				}
			}()
			req := &Produce{Acks: -1, Timeout: time.Second}
			for i := range 8 {
				req.Batches = append(req.Batches, ProduceBatch{Topic: "topic", Partition: int32(i), Records: make([]byte, size)})
			}
			window := make(chan struct{}, 16)
			done := func(_ *kmsg.ProduceResponse, err error) {
				if err != nil {
					b.Error(err)
				}
				<-window
			}
			b.SetBytes(int64(8 * size))
			b.ReportAllocs()
			for b.Loop() {
				window <- struct{}{}
				require.NoError(b, c.Produce(req, done))
			}
			for range cap(window) {
				window <- struct{}{}
			}
		})
	}
}

// BenchmarkFetch takes answers of eight partitions from a peer that has them ready.
func BenchmarkFetch(b *testing.B) {
	for _, size := range []int{16 << 10, 64 << 10} {
		b.Run(strconv.Itoa(size>>10)+"K", func(b *testing.B) {
			c, p := connected(b, DefaultConfig())
			resp := kmsg.NewPtrFetchResponse()
			resp.Version = maxFetch
			resp.Topics = []kmsg.FetchResponseTopic{{TopicID: [16]byte{1}, Partitions: make([]kmsg.FetchResponseTopicPartition, 8)}}
			for i := range 8 {
				resp.Topics[0].Partitions[i].RecordBatches = make([]byte, size)
			}
			ready := answer(0, resp)
			go func() {
				for {
					f, err := p.receive()
					if err != nil {
						return
					}
					head := [4]byte{byte(f.corr >> 24), byte(f.corr >> 16), byte(f.corr >> 8), byte(f.corr)}
					out := net.Buffers{ready[:4], head[:], ready[8:]}
					if _, err = out.WriteTo(p.Conn); err != nil {
						return
					}
				}
			}()
			pool := newPoolUnpoisoned(64 << 20)
			req := fetchRequest("topic", [16]byte{1}, 0)
			b.SetBytes(int64(8 * size))
			b.ReportAllocs()
			for b.Loop() {
				_, s, err := c.Fetch(b.Context(), req, pool, 0)
				require.NoError(b, err)
				s.Release()
			}
		})
	}
}
