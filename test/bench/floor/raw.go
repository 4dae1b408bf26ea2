package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"golang.org/x/sync/errgroup"
)

// Positions in a record batch (message format 2) that are read or changed.
const (
	atLength      = 8
	atLeaderEpoch = 12
	atCRC         = 17
	atAttributes  = 21
	atLastDelta   = 23
	atProducerID  = 43
	atEpoch       = 51
	atSequence    = 53
	atCount       = 57
	batchHeader   = 61
)

// copier is one raw copy.
type copier struct {
	options

	counters *counters
	fail     context.CancelCauseFunc // ends the copy; the program with it
	source   topology
	target   topology
	pid      int64
	epoch    int16
	outlets  map[int32]*outlet // by target broker
}

// topology is where the partitions of a topic are.
type topology struct {
	addrs   map[int32]string // by broker
	leaders map[int32]int32  // by partition
}

// copyRaw forwards the batches that are there now, or, following, those that come until ctx ends.
func copyRaw(ctx context.Context, o options, c *counters) error {
	src, err := kgo.NewClient(kgo.SeedBrokers(o.src...))
	if err != nil {
		return fmt.Errorf("create client of the source: %w", err)
	}
	defer src.Close()
	dst, err := kgo.NewClient(kgo.SeedBrokers(o.dst...))
	if err != nil {
		return fmt.Errorf("create client of the target: %w", err)
	}
	defer dst.Close()
	spans, err := offsets(ctx, src, o.topic)
	if err != nil {
		return err
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	p := &copier{options: o, counters: c, fail: fail, outlets: map[int32]*outlet{}}
	if p.source, err = locate(ctx, src, o.topic); err != nil {
		return err
	}
	if p.target, err = locate(ctx, dst, o.to); err != nil {
		return err
	}
	init := kmsg.NewPtrInitProducerIDRequest()
	init.TransactionTimeoutMillis = 60_000
	granted, err := init.RequestWith(ctx, dst)
	if err == nil {
		err = kerr.ErrorForCode(granted.ErrorCode)
	}
	if err != nil {
		return fmt.Errorf("get producer id: %w", err)
	}
	p.pid, p.epoch = granted.ProducerID, granted.ProducerEpoch
	return p.run(ctx, spans)
}

// run starts the loops and returns when all is copied, one of them failed or ctx ended. Loops that are left end with the program.
func (p *copier) run(ctx context.Context, spans map[int32]span) error {
	var produces, fetches errgroup.Group
	for _, broker := range p.target.leaders {
		if p.outlets[broker] != nil {
			continue
		}
		out := newOutlet()
		p.outlets[broker] = out
		produces.Go(func() error { return p.produce(broker, out) })
	}
	todo := map[int32]map[int32]*lane{} // by source broker and partition
	for partition, s := range spans {
		if p.follow {
			s = span{next: s.end, end: math.MaxInt64}
		}
		broker := p.source.leaders[partition]
		if s.next == s.end {
			continue
		}
		if todo[broker] == nil {
			todo[broker] = map[int32]*lane{}
		}
		out := p.outlets[p.target.leaders[partition]]
		todo[broker][partition] = out.lane(partition, s)
	}
	for broker, lanes := range todo {
		fetches.Go(func() error { return p.fetch(broker, lanes) })
	}
	done := make(chan error, 1)
	go func() { // owned by run: ends with the copy or the program
		err := fetches.Wait()
		for _, out := range p.outlets {
			out.close()
		}
		done <- errors.Join(err, produces.Wait())
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	}
}

// fetch reads the partitions that one source broker leads.
func (p *copier) fetch(broker int32, lanes map[int32]*lane) error {
	conn, err := dial(p.source.addrs[broker], p.fail)
	if err != nil {
		return err
	}
	for len(lanes) > 0 {
		resp, err := conn.call(p.fetchRequest(lanes))
		if err != nil {
			return err
		}
		fetched, ok := resp.(*kmsg.FetchResponse)
		if !ok {
			return fmt.Errorf("fetch: got %T", resp)
		}
		for _, t := range fetched.Topics {
			for _, part := range t.Partitions {
				if err := kerr.ErrorForCode(part.ErrorCode); err != nil {
					return fmt.Errorf("fetch %s-%d: %w", p.topic, part.Partition, err)
				}
				l := lanes[part.Partition]
				l.outlet.put(l, l.split(part.RecordBatches))
				if l.next >= l.end {
					delete(lanes, part.Partition)
				}
			}
		}
	}
	return nil
}

// fetchRequest asks for every lane that is not full, and waits while all are.
func (p *copier) fetchRequest(lanes map[int32]*lane) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.SetVersion(11)
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes, req.SessionEpoch = 500, 1, 16<<20, -1
	topic := kmsg.NewFetchRequestTopic()
	topic.Topic = p.topic
	for {
		for partition, l := range lanes {
			if l.bytes.Load() > p.laneBytes {
				continue
			}
			part := kmsg.NewFetchRequestTopicPartition()
			part.Partition, part.FetchOffset, part.CurrentLeaderEpoch, part.PartitionMaxBytes = partition, l.next, -1, int32(p.laneBytes)
			topic.Partitions = append(topic.Partitions, part)
		}
		if len(topic.Partitions) > 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	req.Topics = append(req.Topics, topic)
	return req
}

// produce sends what one target broker leads, each request with the first batch of every lane that has one.
func (p *copier) produce(broker int32, out *outlet) error {
	conn, err := dial(p.target.addrs[broker], p.fail)
	if err != nil {
		return err
	}
	slots := make(chan struct{}, p.inFlight)
	var unanswered sync.WaitGroup
	for {
		slots <- struct{}{}
		batches := out.take()
		if batches == nil {
			break
		}
		req := p.produceRequest(batches)
		unanswered.Add(1)
		err := conn.sendProduce(req, func(resp kmsg.Response) {
			if err := refused(resp); err != nil {
				p.fail(err)
			}
			<-slots
			unanswered.Done()
		})
		if err != nil {
			return err
		}
	}
	unanswered.Wait()
	return nil
}

func (p *copier) produceRequest(batches []taken) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.SetVersion(produceVersion)
	req.Acks, req.TimeoutMillis = -1, 30_000
	topic := kmsg.NewProduceRequestTopic()
	topic.Topic = p.to
	p.counters.requests.Add(1)
	for _, b := range batches {
		stamp(b.batch, p.pid, p.epoch, b.sequence)
		part := kmsg.NewProduceRequestTopicPartition()
		part.Partition, part.Records = b.partition, b.batch
		topic.Partitions = append(topic.Partitions, part)
		p.counters.records.Add(int64(count(b.batch)))
		p.counters.bytes.Add(int64(len(b.batch)))
		p.counters.batches.Add(1)
	}
	req.Topics = append(req.Topics, topic)
	return req
}

