package producer

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/wire"
)

// received is one batch that a broker got.
type received struct {
	broker, conn int32
	request      int // counted over all brokers
	acks         int16
	part         route.Partition
	number       uint64
}

// target is a cluster of scripted brokers. They lead whom the test says, remember what they got, and answer as the test wants.
type target struct {
	t     testing.TB
	done  chan struct{}
	wg    sync.WaitGroup
	addrs []string

	mu       sync.Mutex
	leaders  map[route.Partition]int32
	conns    map[int32][]net.Conn // by broker
	accepted int32
	requests int
	got      []received
	asked    int                          // DescribeProducers requests
	logs     map[route.Partition][][]byte // one batch of one record each
	reads    map[route.Partition][]int64  // positions that were fetched from
	// hold is called, without the lock, before a Fetch request is answered; it may block.
	hold func(route.Partition)
	// before is called, without the lock, before a Produce request is answered; it may block. It gives the error of each partition.
	before func(broker int32, req *kmsg.ProduceRequest) func(route.Partition) error
	cut    func(broker int32) bool // says that a connection is to be cut instead of answering
	// throttle is how long a connection is not read after the answer to a Produce request, which says so.
	throttle time.Duration
}

func newTarget(t testing.TB, brokers int) *target {
	t.Helper()
	k := &target{t: t, done: make(chan struct{}), leaders: map[route.Partition]int32{}, conns: map[int32][]net.Conn{}, logs: map[route.Partition][][]byte{}, reads: map[route.Partition][]int64{}}
	for id := range int32(brokers) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		k.addrs = append(k.addrs, l.Addr().String())
		k.wg.Go(func() { k.accept(id, l) })
		t.Cleanup(func() { _ = l.Close() })
	}
	t.Cleanup(k.close)
	return k
}

func (k *target) close() {
	close(k.done)
	for id := range k.addrs {
		k.drop(int32(id))
	}
}

// drop cuts all connections to a broker.
func (k *target) drop(broker int32) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.conns[broker] {
		_ = c.Close()
	}
	k.conns[broker] = nil
}

func (k *target) accept(id int32, l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		k.mu.Lock()
		k.accepted++
		number := k.accepted
		k.conns[id] = append(k.conns[id], c)
		k.mu.Unlock()
		k.wg.Go(func() {
			defer c.Close()
			in := bufio.NewReader(c)
			for {
				if k.serve(id, number, in, c) != nil {
					return
				}
			}
		})
	}
}

// serve answers one request.
func (k *target) serve(id, conn int32, in *bufio.Reader, out io.Writer) error {
	var size [4]byte
	if _, err := io.ReadFull(in, size[:]); err != nil {
		return err
	}
	b := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(in, b); err != nil {
		return err
	}
	be := binary.BigEndian
	req := kmsg.RequestForKey(int16(be.Uint16(b)))
	req.SetVersion(int16(be.Uint16(b[2:])))
	corr := b[4:8]
	body := b[10+max(0, int(int16(be.Uint16(b[8:])))):]
	if req.IsFlexible() {
		body = body[1:]
	}
	if err := req.ReadFrom(body); err != nil {
		return err
	}
	resp := k.answer(id, conn, req)
	if resp == nil {
		return io.EOF
	}
	a := append([]byte{0, 0, 0, 0}, corr...)
	if resp.IsFlexible() && resp.Key() != 18 {
		a = append(a, 0)
	}
	a = resp.AppendTo(a)
	be.PutUint32(a, uint32(len(a)-4))
	_, err := out.Write(a)
	if p, ok := resp.(*kmsg.ProduceResponse); ok && p.ThrottleMillis > 0 {
		select {
		case <-time.After(time.Duration(p.ThrottleMillis) * time.Millisecond):
		case <-k.done:
		}
	}
	return err
}

