package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/causeway-mirror/causeway/batch"
	"github.com/causeway-mirror/causeway/route"
)

// embeddedTimeout bounds one look into an embedded cluster's log.
const embeddedTimeout = 10 * time.Second

// newEmbedded starts an in-process cluster whose brokers answer DescribeProducers (KIP-664) as Kafka's do. kfake's own answer leaves out
// producers without transactions, and then a mirror that starts again would think its target had lost everything. ctx bounds those answers,
// not the cluster, which lives until Close.
func newEmbedded(ctx context.Context, opts ...kfake.Opt) (*kfake.Cluster, error) {
	c, err := kfake.NewCluster(opts...)
	if err != nil {
		return nil, err
	}
	logs := &scannedLogs{cluster: c, logs: map[route.Partition]*scannedLog{}}
	c.ControlKey(int16(kmsg.DescribeProducers), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		asked, ok := req.(*kmsg.DescribeProducersRequest)
		if !ok {
			return nil, nil, false
		}
		var resp *kmsg.DescribeProducersResponse
		c.SleepControl(func() { resp = logs.describe(ctx, asked) }) // the cluster goes on meanwhile: its log is read over the network
		return resp, nil, true
	})
	return c, nil
}

// scannedLogs remembers how far each partition's log was read, so that each question reads only what is new.
type scannedLogs struct {
	cluster *kfake.Cluster

	mu   sync.Mutex // held for a whole answer
	logs map[route.Partition]*scannedLog
}

// scannedLog holds the last batch of each producer below an offset.
type scannedLog struct {
	topicID [16]byte
	next    int64
	last    map[int64]activeProducer
}

// describe finds the producers of partitions in their logs.
func (s *scannedLogs) describe(ctx context.Context, req *kmsg.DescribeProducersRequest) *kmsg.DescribeProducersResponse {
	ctx, cancel := context.WithTimeout(ctx, embeddedTimeout)
	defer cancel()
	resp := req.ResponseKind().(*kmsg.DescribeProducersResponse) //nolint:errcheck,forcetypeassert // the kind belongs to the request
	s.mu.Lock()
	defer s.mu.Unlock()
	client, err := kgo.NewClient(kgo.SeedBrokers(s.cluster.ListenAddrs()...))
	if err == nil {
		defer client.Close()
	}
	for _, t := range req.Topics {
		topic := kmsg.NewDescribeProducersResponseTopic()
		topic.Topic = t.Topic
		for _, p := range t.Partitions {
			part := kmsg.NewDescribeProducersResponseTopicPartition()
			part.Partition = p
			switch info := s.cluster.PartitionInfo(t.Topic, p); {
			case info == nil:
				part.ErrorCode = kerr.UnknownTopicOrPartition.Code
			case err != nil:
				part.ErrorCode = kerr.UnknownServerError.Code
			default:
				if part.ActiveProducers, err = s.producersLocked(ctx, client, t.Topic, info); err != nil {
					part.ErrorCode = kerr.UnknownServerError.Code
				}
			}
			topic.Partitions = append(topic.Partitions, part)
		}
		resp.Topics = append(resp.Topics, topic)
	}
	return resp
}

type activeProducer = kmsg.DescribeProducersResponseTopicPartitionActiveProducer

// producersLocked reads what is new in a partition's log.
func (s *scannedLogs) producersLocked(ctx context.Context, client *kgo.Client, topic string, info *kfake.PartitionInfo) ([]activeProducer, error) {
	key := route.Partition{Topic: topic, Partition: info.Partition}
	log := s.logs[key]
	if id := s.cluster.TopicInfo(topic); log == nil || id == nil || log.topicID != id.TopicID {
		log = &scannedLog{last: map[int64]activeProducer{}}
		if id != nil {
			log.topicID = id.TopicID
		}
		s.logs[key] = log
	}
	for log.next = max(log.next, info.LogStartOffset); log.next < info.HighWatermark; {
		records, err := fetchRaw(ctx, client, key, info.Leader, log)
		if err != nil {
			return nil, err
		}
		before := log.next
		if err = log.scan(records); err != nil {
			return nil, fmt.Errorf("read %s: %w", key, err)
		}
		if log.next == before {
			return nil, fmt.Errorf("read %s: nothing at offset %d", key, before)
		}
	}
	var all []activeProducer
	for _, id := range sortedKeys(log.last) {
		all = append(all, log.last[id])
	}
	return all, nil
}

func (l *scannedLog) scan(records []byte) error {
	for {
		b, rest, err := batch.Next(records)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, batch.ErrTruncated):
			return nil
		case err != nil:
			return err
		}
		l.next, records = int64(b.NextOffset()), rest
		if b.ProducerID() < 0 || b.Control() {
			continue
		}
		p := kmsg.NewDescribeProducersResponseTopicPartitionActiveProducer()
		p.ProducerID, p.ProducerEpoch, p.LastTimestamp = b.ProducerID(), int32(b.ProducerEpoch()), b.MaxTimestamp()
		p.LastSequence = int32((int64(b.BaseSequence()) + int64(b.LastOffsetDelta())) & math.MaxInt32)
		p.CoordinatorEpoch, p.CurrentTxnStartOffset = -1, -1
		l.last[p.ProducerID] = p
	}
}

// fetchRaw returns batches as they lie in the log.
func fetchRaw(ctx context.Context, client *kgo.Client, at route.Partition, leader int32, log *scannedLog) ([]byte, error) {
	req := kmsg.NewPtrFetchRequest()
	req.MaxBytes, req.SessionEpoch, req.ReplicaID = 16<<20, -1, -1
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.TopicID = at.Topic, log.topicID // the id from version 13 on
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes, p.CurrentLeaderEpoch = at.Partition, log.next, 16<<20, -1
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	raw, err := client.Broker(int(leader)).Request(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", at, err)
	}
	resp, ok := raw.(*kmsg.FetchResponse)
	if !ok || len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return nil, fmt.Errorf("read %s: an answer to something else", at)
	}
	answer := resp.Topics[0].Partitions[0]
	return answer.RecordBatches, kerr.ErrorForCode(answer.ErrorCode)
}
