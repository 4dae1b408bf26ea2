package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/causeway-mirror/causeway/route"
)

var errNoBrokers = errors.New("the answer lists no brokers: the one asked has not joined its cluster yet")

// Metadata asks who leads which partition, of the topics named or of all. It asks brokers in turn until one answers: those connected
// first, bootstrap addresses last. No topic is created by asking.
func (c *Client) Metadata(ctx context.Context, topics ...string) (*Metadata, error) {
	return c.metadata(ctx, topics)
}

// metadata takes nil for all topics and an empty list for none.
func (c *Client) metadata(ctx context.Context, topics []string) (*Metadata, error) {
	req := kmsg.NewPtrMetadataRequest()
	if topics != nil {
		req.Topics = make([]kmsg.MetadataRequestTopic, 0, len(topics))
	}
	for _, name := range topics {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = new(name)
		req.Topics = append(req.Topics, t)
	}
	var resp *kmsg.MetadataResponse
	_, err := c.askAny(ctx, req, func(r kmsg.Response) error {
		var ok bool
		if resp, ok = r.(*kmsg.MetadataResponse); !ok {
			panic("BUG: Metadata is answered by something else")
		}
		if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
			return err
		}
		if len(resp.Brokers) == 0 {
			return errNoBrokers
		}
		return c.belongs(resp.ClusterID)
	})
	if err != nil {
		return nil, fmt.Errorf("ask for metadata: %w", err)
	}
	m := &Metadata{Brokers: make(map[int32]Broker, len(resp.Brokers)), Topics: make(map[string]TopicMetadata, len(resp.Topics))}
	if resp.ClusterID != nil {
		m.ClusterID = *resp.ClusterID
	}
	order := make([]int32, 0, len(resp.Brokers))
	brokers := make(map[int32]Broker, len(resp.Brokers))
	for _, b := range resp.Brokers {
		known := Broker{ID: b.NodeID, Addr: net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port)))}
		if b.Rack != nil {
			known.Rack = *b.Rack
		}
		m.Brokers[b.NodeID] = known
		brokers[b.NodeID] = known
		order = append(order, b.NodeID)
	}
	c.learn(order, brokers)
	for i := range resp.Topics {
		if t := &resp.Topics[i]; t.Topic != nil {
			m.Topics[*t.Topic] = topicMetadata(t)
		}
	}
	return m, nil
}

func topicMetadata(t *kmsg.MetadataResponseTopic) TopicMetadata {
	out := TopicMetadata{
		Name: *t.Topic, ID: route.TopicID(t.TopicID), Internal: t.IsInternal, Err: kerr.ErrorForCode(t.ErrorCode),
		Partitions: make([]PartitionMetadata, 0, len(t.Partitions)),
	}
	for _, p := range t.Partitions {
		out.Partitions = append(out.Partitions, PartitionMetadata{
			Partition: p.Partition, Leader: p.Leader, LeaderEpoch: p.LeaderEpoch,
			Replicas: p.Replicas, ISR: p.ISR, Err: kerr.ErrorForCode(p.ErrorCode),
		})
	}
	return out
}
