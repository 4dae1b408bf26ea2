package wire

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The second implementation is kmsg's.
func TestProduceFrameEqualsKmsg(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 249) // compact lengths of two bytes
	many := &Produce{Acks: 1, Timeout: 12345 * time.Millisecond}
	for i := range 300 {
		many.Batches = append(many.Batches, ProduceBatch{Topic: fmt.Sprintf("t%d", i/150), Partition: int32(i), Records: make([]byte, i)})
	}
	for name, p := range map[string]*Produce{
		"one": {Acks: -1, Timeout: time.Second, Batches: []ProduceBatch{{Topic: "t", Partition: 7, Records: []byte("abc")}}},
		"several topics": {Acks: -1, Timeout: math.MaxInt64, Batches: []ProduceBatch{
			{Topic: "a", Partition: 1, Records: []byte("1")},
			{Topic: "a", Partition: 0, Records: make([]byte, 100_000)},
			{Topic: long, Partition: 2, Records: make([]byte, 127)},
			{Topic: long, Partition: 3, Records: make([]byte, 128)},
			{Topic: "a", Partition: 4},
		}},
		"many": many,
	} {
		for version := int16(minProduce); version <= maxProduce; version++ {
			for _, corked := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s v%d corked %v", name, version, corked), func(t *testing.T) {
					t.Parallel()
					c, peer := connected(t, DefaultConfig())
					c.versions.newest[keyProduce] = version + 1
					if corked {
						c.out.cork = newCork(c.nc)
					}
					sent := make(chan error, 2)
					go func() {
						for range 2 { // the second one uses the buffers of the first
							sent <- c.Produce(p, func(*kmsg.ProduceResponse, error) {})
						}
					}()
					for corr := int32(1); corr <= 2; corr++ {
						f, err := peer.receive()
						require.NoError(t, err)
						require.Equal(t, kmsg.NewRequestFormatter(kmsg.FormatterClientID("id")).AppendRequest(nil, kmsgProduce(p, version), corr), f.all)
						require.NoError(t, <-sent)
					}
				})
			}
		}
	}
}

func kmsgProduce(p *Produce, version int16) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks, req.TimeoutMillis = version, p.Acks, clampMillis(p.Timeout)
	for i, b := range p.Batches {
		if i == 0 || b.Topic != p.Batches[i-1].Topic {
			req.Topics = append(req.Topics, kmsg.ProduceRequestTopic{Topic: b.Topic})
		}
		t := &req.Topics[len(req.Topics)-1]
		if b.Records == nil {
			b.Records = []byte{} // ours has no null
		}
		t.Partitions = append(t.Partitions, kmsg.ProduceRequestTopicPartition{Partition: b.Partition, Records: b.Records})
	}
	return req
}

func TestTimeoutIsClamped(t *testing.T) {
	t.Parallel()
	require.Equal(t, int32(0), clampMillis(-time.Second))
	require.Equal(t, int32(1500), clampMillis(1500*time.Millisecond))
	require.Equal(t, int32(math.MaxInt32), clampMillis(math.MaxInt64))
}
