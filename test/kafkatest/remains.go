package kafkatest

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// dropEmpty deletes from ends the partitions in which nothing is left from the next offset on: compacted away, with no control record behind.
// A consumer does not tell that from a broker that is slow, so the leaders are asked.
func dropEmpty(ctx context.Context, bootstrap []string, topic string, next, ends map[int32]int64) error {
	// The last version of Fetch that has names of topics is enough, and spares us their ids.
	cl, err := kgo.NewClient(kgo.SeedBrokers(bootstrap...), kgo.MaxVersions(kversion.V2_8_0()))
	if err != nil {
		return fmt.Errorf("create client: %w", err)
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	topics, err := adm.ListTopics(ctx, topic)
	if err != nil {
		return fmt.Errorf("find leaders of %s: %w", topic, err)
	}
	starts, err := adm.ListStartOffsets(ctx, topic)
	if err := errors.Join(err, starts.Error()); err != nil {
		return fmt.Errorf("list starts of %s: %w", topic, err)
	}
	for p := range ends {
		start, _ := starts.Lookup(topic, p)
		from := max(next[p], start.Offset)
		left, err := remains(ctx, cl.Broker(int(topics[topic].Partitions[p].Leader)), topic, p, from)
		if err != nil {
			return fmt.Errorf("look at %s/%d from %d on: %w", topic, p, from, err)
		}
		if !left {
			delete(ends, p)
		}
	}
	return nil
}

// remains says whether the leader has a batch with records from an offset on, up to the last stable one.
func remains(ctx context.Context, leader *kgo.Broker, topic string, p int32, from int64) (bool, error) {
	req := kmsg.NewPtrFetchRequest()
	req.MinBytes, req.MaxWaitMillis, req.MaxBytes, req.IsolationLevel, req.SessionEpoch = 1, 100, 1<<20, 1, -1
	t, part := kmsg.NewFetchRequestTopic(), kmsg.NewFetchRequestTopicPartition()
	t.Topic, part.Partition, part.FetchOffset, part.PartitionMaxBytes = topic, p, from, 1<<20
	t.Partitions = append(t.Partitions, part)
	req.Topics = append(req.Topics, t)
	answer, err := leader.RetriableRequest(ctx, req)
	if err != nil {
		return false, err
	}
	resp, ok := answer.(*kmsg.FetchResponse)
	if !ok || len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return false, fmt.Errorf("the answer %T does not name the partition", answer)
	}
	a := &resp.Topics[0].Partitions[0]
	if err := kerr.ErrorForCode(a.ErrorCode); err != nil {
		return false, err
	}
	var b kmsg.RecordBatch
	for rest := a.RecordBatches; len(rest) > 12 && b.ReadFrom(rest) == nil; rest = rest[min(12+int(b.Length), len(rest)):] {
		if b.NumRecords > 0 {
			return true, nil
		}
	}
	return false, nil
}
