package zk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	zookeeper "github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

// readAhead is how many reads are under way at once. The library keeps their order on one connection, so more only cost memory.
const readAhead = 128

// absent is the version of a node that is not there.
const absent = -1

// node is what was read of a node.
type node struct {
	data    []byte
	version int32 // absent if there is none
}

// entry is what is stored of one partition.
type entry struct {
	checkpoint  *offsets.Checkpoint // nil if nothing is
	offset      route.Offset        // what the plain node holds
	plain, rest int32               // versions of the two nodes
	cached      bool                // remembered, so that somebody may have changed it since
	err         error               // a *NodeError: what is stored can't be read
}

func (s *Store) get(ctx context.Context, path string) (node, error) {
	n, err := call(ctx, s.session, func(c *zookeeper.Conn) (node, error) {
		data, stat, err := c.Get(path)
		if err != nil {
			return node{}, err
		}
		return node{data, stat.Version}, nil
	})
	switch {
	case errors.Is(err, zookeeper.ErrNoNode):
		return node{version: absent}, nil
	case err != nil:
		return n, fmt.Errorf("read node %s: %w", path, err)
	}
	return n, nil
}

// sync has the server that we are connected to catch up with the leader, and looks whether the place of the store is there: what a slip of the
// pen names holds nothing, and must not be taken for a store that holds nothing yet.
func (s *Store) sync(ctx context.Context) error {
	_, err := call(ctx, s.session, func(c *zookeeper.Conn) (string, error) { return c.Sync(s.at.group) })
	if err != nil || s.root == "" {
		return err
	}
	found, err := call(ctx, s.session, func(c *zookeeper.Conn) (bool, error) {
		found, _, err := c.Exists(s.root)
		return found, err
	})
	if err == nil && !found {
		err = s.noRoot()
	}
	if err == nil {
		s.rootless.Store(false)
	}
	return err
}

// noRoot is the error of a place that is not there. It is logged once: who waits for the store does not say why.
func (s *Store) noRoot() error {
	err := fmt.Errorf("node %s: %w", s.root, errNoRoot)
	if !s.rootless.Swap(true) {
		s.log.Error("positions can be neither read nor stored", "zookeeper", s.session.cfg.Address, "err", err)
	}
	return err
}

// each calls read for 0 to n-1, many at once, so that their requests share round trips. The first error ends it.
func each(ctx context.Context, n int, read func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readAhead)
	for i := range n {
		group.Go(func() error { return read(ctx, i) })
	}
	return group.Wait()
}

// fetch reads what is stored of partitions, now, and remembers it. Only a lost connection is an error of the whole.
func (s *Store) fetch(ctx context.Context, parts []route.Partition) (map[route.Partition]entry, error) {
	if err := s.sync(ctx); err != nil {
		return nil, err
	}
	read := make([]entry, len(parts))
	err := each(ctx, len(parts), func(ctx context.Context, i int) (err error) {
		read[i], err = s.readPartition(ctx, parts[i])
		return err
	})
	if err != nil {
		return nil, err
	}
	entries := make(map[route.Partition]entry, len(parts))
	for i, p := range parts {
		entries[p] = read[i]
	}
	if err := s.missing(ctx, entries); err != nil {
		return nil, err
	}
	s.cache.put(entries)
	return entries, nil
}

// readPartition reads the two nodes of a partition. They change together but are read one after the other, so a difference counts only if
// both were still the same when they were read again.
func (s *Store) readPartition(ctx context.Context, p route.Partition) (entry, error) {
	var before [2]int32
	for again := false; ; again = true {
		plain, err := s.get(ctx, s.at.plain(p))
		if err != nil {
			return denied(s.at.plain(p), err)
		}
		rest, err := s.get(ctx, s.at.rest(p))
		if err != nil {
			return denied(s.at.rest(p), err)
		}
		versions := [2]int32{plain.version, rest.version}
		e := s.understand(p, plain, rest)
		agree := e.err == nil && (e.checkpoint == nil || !e.checkpoint.Foreign)
		if agree || again && versions == before {
			return e, nil
		}
		before = versions
	}
}

