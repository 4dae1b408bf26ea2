package connector

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/causeway-mirror/causeway/batch"
	"github.com/causeway-mirror/causeway/cluster"
	"github.com/causeway-mirror/causeway/letters"
	"github.com/causeway-mirror/causeway/mirror"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/wire"
)

// bury writes the record of a to the dead-letter topic of its source topic, and returns that topic's name.
func (c *Connector) bury(ctx context.Context, t *pair, at offsets.Checkpoint, a mirror.Anew) (topic string, err error) {
	topic = letters.Topic(c.cfg.DeadLetter, at.Partition.Topic)
	if topic == t.topic.Target {
		return topic, &haltError{fmt.Errorf("dead_letter.topic: %s is the target topic itself", topic)}
	}
	if c.renewals.isBuried(at.Partition, recordOf(a)) { // and what came then failed
		return topic, nil
	}
	number, _ := t.align.Target(at.Partition.Partition)
	letter, err := letters.Make(a.Record, letters.Origin{
		Cluster: c.deps.Source.Name, Source: at.Partition, Offset: a.At, Target: route.Partition{Topic: t.topic.Target, Partition: number},
		Reason: a.Kind + ": " + a.Why,
	})
	if err == nil {
		err = c.post(ctx, t, topic, at.Partition.Partition, letter)
	}
	if errors.Is(err, wire.ErrTooLarge) { // the topic is for what is too large elsewhere
		to := strconv.Itoa((len(letter) + limitStep - 1) / limitStep * limitStep)
		if err = c.admin.target.SetTopicConfig(ctx, topic, maxMessage, to); err == nil {
			err = c.post(ctx, t, topic, at.Partition.Partition, letter)
		}
	}
	if err != nil {
		return topic, unburied(fmt.Errorf("write the record at offset %d to dead-letter topic %s: %w", a.At, topic, err))
	}
	c.renewals.bury(at.Partition, recordOf(a))
	return topic, nil
}

// unburied is why a dead letter can't be written; a reason that time won't mend halts the partition.
func unburied(err error) error {
	if errors.Is(err, wire.ErrRefused) || errors.Is(err, wire.ErrTooLarge) || cluster.Classify(err) == cluster.Authorization {
		return &haltError{err}
	}
	return err
}

// post writes a batch to the partition of a topic that stands for a source partition, and makes the topic if it may.
func (c *Connector) post(ctx context.Context, t *pair, topic string, number int32, b batch.Batch) error {
	m, err := c.target.Metadata(ctx, topic)
	if err != nil {
		return err
	}
	parts := m.Topics[topic].Partitions
	if len(parts) == 0 && c.cfg.CreateTopics {
		if err = c.admin.target.CreateTopic(ctx, cluster.TopicSpec{Name: topic, Partitions: int32(len(t.target.Partitions)), ReplicationFactor: -1}); err != nil {
			return uncreated(err)
		}
		if m, err = c.target.Metadata(ctx, topic); err != nil {
			return err
		}
		parts = m.Topics[topic].Partitions
	}
	if len(parts) == 0 {
		return cmpErr(m.Topics[topic].Err)
	}
	to := route.Partition{Topic: topic, Partition: number % int32(len(parts))}
	broker, err := leader(m.Topics[topic], to)
	if err != nil {
		return err
	}
	return c.target.Write(ctx, broker, to, b)
}

// DeadLetters lists those of a source topic that were not put back. See letters.Box.
func (c *Connector) DeadLetters(ctx context.Context, source string) ([]letters.Letter, error) {
	return c.admin.letters.List(ctx, source, letters.Topic(c.cfg.DeadLetter, source))
}

// PutBack writes the dead letters of a source topic to where they were refused, and gives the name of the topic that they stand on. See
// letters.Box.
func (c *Connector) PutBack(ctx context.Context, source string) (topic string, r letters.Result, err error) {
	topic = letters.Topic(c.cfg.DeadLetter, source)
	r, err = c.admin.letters.PutBack(ctx, source, topic)
	return topic, r, err
}
