package wire

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/causeway-mirror/causeway/internal/backoff"
	"github.com/causeway-mirror/causeway/route"
)

// Times that ListOffsets takes besides milliseconds.
const (
	AtEnd   int64 = -1 // after the last record: the high watermark, or the last stable offset
	AtStart int64 = -2 // the first record that is still there
)

// ListOffsets asks each partition's broker, given in leaders, for the offset at a time: AtEnd, AtStart, or the first record not older
// than so many milliseconds since 1970. With committed, open transactions count as not there. What fails, fails for its partitions
// alone, in their Err; the error is for the end of ctx. Each partition asked for is in the result.
func (c *Client) ListOffsets(ctx context.Context, leaders map[route.Partition]int32, at int64, committed bool) (map[route.Partition]ListedOffset, error) {
	byBroker := make(map[int32][]route.Partition)
	for p, b := range leaders {
		byBroker[b] = append(byBroker[b], p)
	}
	out := make(map[route.Partition]ListedOffset, len(leaders))
	var mu sync.Mutex
	var wg sync.WaitGroup
	for broker, parts := range byBroker {
		wg.Go(func() {
			got, err := c.listOffsets(ctx, broker, parts, at, committed)
			if err == nil {
				err = kerr.UnknownServerError // for those that the answer leaves out
			}
			mu.Lock()
			defer mu.Unlock()
			for _, p := range parts {
				if l, ok := got[p]; ok {
					out[p] = l
				} else {
					out[p] = ListedOffset{Offset: route.NoOffset, LeaderEpoch: -1, Timestamp: -1, Err: err}
				}
			}
		})
	}
	wg.Wait()
	return out, ctx.Err()
}

func (c *Client) listOffsets(ctx context.Context, broker int32, parts []route.Partition, at int64, committed bool) (map[route.Partition]ListedOffset, error) {
	if broker < 0 {
		return nil, kerr.LeaderNotAvailable
	}
	req := kmsg.NewPtrListOffsetsRequest()
	req.TimeoutMillis = clampMillis(c.cfg.RequestTimeout) // where the answer is in tiered storage
	if committed {
		req.IsolationLevel = 1
	}
	for topic, parts := range byTopic(parts) {
		t := kmsg.NewListOffsetsRequestTopic()
		t.Topic = topic
		for _, p := range parts {
			rp := kmsg.NewListOffsetsRequestTopicPartition()
			rp.Partition, rp.Timestamp = p, at
			t.Partitions = append(t.Partitions, rp)
		}
		req.Topics = append(req.Topics, t)
	}
	resp, err := request[*kmsg.ListOffsetsResponse](ctx, c, broker, req)
	if err != nil {
		return nil, err
	}
	out := make(map[route.Partition]ListedOffset, len(parts))
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			out[route.Partition{Topic: t.Topic, Partition: p.Partition}] = ListedOffset{
				Offset: route.Offset(p.Offset), LeaderEpoch: p.LeaderEpoch, Timestamp: p.Timestamp, Err: kerr.ErrorForCode(p.ErrorCode),
			}
		}
	}
	return out, nil
}

// OffsetsForLeaderEpoch asks one broker where leader epochs end, to find out whether a log was truncated (KIP-320). ErrUnsupported when
// the broker does not say which epoch it answers for (before Kafka 2.0).
func (c *Client) OffsetsForLeaderEpoch(ctx context.Context, broker int32, asks []EpochAsk) (map[route.Partition]EpochEnd, error) {
	const answersEpoch = 1
	req := kmsg.NewPtrOffsetForLeaderEpochRequest()
	req.ReplicaID = -1
	index := make(map[string]int)
	for _, a := range asks {
		i, ok := index[a.Partition.Topic]
		if !ok {
			i = len(req.Topics)
			index[a.Partition.Topic] = i
			t := kmsg.NewOffsetForLeaderEpochRequestTopic()
			t.Topic = a.Partition.Topic
			req.Topics = append(req.Topics, t)
		}
		p := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
		p.Partition, p.CurrentLeaderEpoch, p.LeaderEpoch = a.Partition.Partition, a.CurrentLeaderEpoch, a.LeaderEpoch
		req.Topics[i].Partitions = append(req.Topics[i].Partitions, p)
	}
	resp, err := request[*kmsg.OffsetForLeaderEpochResponse](ctx, c, broker, req)
	if err != nil {
		return nil, err
	}
	if resp.Version < answersEpoch {
		return nil, fmt.Errorf("ask for leader epochs: %w", ErrUnsupported)
	}
	out := make(map[route.Partition]EpochEnd, len(asks))
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			out[route.Partition{Topic: t.Topic, Partition: p.Partition}] = EpochEnd{
				LeaderEpoch: p.LeaderEpoch, End: route.Offset(p.EndOffset), Err: kerr.ErrorForCode(p.ErrorCode),
			}
		}
	}
	return out, nil
}

