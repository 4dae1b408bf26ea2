package gateway

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/causeway-mirror/causeway/network"
)

// acknowledge is a broker that answers each request with its correlation id and nothing else.
func acknowledge(conn net.Conn) error {
	f := network.NewFrames(conn, network.Limits{Frame: 100 << 20, Give: time.Minute, Take: time.Minute})
	buffer := make([]byte, 64<<10)
	for {
		var head [12]byte
		left, err := f.Await(head[:], 0)
		if err != nil {
			return err
		}
		for left > 0 {
			n, err := f.Read(buffer[:min(left, len(buffer))])
			if err != nil {
				return err
			}
			left -= n
		}
		if err := f.Send(append([]byte{0, 0, 0, 4}, head[8:]...), time.Minute); err != nil {
			return err
		}
	}
}

// BenchmarkProduce sends requests of 1 MiB, five in flight, to a broker that throws them away: directly and through a gateway.
func BenchmarkProduce(b *testing.B) {
	for name, through := range map[string]bool{"direct": false, "gateway": true} {
		b.Run(name, func(b *testing.B) {
			var wg sync.WaitGroup
			defer wg.Wait()
			broker := benchListener(b)
			defer broker.Close()
			wg.Go(func() {
				if conn, err := broker.Accept(); err == nil {
					defer conn.Close()
					_ = acknowledge(conn) // it ends with the client
				}
			})
			at := broker.Addr().String()
			if through {
				front := benchListener(b)
				defer front.Close()
				at = front.Addr().String()
				cfg := DefaultConfig()
				cfg.Upstream.Bootstrap, cfg.Advertise, cfg.DrainTimeout = []string{broker.Addr().String()}, "127.0.0.1", 0
				g := New(cfg, Deps{Log: hclog.NewNullLogger(), Reg: prometheus.NewRegistry(), Route: "gateway"})
				wg.Go(func() { _ = g.Run(b.Context(), front, nil) }) // it ends when its listener is closed
			}
			conn, err := (&net.Dialer{}).DialContext(b.Context(), "tcp", at)
			require.NoError(b, err)
			defer conn.Close()
			request := kmsg.NewRequestFormatter().AppendRequest(nil, &kmsg.ProduceRequest{Version: 8, Acks: -1, Topics: []kmsg.ProduceRequestTopic{
				{Topic: "t", Partitions: []kmsg.ProduceRequestTopicPartition{{Records: make([]byte, 1<<20)}}},
			}}, 1)
			b.SetBytes(int64(len(request)))
			b.ReportAllocs()
			room := make(chan struct{}, 5)
			wg.Go(func() {
				var answer [8]byte
				for {
					if _, err := io.ReadFull(conn, answer[:]); err != nil {
						return
					}
					<-room
				}
			})
			b.ResetTimer()
			for i := range b.N {
				room <- struct{}{}
				binary.BigEndian.PutUint32(request[8:], uint32(i))
				if _, err := conn.Write(request); err != nil {
					b.Fatal(err)
				}
			}
			for range cap(room) { // until the last one is answered
				room <- struct{}{}
			}
		})
	}
}

func benchListener(b *testing.B) net.Listener {
	b.Helper()
	l, err := (&net.ListenConfig{}).Listen(b.Context(), "tcp", "127.0.0.1:0")
	require.NoError(b, err)
	return l
}
