package zk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	zookeeper "github.com/go-zookeeper/zk"

	"github.com/causeway-mirror/causeway/route"
)

// Partitions lists the partitions of which an offset or a checkpoint is stored, by topic and number, uReplicator's included. Nodes whose
// name is no number are not ours and are left out.
func (s *Store) Partitions(ctx context.Context) ([]route.Partition, error) {
	var parts []route.Partition
	err := s.session.read(ctx, "list checkpoints", func(ctx context.Context) error {
		parts = nil
		if err := s.sync(ctx); err != nil {
			return err
		}
		for _, root := range []string{s.at.offsets(), s.at.causeway()} {
			found, err := s.partitionsBelow(ctx, root)
			if err != nil {
				return err
			}
			parts = append(parts, found...)
		}
		return nil
	})
	slices.SortFunc(parts, route.Partition.Compare)
	return slices.Compact(parts), err
}

// partitionsBelow lists the partitions that have a node below a root's topics.
func (s *Store) partitionsBelow(ctx context.Context, root string) (parts []route.Partition, err error) {
	topics, err := s.children(ctx, root)
	if err != nil {
		return nil, err
	}
	numbers := make([][]string, len(topics))
	err = each(ctx, len(topics), func(ctx context.Context, i int) (err error) {
		numbers[i], err = s.children(ctx, root+"/"+topics[i])
		return err
	})
	for i, topic := range topics {
		for _, text := range numbers[i] {
			if n, err := strconv.ParseInt(text, 10, 32); err == nil && n >= 0 && strconv.FormatInt(n, 10) == text {
				parts = append(parts, route.Partition{Topic: topic, Partition: int32(n)})
			}
		}
	}
	return parts, err
}

// children names the children of a node, none if it is not there.
func (s *Store) children(ctx context.Context, path string) ([]string, error) {
	names, err := call(ctx, s.session, func(c *zookeeper.Conn) ([]string, error) {
		names, _, err := c.Children(path)
		return names, err
	})
	switch {
	case errors.Is(err, zookeeper.ErrNoNode):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("list children of node %s: %w", path, err)
	}
	return names, nil
}