// denied is the entry of a partition one of whose nodes we may not touch, which is no concern of others; any other error stays one.
func denied(path string, err error) (entry, error) {
	if !errors.Is(err, zookeeper.ErrNoAuth) {
		return entry{}, err
	}
	return entry{err: &NodeError{Path: path, Err: fmt.Errorf("%w: %w", offsets.ErrCorrupt, err)}}, nil
}

// understand makes a checkpoint of what the two nodes hold.
func (s *Store) understand(p route.Partition, plain, rest node) entry {
	e := entry{plain: plain.version, rest: rest.version}
	if plain.version == absent && rest.version == absent {
		return e
	}
	if plain.version == absent {
		e.err = &NodeError{Path: s.at.plain(p), Err: fmt.Errorf(
			"%w: there is a checkpoint at %s but no offset; write here the offset to resume from", offsets.ErrMissing, s.at.rest(p))}
		return e
	}
	if e.offset, e.err = parsePlain(s.at.plain(p), plain.data); e.err != nil {
		return e
	}
	stored := offsets.Checkpoint{Partition: p, SourceOffset: route.NoOffset, ProducerID: -1, ProducerEpoch: -1}
	if rest.version != absent {
		switch err := json.Unmarshal(rest.data, &stored); {
		case err != nil:
			e.err = corrupt(s.at.rest(p), rest.data, err)
			return e
		case stored.Partition != p:
			e.err = corrupt(s.at.rest(p), rest.data, fmt.Errorf("it is the checkpoint of %s", stored.Partition))
			return e
		case stored.SourceOffset == e.offset:
			e.checkpoint = &stored
			return e
		}
	}
	if e.offset < 0 {
		e.err = corrupt(s.at.plain(p), plain.data, errors.New("an offset is at least 0"))
		return e
	}
	e.checkpoint = &offsets.Checkpoint{
		Partition: p, SourceOffset: e.offset, TargetOffset: route.NoOffset, LeaderEpoch: -1, Foreign: true,
		ProducerID: stored.ProducerID, ProducerEpoch: stored.ProducerEpoch,
		SourceTopicID: stored.SourceTopicID, TargetTopicID: stored.TargetTopicID,
	}
	return e
}

// missing marks partitions of which nothing is there although their topic's node says that they were begun. They are read again after that node: one
// that another worker has begun in between was there before it was written there.
func (s *Store) missing(ctx context.Context, entries map[route.Partition]entry) error {
	topics := map[string]*topicNode{}
	for p, e := range entries {
		if e.plain == absent && e.rest == absent {
			topics[p.Topic] = &topicNode{}
		}
	}
	names := slices.Collect(maps.Keys(topics))
	err := each(ctx, len(names), func(ctx context.Context, i int) (err error) {
		*topics[names[i]], err = s.readTopic(ctx, names[i])
		return err
	})
	if err != nil {
		return err
	}
	for p, e := range entries {
		if e.plain != absent || e.rest != absent {
			continue
		}
		t := topics[p.Topic]
		if t.err == nil && t.record.has(p.Partition) {
			if e, err = s.readPartition(ctx, p); err != nil {
				return err
			}
		}
		switch {
		case e.err != nil, e.plain != absent, e.rest != absent:
		case t.err != nil:
			e.err = t.err
		case t.record.has(p.Partition):
			e.err = &NodeError{Path: s.at.plain(p), Err: fmt.Errorf(
				"%w: %s says that it was; write here the offset to resume from", offsets.ErrMissing, s.at.topic(p.Topic))}
		}
		entries[p] = e
	}
	return nil
}

// topicNode is what was read of a topic's node.
type topicNode struct {
	record  topicRecord
	version int32
	err     error // a *NodeError
}

func (s *Store) readTopic(ctx context.Context, topic string) (topicNode, error) {
	n, err := s.get(ctx, s.at.topic(topic))
	if err != nil {
		e, err := denied(s.at.topic(topic), err)
		return topicNode{err: e.err}, err
	}
	t := topicNode{version: n.version}
	t.record, t.err = parseTopic(s.at.topic(topic), n.data)
	return t, nil
}