// DescribeProducers asks one broker for the idempotent producers that it remembers of each partition (KIP-664). ErrUnsupported when it
// can't (before Kafka 2.8). Followers answer too, and what they say may be old: it is a hint. Each partition asked for is in the result.
func (c *Client) DescribeProducers(ctx context.Context, broker int32, parts []route.Partition) (map[route.Partition]Producers, error) {
	req := kmsg.NewPtrDescribeProducersRequest()
	for topic, parts := range byTopic(parts) {
		t := kmsg.NewDescribeProducersRequestTopic()
		t.Topic, t.Partitions = topic, parts
		req.Topics = append(req.Topics, t)
	}
	resp, err := request[*kmsg.DescribeProducersResponse](ctx, c, broker, req)
	if err != nil {
		return nil, err
	}
	out := make(map[route.Partition]Producers, len(parts))
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			active := make([]ActiveProducer, 0, len(p.ActiveProducers))
			for _, a := range p.ActiveProducers {
				active = append(active, ActiveProducer{
					ID: a.ProducerID, Epoch: int16(a.ProducerEpoch), LastSequence: a.LastSequence, LastTimestamp: a.LastTimestamp,
				})
			}
			out[route.Partition{Topic: t.Topic, Partition: p.Partition}] = Producers{Active: active, Err: kerr.ErrorForCode(p.ErrorCode)}
		}
	}
	for _, p := range parts {
		if _, ok := out[p]; !ok { // that nothing is said of it does not mean that nothing is there
			out[p] = Producers{Err: kerr.UnknownServerError}
		}
	}
	return out, nil
}

// InitProducerID takes a new producer id, without transactions, from any broker. A broker that has to get a block of ids first says that
// it is loading; it is asked again a few times.
func (c *Client) InitProducerID(ctx context.Context) (id int64, epoch int16, err error) {
	const tries = 6
	wait := backoff.New(c.cfg.RedialBackoff, c.cfg.RedialLimit, newRand())
	for {
		req := kmsg.NewPtrInitProducerIDRequest()
		req.TransactionTimeoutMillis = math.MaxInt32 // means nothing without a transactional id, but must be valid
		resp, err := request[*kmsg.InitProducerIDResponse](ctx, c, -1, req)
		if err != nil {
			return 0, 0, err
		}
		if err = kerr.ErrorForCode(resp.ErrorCode); err == nil {
			return resp.ProducerID, resp.ProducerEpoch, nil
		}
		if !errors.Is(err, kerr.CoordinatorLoadInProgress) || wait.Failures() == tries {
			return 0, 0, fmt.Errorf("take producer id: %w", err)
		}
		if err := wait.Wait(ctx); err != nil {
			return 0, 0, err
		}
	}
}

var errUnanswered = errors.New("the answer does not name the partition")

// Write writes one batch to a partition over the control connection to the broker that leads it, and returns when all replicas in sync have it. It is
// for what is rare: the data path has connections of its own ([Conn.Produce]). Errors: ErrTooLarge, ErrRefused, *LinkError, and the broker's others.
func (c *Client) Write(ctx context.Context, broker int32, p route.Partition, records []byte) error {
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = -1, int32(c.cfg.RequestTimeout.Milliseconds())
	req.Topics = []kmsg.ProduceRequestTopic{{
		Topic: p.Topic, Partitions: []kmsg.ProduceRequestTopicPartition{{Partition: p.Partition, Records: records}},
	}}
	resp, err := request[*kmsg.ProduceResponse](ctx, c, broker, req)
	if err != nil {
		return err
	}
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return fmt.Errorf("write to %s: %w", p, errUnanswered)
	}
	err = kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, kerr.MessageTooLarge), errors.Is(err, kerr.RecordListTooLarge):
		return fmt.Errorf("write to %s: %w: %w", p, ErrTooLarge, err)
	case !kerr.IsRetriable(err):
		return fmt.Errorf("write to %s: %w: %w", p, ErrRefused, err)
	}
	return fmt.Errorf("write to %s: %w", p, err)
}

// request is Request with the answer's type.
func request[R kmsg.Response](ctx context.Context, c *Client, broker int32, req kmsg.Request) (resp R, err error) {
	r, err := c.Request(ctx, broker, req)
	if err != nil {
		return resp, fmt.Errorf("ask %s: %w", kmsg.NameForKey(req.Key()), err)
	}
	resp, ok := r.(R)
	if !ok {
		panic("BUG: " + kmsg.NameForKey(req.Key()) + " is answered by something else")
	}
	return resp, nil
}

func byTopic(parts []route.Partition) map[string][]int32 {
	out := make(map[string][]int32)
	for _, p := range parts {
		out[p.Topic] = append(out[p.Topic], p.Partition)
	}
	return out
}
