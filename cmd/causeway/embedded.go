package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/causeway-mirror/causeway/batch"
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
	c.ControlKey(int16(kmsg.DescribeProducers), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		asked, ok := req.(*kmsg.DescribeProducersRequest)
		if !ok {
			return nil, nil, false
		}
		var resp *kmsg.DescribeProducersResponse
		c.SleepControl(func() { resp = describeProducers(ctx, c, asked) }) // the cluster goes on meanwhile: its log is read over the network
		return resp, nil, true
	})
	return c, nil
}

// describeProducers finds the producers of partitions in their logs.
func describeProducers(ctx context.Context, c *kfake.Cluster, req *kmsg.DescribeProducersRequest) *kmsg.DescribeProducersResponse {
	ctx, cancel := context.WithTimeout(ctx, embeddedTimeout)
	defer cancel()
	resp := req.ResponseKind().(*kmsg.DescribeProducersResponse) //nolint:errcheck,forcetypeassert // the kind belongs to the request
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
	if err == nil {
		defer client.Close()
	}
	for _, t := range req.Topics {
		topic := kmsg.NewDescribeProducersResponseTopic()
		topic.Topic = t.Topic
		for _, p := range t.Partitions {
			part := kmsg.NewDescribeProducersResponseTopicPartition()
			part.Partition = p
			switch info := c.PartitionInfo(t.Topic, p); {
			case info == nil:
				part.ErrorCode = kerr.UnknownTopicOrPartition.Code
			case err != nil:
				part.ErrorCode = kerr.UnknownServerError.Code
			default:
				if part.ActiveProducers, err = producersIn(ctx, client, t.Topic, info); err != nil {
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

// producersIn reads a partition from start to end and keeps the last batch of each producer.
func producersIn(ctx context.Context, client *kgo.Client, topic string, info *kfake.PartitionInfo) ([]activeProducer, error) {
	last := map[int64]activeProducer{}
	for at := info.LogStartOffset; at < info.HighWatermark; {
		records, err := fetchRaw(ctx, client, topic, info, at)
		if err != nil {
			return nil, err
		}
		before := at
		for {
			b, rest, nextErr := batch.Next(records)
			if nextErr != nil {
				if !errors.Is(nextErr, io.EOF) && !errors.Is(nextErr, batch.ErrTruncated) {
					return nil, nextErr
				}
				break
			}
			at, records = int64(b.NextOffset()), rest
			if b.ProducerID() < 0 || b.Control() {
				continue
			}
			p := kmsg.NewDescribeProducersResponseTopicPartitionActiveProducer()
			p.ProducerID, p.ProducerEpoch, p.LastTimestamp = b.ProducerID(), int32(b.ProducerEpoch()), b.MaxTimestamp()
			p.LastSequence = int32((int64(b.BaseSequence()) + int64(b.LastOffsetDelta())) & math.MaxInt32)
			p.CoordinatorEpoch, p.CurrentTxnStartOffset = -1, -1
			last[p.ProducerID] = p
		}
		if at == before {
			return nil, fmt.Errorf("read %s-%d: nothing at offset %d", topic, info.Partition, at)
		}
	}
	var all []activeProducer
	for _, id := range sortedKeys(last) {
		all = append(all, last[id])
	}
	return all, nil
}

// fetchRaw returns batches as they lie in the log.
func fetchRaw(ctx context.Context, client *kgo.Client, topic string, info *kfake.PartitionInfo, at int64) ([]byte, error) {
	req := kmsg.NewPtrFetchRequest()
	req.MaxBytes, req.SessionEpoch, req.ReplicaID = 16<<20, -1, -1
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.TopicID = topic, topicID(ctx, client, topic)
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes, p.CurrentLeaderEpoch = info.Partition, at, 16<<20, -1
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	raw, err := client.Broker(int(info.Leader)).Request(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("read %s-%d: %w", topic, info.Partition, err)
	}
	resp, ok := raw.(*kmsg.FetchResponse)
	if !ok || len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return nil, fmt.Errorf("read %s-%d: an answer to something else", topic, info.Partition)
	}
	answer := resp.Topics[0].Partitions[0]
	return answer.RecordBatches, kerr.ErrorForCode(answer.ErrorCode)
}

// topicID is needed by fetches from version 13 on.
func topicID(ctx context.Context, client *kgo.Client, topic string) (id [16]byte) {
	req := kmsg.NewPtrMetadataRequest()
	t := kmsg.NewMetadataRequestTopic()
	t.Topic = new(topic)
	req.Topics = append(req.Topics, t)
	resp, err := req.RequestWith(ctx, client)
	if err == nil && len(resp.Topics) == 1 {
		id = resp.Topics[0].TopicID
	}
	return id
}