func (k *target) answer(id, conn int32, req kmsg.Request) kmsg.Response {
	resp := req.ResponseKind()
	resp.SetVersion(req.GetVersion())
	switch q := req.(type) {
	case *kmsg.ApiVersionsRequest:
		for key := range int16(kmsg.MaxKey + 1) {
			if r := kmsg.RequestForKey(key); r != nil {
				v := min(r.MaxVersion(), map[int16]int16{0: 9, 3: 9, 18: 3}[key]+map[bool]int16{true: 99}[key != 0 && key != 3 && key != 18])
				resp.(*kmsg.ApiVersionsResponse).ApiKeys = append(resp.(*kmsg.ApiVersionsResponse).ApiKeys, kmsg.ApiVersionsResponseApiKey{ApiKey: key, MaxVersion: v})
			}
		}
	case *kmsg.MetadataRequest:
		k.metadata(resp.(*kmsg.MetadataResponse))
	case *kmsg.DescribeProducersRequest:
		k.mu.Lock()
		k.asked++
		k.mu.Unlock()
		for _, t := range q.Topics {
			a := kmsg.DescribeProducersResponseTopic{Topic: t.Topic}
			for _, p := range t.Partitions {
				a.Partitions = append(a.Partitions, kmsg.DescribeProducersResponseTopicPartition{Partition: p})
			}
			resp.(*kmsg.DescribeProducersResponse).Topics = append(resp.(*kmsg.DescribeProducersResponse).Topics, a)
		}
	case *kmsg.ListOffsetsRequest:
		for _, t := range q.Topics {
			a := kmsg.ListOffsetsResponseTopic{Topic: t.Topic}
			for _, p := range t.Partitions {
				end := 0
				if p.Timestamp == wire.AtEnd {
					k.with(func() { end = len(k.logs[route.Partition{Topic: t.Topic, Partition: p.Partition}]) })
				}
				a.Partitions = append(a.Partitions, kmsg.ListOffsetsResponseTopicPartition{Partition: p.Partition, Offset: int64(end)})
			}
			resp.(*kmsg.ListOffsetsResponse).Topics = append(resp.(*kmsg.ListOffsetsResponse).Topics, a)
		}
	case *kmsg.FetchRequest:
		k.fetch(q, resp.(*kmsg.FetchResponse))
	case *kmsg.ProduceRequest:
		if !k.produce(id, conn, q, resp.(*kmsg.ProduceResponse)) {
			return nil
		}
	}
	return resp
}

func (k *target) metadata(resp *kmsg.MetadataResponse) {
	for i, addr := range k.addrs {
		host, port, _ := net.SplitHostPort(addr)
		n, _ := strconv.Atoi(port)
		resp.Brokers = append(resp.Brokers, kmsg.MetadataResponseBroker{NodeID: int32(i), Host: host, Port: int32(n)})
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	topics := map[string][]kmsg.MetadataResponseTopicPartition{}
	for p, leader := range k.leaders {
		topics[p.Topic] = append(topics[p.Topic], kmsg.MetadataResponseTopicPartition{Partition: p.Partition, Leader: leader})
	}
	for name, parts := range topics {
		resp.Topics = append(resp.Topics, kmsg.MetadataResponseTopic{Topic: new(name), Partitions: parts})
	}
}

func (k *target) produce(id, conn int32, q *kmsg.ProduceRequest, resp *kmsg.ProduceResponse) bool {
	k.mu.Lock()
	before, cut := k.before, k.cut != nil && k.cut(id)
	resp.ThrottleMillis = int32(k.throttle.Milliseconds())
	k.requests++
	for _, t := range q.Topics {
		a := kmsg.ProduceResponseTopic{Topic: t.Topic}
		for _, p := range t.Partitions {
			part := route.Partition{Topic: t.Topic, Partition: p.Partition}
			number := binary.BigEndian.Uint64(p.Records)
			k.got = append(k.got, received{id, conn, k.requests, q.Acks, part, number})
			r := kmsg.ProduceResponseTopicPartition{Partition: p.Partition, BaseOffset: int64(number)}
			if k.leaders[part] != id {
				r.ErrorCode = kerr.NotLeaderForPartition.Code
			}
			a.Partitions = append(a.Partitions, r)
		}
		resp.Topics = append(resp.Topics, a)
	}
	k.mu.Unlock()
	if cut {
		return false
	}
	if before == nil {
		return true
	}
	fails := before(id, q)
	for i := range resp.Topics {
		for j := range resp.Topics[i].Partitions {
			p := &resp.Topics[i].Partitions[j]
			if err := fails(route.Partition{Topic: resp.Topics[i].Topic, Partition: p.Partition}); err != nil {
				p.ErrorCode = err.(*kerr.Error).Code //nolint:errorlint // the test gives nothing else
			}
		}
	}
	return true
}

// fetch gives one batch at a time.
func (k *target) fetch(q *kmsg.FetchRequest, resp *kmsg.FetchResponse) {
	at := &q.Topics[0].Partitions[0]
	part := route.Partition{Topic: q.Topics[0].Topic, Partition: at.Partition}
	p := kmsg.NewFetchResponseTopicPartition()
	p.Partition = at.Partition
	k.mu.Lock()
	hold, log := k.hold, k.logs[part]
	k.reads[part] = append(k.reads[part], at.FetchOffset)
	k.mu.Unlock()
	if hold != nil {
		hold(part)
	}
	if int(at.FetchOffset) < len(log) {
		p.RecordBatches = log[at.FetchOffset]
	}
	resp.Topics = []kmsg.FetchResponseTopic{{Topic: part.Topic, Partitions: []kmsg.FetchResponseTopicPartition{p}}}
}

func (k *target) received() []received {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]received(nil), k.got...)
}

func (k *target) with(fn func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	fn()
}
