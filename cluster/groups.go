package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/IBM/sarama"

	"github.com/causeway-mirror/causeway/route"
)

// Groups lists the consumer groups whose names begin with prefix, in order. Brokers leave out those that we may not describe without a word; if
// none is left that is found out, and told as an error of the class Authorization.
func (a *Admin) Groups(ctx context.Context, prefix string) ([]string, error) {
	return do(ctx, a, "list consumer groups", func(s *session) ([]string, error) {
		names, err := s.groups(prefix)
		if err == nil && len(names) == 0 {
			err = s.mayDescribe(prefix)
		}
		return names, err
	})
}

// GroupNotes reads the metadata of a group's offsets, by topic, of partition 0 of each; topics without any are left out.
func (a *Admin) GroupNotes(ctx context.Context, group string) (map[string]string, error) {
	return do(ctx, a, "read offsets of group "+group, func(s *session) (map[string]string, error) {
		notes := map[string]string{}
		response, err := s.admin.ListConsumerGroupOffsets(group, nil)
		if errors.Is(err, sarama.ErrGroupIDNotFound) { // as some brokers say; others find no offsets
			return notes, nil
		} else if err != nil {
			return nil, err
		}
		for topic, partitions := range response.Blocks {
			if block := partitions[0]; block != nil && block.Metadata != "" {
				notes[topic] = block.Metadata
			}
		}
		return notes, nil
	})
}

// GroupOffsets reads the offsets that a group has committed; none of one that is not there.
func (a *Admin) GroupOffsets(ctx context.Context, group string) (map[route.Partition]route.Offset, error) {
	return do(ctx, a, "read offsets of group "+group, func(s *session) (map[route.Partition]route.Offset, error) {
		all := map[route.Partition]route.Offset{}
		response, err := s.admin.ListConsumerGroupOffsets(group, nil)
		if errors.Is(err, sarama.ErrGroupIDNotFound) { // as some brokers say; others find no offsets
			return all, nil
		} else if err != nil {
			return nil, err
		}
		for topic, partitions := range response.Blocks {
			for p, block := range partitions {
				if block != nil && block.Err == sarama.ErrNoError && block.Offset >= 0 {
					all[route.Partition{Topic: topic, Partition: p}] = route.Offset(block.Offset)
				}
			}
		}
		return all, nil
	})
}

// SaveGroupNotes commits offset 0 with a metadata of its own for partition 0 of each topic, which must exist. The group must have no members. When
// some topics fail, the others are stored.
func (a *Admin) SaveGroupNotes(ctx context.Context, group string, notes map[string]string) error {
	_, err := do(ctx, a, "commit offsets of group "+group, func(s *session) (struct{}, error) {
		var errs []error
		for _, topics := range portions(notes) {
			err := s.commitNotes(group, topics, notes)
			if err != nil && inOtherHands(err) {
				if err = s.client.RefreshCoordinator(group); err == nil {
					err = s.commitNotes(group, topics, notes)
				}
			}
			errs = append(errs, err)
		}
		return struct{}{}, errors.Join(errs...)
	})
	return err
}

// groups asks every broker, since each knows those that it coordinates.
func (s *session) groups(prefix string) ([]string, error) {
	found := map[string]struct{}{}
	for _, broker := range s.client.Brokers() {
		_ = broker.Open(s.client.Config()) // an error means that it is open, or comes back from the request
		response, err := broker.ListGroups(&sarama.ListGroupsRequest{Version: 1})
		if err == nil && response.Err != sarama.ErrNoError {
			err = response.Err
		}
		if err != nil {
			return nil, fmt.Errorf("broker %d: %w", broker.ID(), err)
		}
		for name := range response.Groups {
			if strings.HasPrefix(name, prefix) {
				found[name] = struct{}{}
			}
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// mayDescribe asks a broker, any will do, about a group that need not exist: rights are looked at before anything else.
func (s *session) mayDescribe(group string) error {
	broker := s.client.LeastLoadedBroker()
	if broker == nil {
		return sarama.ErrBrokerNotAvailable
	}
	response, err := broker.DescribeGroups(&sarama.DescribeGroupsRequest{Groups: []string{group}})
	if err != nil {
		return err
	}
	for _, g := range response.Groups {
		if errors.Is(g.Err, sarama.ErrGroupAuthorizationFailed) {
			return g.Err
		}
	}
	return nil
}

func (s *session) commitNotes(group string, topics []string, notes map[string]string) error {
	coordinator, err := s.client.Coordinator(group)
	if err != nil {
		return err
	}
	request := sarama.NewOffsetCommitRequest(s.client.Config(), group)
	for _, topic := range topics {
		request.AddBlockWithLeaderEpoch(topic, 0, 0, -1, 0, notes[topic])
	}
	response, err := coordinator.CommitOffset(request)
	if err != nil {
		return err
	}
	var errs []error
	for topic, partitions := range response.Errors {
		if code := partitions[0]; code != sarama.ErrNoError {
			errs = append(errs, fmt.Errorf("topic %s: %w", topic, code))
		}
	}
	return errors.Join(errs...)
}

// inOtherHands says that another broker coordinates the group, or this one does not yet.
func inOtherHands(err error) bool {
	return errors.Is(err, sarama.ErrNotCoordinatorForConsumer) || errors.Is(err, sarama.ErrConsumerCoordinatorNotAvailable) ||
		errors.Is(err, sarama.ErrOffsetsLoadInProgress)
}

// portionBytes is how much is committed at once: brokers store a commit as one batch, and refuse one that is larger than batches may be.
const portionBytes = 256 << 10

// portions are the topics of notes, in order, as many at a time as may be committed at once.
func portions(notes map[string]string) (portions [][]string) {
	const overhead = 100 // about what a broker adds
	room := 0
	for _, topic := range slices.Sorted(maps.Keys(notes)) {
		size := len(topic) + len(notes[topic]) + overhead
		if size > room {
			portions, room = append(portions, nil), portionBytes
		}
		portions[len(portions)-1] = append(portions[len(portions)-1], topic)
		room -= size
	}
	return portions
}