func refused(resp kmsg.Response) error {
	produced, ok := resp.(*kmsg.ProduceResponse)
	if !ok {
		return fmt.Errorf("produce: got %T", resp)
	}
	for _, t := range produced.Topics {
		for _, part := range t.Partitions {
			if err := kerr.ErrorForCode(part.ErrorCode); err != nil {
				return fmt.Errorf("produce %s-%d: %w", t.Topic, part.Partition, err)
			}
		}
	}
	return nil
}

func count(batch []byte) int32 { return int32(binary.BigEndian.Uint32(batch[atCount:])) }

// stamp makes a batch one of this producer: no transaction, the producer's own timestamp type, id and sequence.
func stamp(batch []byte, pid int64, epoch int16, sequence int32) {
	const transactional, logAppendTime = 1 << 4, 1 << 3
	order := binary.BigEndian
	order.PutUint64(batch, 0)
	order.PutUint32(batch[atLeaderEpoch:], math.MaxUint32)
	order.PutUint16(batch[atAttributes:], order.Uint16(batch[atAttributes:])&^(transactional|logAppendTime))
	order.PutUint64(batch[atProducerID:], uint64(pid))
	order.PutUint16(batch[atEpoch:], uint16(epoch))
	order.PutUint32(batch[atSequence:], uint32(sequence))
	order.PutUint32(batch[atCRC:], crc32.Checksum(batch[atAttributes:], crc32.MakeTable(crc32.Castagnoli)))
}

func locate(ctx context.Context, cl *kgo.Client, topic string) (topology, error) {
	t := topology{addrs: map[int32]string{}, leaders: map[int32]int32{}}
	md, err := kadm.NewClient(cl).Metadata(ctx, topic)
	if err != nil {
		return t, fmt.Errorf("get metadata of %s: %w", topic, err)
	}
	for _, b := range md.Brokers {
		t.addrs[b.NodeID] = b.Host + ":" + strconv.Itoa(int(b.Port))
	}
	if err := md.Topics[topic].Err; err != nil {
		return t, fmt.Errorf("get metadata of %s: %w", topic, err)
	}
	for _, p := range md.Topics[topic].Partitions {
		t.leaders[p.Partition] = p.Leader
	}
	return t, nil
}
