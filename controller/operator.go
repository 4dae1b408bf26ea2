package controller

import (
	"context"
	"errors"
	"fmt"

	"github.com/causeway-mirror/causeway/helix"
	"github.com/causeway-mirror/causeway/operator"
	"github.com/causeway-mirror/causeway/route"
)

// What operators ask of topics and partitions is written into the cluster's tree. The workers follow it there: settings hold for whoever runs a
// partition, a command is carried out by the one who does, and removed by him.

// mirrored says whether a topic is there.
func (s *State) mirrored(topic string) error {
	if _, ok := s.Topics[topic]; ok {
		return nil
	}
	if s.Torn[topic] {
		return &InvalidError{Key: "topic", Value: topic, Reason: "its ideal state in ZooKeeper can't be read: repair it, or remove the topic and add it again"}
	}
	return &NotFoundError{What: "topic", Name: topic}
}

// has says whether a partition is there.
func (s *State) has(p route.Partition) error {
	if s.Torn[p.Topic] {
		return s.mirrored(p.Topic)
	}
	if topic, ok := s.Topics[p.Topic]; !ok || p.Partition < 0 || p.Partition >= topic.Partitions {
		return &NotFoundError{What: "partition", Name: p.String()}
	}
	return nil
}

// Paused says whether a topic as a whole is paused.
func (s *State) Paused(topic string) bool { return s.Settings[topic].Paused }

// PauseTopic stops the mirroring of all partitions of a topic where they are, or lets them go on; those that are taken off by themselves stay so.
// *NotFoundError.
func (t *Term) PauseTopic(ctx context.Context, topic string, on bool) error {
	return t.configure(ctx, topic, func(s *operator.Topic) { s.Paused = on })
}

// LimitTopic bounds what each worker takes of a topic. *NotFoundError, *InvalidError.
func (t *Term) LimitTopic(ctx context.Context, topic string, l operator.Limits) error {
	if err := invalid(l.Validate()); err != nil {
		return err
	}
	return t.configure(ctx, topic, func(s *operator.Topic) { s.Limits = l })
}

// LimitPartition bounds what is taken of a partition. *NotFoundError, *InvalidError.
func (t *Term) LimitPartition(ctx context.Context, p route.Partition, l operator.Limits) error {
	if err := t.cluster.State().has(p); err != nil {
		return err
	}
	if err := invalid(l.Validate()); err != nil {
		return err
	}
	return t.configure(ctx, p.Topic, func(s *operator.Topic) {
		own := s.Partitions[p.Partition]
		own.Limits = l
		s.Set(p.Partition, own)
	})
}

// configure changes what holds for a topic. In turn with others, so that none of it outlives a topic that is just deleted.
func (t *Term) configure(ctx context.Context, topic string, change func(*operator.Topic)) error {
	return t.change(ctx, func(s *State) error {
		if err := s.mirrored(topic); err != nil {
			return err
		}
		return t.cluster.Configure(ctx, topic, change)
	})
}

// Reset has the position of a partition set by whoever runs it. Where the source is known an offset beyond its end is refused; what else is out of
// range the worker refuses, with an event. *NotFoundError, *InvalidError.
func (t *Term) Reset(ctx context.Context, p route.Partition, to operator.Place) error {
	if err := t.cluster.State().has(p); err != nil {
		return err
	}
	if at, ok := to.Offset(); ok && t.deps.Source != nil {
		ends, err := t.deps.Source.Ends(ctx, []route.Partition{p})
		if err != nil {
			return fmt.Errorf("read the source's end: %w", err)
		}
		if end, known := ends[p]; known && at > end {
			return &InvalidError{Key: "to", Value: at, Reason: fmt.Sprintf("the source ends at %d", end)}
		}
	}
	return t.command(ctx, p, operator.Command{To: &to})
}

// Retry has a partition that stands still tried at once by whoever runs it, and brings it out of ERROR. *NotFoundError.
func (t *Term) Retry(ctx context.Context, p route.Partition) error {
	s := t.cluster.State()
	if err := s.has(p); err != nil {
		return err
	}
	topic := s.Topics[p.Topic]
	if owner := topic.Owner(p.Partition); s.Views[p.Topic][p.Partition][owner] == Failed {
		// Refused: it is not in ERROR any more, or about to leave it.
		if err := t.cluster.Reset(ctx, owner, p.Topic, p.Partition); err != nil && !errors.Is(err, helix.ErrRefused) {
			return fmt.Errorf("bring %s out of ERROR on %s: %w", p, owner, err)
		}
	}
	return t.command(ctx, p, operator.Command{})
}

// command leaves a command for whoever runs the partition.
func (t *Term) command(ctx context.Context, p route.Partition, c operator.Command) error {
	return t.change(ctx, func(s *State) error {
		if err := s.has(p); err != nil {
			return err
		}
		return t.cluster.Command(ctx, p, c)
	})
}

// invalid gives an operator's error the meaning that it has here.
func invalid(err error) error {
	var one *operator.InvalidError
	if errors.As(err, &one) {
		return &InvalidError{Key: one.Key, Value: one.Value, Reason: one.Reason}
	}
	return err
}
