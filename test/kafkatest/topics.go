package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/causeway-mirror/causeway/internal/kafkad"
)

// CreateTopic creates a topic and waits until every partition has a leader that serves it: metadata tells of a leader before it has made the log, and
// a producer gives up after a few answers that say so. The brokers do not create topics by themselves.
func (c *Cluster) CreateTopic(t testing.TB, topic string, partitions int, configs map[string]string) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.Bootstrap()...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	values := map[string]*string{}
	for k, v := range configs {
		values[k] = &v
	}
	if _, err := adm.CreateTopic(t.Context(), int32(partitions), int16(c.replicas()), values, topic); err != nil {
		t.Fatalf("create topic %s: %v", topic, err)
	}
	err = kafkad.Poll(t.Context(), kafkad.ReadyWithin, func(ctx context.Context) error {
		topics, err := adm.ListTopics(ctx, topic)
		if err != nil {
			return err
		}
		if err := leaders(topics[topic], partitions); err != nil {
			return err
		}
		ends, err := adm.ListEndOffsets(ctx, topic)
		return errors.Join(err, ends.Error())
	})
	if err != nil {
		t.Fatalf("wait for leaders of topic %s: %v", topic, err)
	}
}

// Remake deletes a topic and makes it anew, and returns when each broker tells of the new one.
func (c *Cluster) Remake(t testing.TB, topic string, partitions int) {
	t.Helper()
	if err := c.RemakeUnder(t.Context(), c.Client(t), topic, partitions, kafkad.ReadyWithin); err != nil {
		t.Fatal(err)
	}
}

// RemakeUnder is Remake while brokers come and go: what fails is tried again for so long.
func (c *Cluster) RemakeUnder(ctx context.Context, cl *kgo.Client, topic string, partitions int, within time.Duration) error {
	adm := kadm.NewClient(cl)
	var was kadm.TopicID
	return kafkad.Poll(ctx, within, func(ctx context.Context) error {
		topics, err := adm.ListTopics(ctx, topic)
		if err != nil {
			return fmt.Errorf("remake topic %s: %w", topic, err)
		}
		id := topics[topic].ID
		if was == (kadm.TopicID{}) {
			was = id
		}
		switch id {
		case was:
			return errors.Join(fmt.Errorf("topic %s is being deleted", topic), remove(ctx, cl, was))
		case kadm.TopicID{}:
			_, err := adm.CreateTopic(ctx, int32(partitions), int16(c.replicas()), nil, topic) // refused until the old one is gone
			return errors.Join(fmt.Errorf("topic %s is being made anew", topic), err)
		default:
			return c.knows(ctx, cl, topic, id)
		}
	})
}

// remove deletes a topic by its id: a request that is sent twice must not delete the next topic of that name, which has been made meanwhile.
func remove(ctx context.Context, cl *kgo.Client, id kadm.TopicID) error {
	req, asked := kmsg.NewPtrDeleteTopicsRequest(), kmsg.NewDeleteTopicsRequestTopic()
	asked.TopicID = id
	req.Topics = append(req.Topics, asked)
	answer, err := req.RequestWith(ctx, cl)
	if err != nil {
		return fmt.Errorf("delete topic %s: %w", id, err)
	}
	for _, t := range answer.Topics {
		err = errors.Join(err, kerr.ErrorForCode(t.ErrorCode))
	}
	return err
}

// knows returns an error unless each broker knows topic by that id and by no other. A producer that hears of a topic's former id first gives
// up all that it is to write.
func (c *Cluster) knows(ctx context.Context, cl *kgo.Client, topic string, id kadm.TopicID) error {
	for _, b := range c.brokers {
		req := kmsg.NewPtrMetadataRequest()
		asked := kmsg.NewMetadataRequestTopic()
		asked.Topic = &topic
		req.Topics = append(req.Topics, asked)
		answer, err := cl.Broker(b.id).Request(ctx, req)
		if err != nil {
			return fmt.Errorf("ask broker %d for topic %s: %w", b.id, topic, err)
		}
		told := answer.(*kmsg.MetadataResponse).Topics //nolint:errcheck,forcetypeassert // a request's answer is of its kind
		if len(told) != 1 || told[0].TopicID != id {
			return fmt.Errorf("broker %d does not know topic %s by its id %s yet", b.id, topic, id)
		}
	}
	return nil
}

// AwaitInSync waits until every replica of the topic is in sync, as it has to be before a test takes the next broker away.
func (c *Cluster) AwaitInSync(t testing.TB, topic string) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.Bootstrap()...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	err = kafkad.Poll(t.Context(), kafkad.ReadyWithin, func(ctx context.Context) error {
		topics, err := adm.ListTopics(ctx, topic)
		if err != nil {
			return err
		}
		for _, p := range topics[topic].Partitions {
			if len(p.ISR) < len(p.Replicas) {
				return fmt.Errorf("partition %d: in sync are %v of %v", p.Partition, p.ISR, p.Replicas)
			}
		}
		return leaders(topics[topic], len(topics[topic].Partitions))
	})
	if err != nil {
		t.Fatalf("wait for replicas of topic %s: %v", topic, err)
	}
}

// leaders returns an error unless topic has so many partitions and each has a leader.
func leaders(topic kadm.TopicDetail, partitions int) error {
	if topic.Err != nil {
		return topic.Err
	}
	if len(topic.Partitions) != partitions {
		return fmt.Errorf("topic has %d partitions", len(topic.Partitions))
	}
	for _, p := range topic.Partitions {
		if p.Err != nil {
			return fmt.Errorf("partition %d: %w", p.Partition, p.Err)
		}
		if p.Leader < 0 {
			return fmt.Errorf("partition %d has no leader", p.Partition)
		}
	}
	return nil
}
