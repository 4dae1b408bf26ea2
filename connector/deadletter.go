package connector

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/causeway-mirror/causeway/batch"
	"github.com/causeway-mirror/causeway/cluster"
	"github.com/causeway-mirror/causeway/mirror"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/wire"
)

// A dead letter is a record that its target topic refuses, on a topic of its own. It is acknowledged there with acks=all before anything is told
// or stored of it. Who dies in between has it written again by the next owner: a dead letter may come twice, and its headers say that it is the same.

// Headers of a dead letter, behind those of the record. Numbers are decimal.
const (
	headerCluster   = "causeway.source.cluster"
	headerTopic     = "causeway.source.topic"
	headerPartition = "causeway.source.partition"
	headerOffset    = "causeway.source.offset"
	// headerTimestamp is in ms since 1970. The dead letter's own is when it became one, since the old one may be what was refused.
	headerTimestamp = "causeway.source.timestamp"
	headerTarget    = "causeway.target.topic"
	headerReason    = "causeway.reason"
)

// topicPlaceholder stands for the source topic in the name of a dead-letter topic.
const topicPlaceholder = "{topic}"

// bury writes the record of a to the dead-letter topic of its source topic, and returns that topic's name.
func (c *Connector) bury(ctx context.Context, t *pair, at offsets.Checkpoint, a mirror.Anew) (topic string, err error) {
	topic = strings.ReplaceAll(c.cfg.DeadLetter, topicPlaceholder, at.Partition.Topic)
	if topic == t.topic.Target {
		return topic, &haltError{fmt.Errorf("dead_letter.topic: %s is the target topic itself", topic)}
	}
	if c.renewals.isBuried(at.Partition, recordOf(a)) { // and what came then failed
		return topic, nil
	}
	letter, err := c.letter(t, at.Partition, a)
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

// letter is a batch of the record with where it comes from.
func (c *Connector) letter(t *pair, p route.Partition, a mirror.Anew) (batch.Batch, error) {
	var w batch.Rewriter
	pieces, err := w.Rewrite([]batch.Batch{a.Record}, batch.Options{Map: func(r *batch.Record) (batch.Verdict, error) {
		r.Headers = append(r.Headers[:len(r.Headers):len(r.Headers)],
			batch.Header{Key: headerCluster, Value: []byte(c.deps.Source.Name)},
			batch.Header{Key: headerTopic, Value: []byte(p.Topic)},
			batch.Header{Key: headerPartition, Value: decimal(int64(p.Partition))},
			batch.Header{Key: headerOffset, Value: decimal(int64(a.At))},
			batch.Header{Key: headerTimestamp, Value: decimal(r.Timestamp)},
			batch.Header{Key: headerTarget, Value: []byte(t.topic.Target)},
			batch.Header{Key: headerReason, Value: []byte(a.Kind + ": " + a.Why)},
		)
		r.Timestamp = time.Now().UnixMilli()
		return batch.Changed, nil
	}})
	if err != nil || len(pieces) != 1 {
		return nil, fmt.Errorf("make a dead letter of %d batches: %w", len(pieces), err)
	}
	return pieces[0].Batch, nil
}

func decimal(n int64) []byte { return strconv.AppendInt(nil, n, 10) }

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
