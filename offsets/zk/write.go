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

const (
	// A transaction holds so many partitions or bytes at most. ZooKeeper refuses requests of a megabyte.
	mostPartitions = 100
	mostBytes      = 256 << 10
	// rounds is how often in a row a change is decided again because somebody else was first, before there is a pause.
	rounds = 4
	// writeAhead is how many transactions are under way at once.
	writeAhead = 32
)

// change is one checkpoint that somebody wants stored.
type change struct {
	next   offsets.Checkpoint
	decide func(now *offsets.Checkpoint) (offsets.Checkpoint, error) // what to store instead of what is, or why not
	done   bool                                                      // stored, or refused with err
	err    error
}

// write is a change that was decided: what replaces what.
type write struct {
	change *change
	now    entry
	next   offsets.Checkpoint
	text   []byte // next's JSON
}

// apply carries out changes. Every change ends with done; the error is of the whole, and then those that are not done may be stored or not.
func (s *Store) apply(ctx context.Context, op string, changes []*change) error {
	return s.session.retry(ctx, op, func(ctx context.Context) error {
		for range rounds {
			todo := undone(changes)
			if len(todo) == 0 {
				return nil
			}
			writes, err := s.decide(ctx, todo)
			if err != nil {
				return err
			}
			if err := s.write(ctx, writes); err != nil {
				return err
			}
		}
		return errContended
	})
}

// undone are the changes that are left, one of each partition: of two of the same the second builds on the first.
func undone(changes []*change) []*change {
	var todo []*change
	seen := map[route.Partition]bool{}
	for _, c := range changes {
		if !c.done && !seen[c.next.Partition] {
			seen[c.next.Partition] = true
			todo = append(todo, c)
		}
	}
	return todo
}

// decide compares what is wanted with what is stored. What is remembered of that is good enough to write, since the write is conditional,
// but not to refuse.
func (s *Store) decide(ctx context.Context, todo []*change) ([]write, error) {
	entries, err := s.current(ctx, todo)
	if err != nil {
		return nil, err
	}
	var writes []write
	for _, c := range todo {
		now := entries[c.next.Partition]
		next, err := c.next, now.err
		if err == nil {
			next, err = c.decide(now.checkpoint)
		}
		switch {
		case err != nil && now.cached:
			s.cache.forget(c.next.Partition) // it is read in the next round
		case err != nil:
			c.done, c.err = true, err
		case now.checkpoint != nil && now.checkpoint.Equal(next):
			c.done = true
		default:
			text, err := json.Marshal(next)
			if err != nil {
				return nil, err
			}
			writes = append(writes, write{change: c, now: now, next: next, text: text})
		}
	}
	return writes, nil
}

// current gives what is stored of each partition as far as it is remembered, and reads the rest.
func (s *Store) current(ctx context.Context, todo []*change) (map[route.Partition]entry, error) {
	entries := make(map[route.Partition]entry, len(todo))
	var unknown []route.Partition
	for _, c := range todo {
		if e, ok := s.cache.get(c.next.Partition); ok {
			entries[c.next.Partition] = e
		} else {
			unknown = append(unknown, c.next.Partition)
		}
	}
	if len(unknown) == 0 {
		return entries, nil
	}
	read, err := s.fetch(ctx, unknown)
	if err != nil {
		return nil, err
	}
	maps.Copy(entries, read)
	return entries, nil
}

// write sends transactions side by side, but one after the other those of a topic whose own node changes. Changes whose transaction was
// stored are done; the others are to be decided again.
func (s *Store) write(ctx context.Context, writes []write) error {
	var plain []write
	topics := map[string][]write{}
	for _, w := range writes {
		if w.changesTopic() {
			topics[w.next.Partition.Topic] = append(topics[w.next.Partition.Topic], w)
		} else {
			plain = append(plain, w)
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(writeAhead)
	for _, some := range chunks(plain) {
		g.Go(func() error { return s.transact(ctx, nil, some) })
	}
	for topic, all := range topics {
		g.Go(func() error { return s.writeTopic(ctx, topic, all) })
	}
	return g.Wait()
}

// changesTopic says whether the node of the topic is to be written as well: it lists what was begun, and the topic's id.
func (w *write) changesTopic() bool {
	return w.now.rest == absent || w.now.checkpoint.SourceTopicID != w.next.SourceTopicID
}

func chunks(writes []write) [][]write {
	var all [][]write
	bytes := 0
	for _, w := range writes {
		bytes += len(w.text)
		if last := len(all) - 1; last >= 0 && len(all[last]) < mostPartitions && bytes <= mostBytes {
			all[last] = append(all[last], w)
		} else {
			all, bytes = append(all, []write{w}), len(w.text)
		}
	}
	return all
}

func (s *Store) writeTopic(ctx context.Context, topic string, writes []write) error {
	if err := s.makeParents(ctx, s.at.offsetsOf(topic), s.at.causeway()); err != nil {
		return err
	}
	for _, some := range chunks(writes) {
		t, err := s.readTopic(ctx, topic)
		if err != nil {
			return err
		}
		if t.err != nil {
			for _, w := range some {
				w.change.done, w.change.err = true, t.err
			}
			continue
		}
		numbers := make([]int32, len(some))
		for i, w := range some {
			numbers[i] = w.next.Partition.Partition
		}
		text, err := json.Marshal(t.record.with(some[0].next.SourceTopicID, numbers))
		if err != nil {
			return err
		}
		if err := s.transact(ctx, replace(node{version: t.version}, s.at.topic(topic), text), some); err != nil {
			return err
		}
	}
	return nil
}

// transact stores all of some, together with the change of another node, or nothing. That somebody else was there first is no error: all
// of them are read again, since where one is out of date the others mostly are, too.
func (s *Store) transact(ctx context.Context, also any, some []write) error {
	ops := make([]any, 0, 2*len(some)+1)
	if also != nil { // first: it is the parent of what follows
		ops = append(ops, also)
	}
	for _, w := range some {
		ops = append(ops, s.operations(w)...)
	}
	_, err := call(ctx, s.session, func(c *zookeeper.Conn) ([]zookeeper.MultiResponse, error) { return c.Multi(ops...) })
	if err == nil {
		s.stored(some)
		return nil
	}
	for _, w := range some {
		s.cache.forget(w.next.Partition)
	}
	if errors.Is(err, zookeeper.ErrNoAuth) {
		return s.transactDenied(ctx, also, some, err)
	}
	if !rivalry(err) {
		return fmt.Errorf("write nodes of %s and %d other partitions: %w", some[0].next.Partition, len(some)-1, err)
	}
	s.parents.forget() // a node that is not there may be one of them
	return nil
}

// transactDenied goes on after a transaction of which we may not touch something: what it is, it does not say. Others go their own ways; a single
// partition, and those that change their topic's node, are refused.
func (s *Store) transactDenied(ctx context.Context, also any, some []write, why error) error {
	if also == nil && len(some) > 1 {
		for i := range some {
			if err := s.transact(ctx, nil, some[i:i+1]); err != nil {
				return err
			}
		}
		return nil
	}
	for _, w := range some {
		e, err := denied(s.at.plain(w.next.Partition), why)
		if err != nil {
			return err
		}
		w.change.done, w.change.err = true, e.err
	}
	return nil
}

// operations are the two of one partition. A node that stays as it is is checked, so that what is stored is known of both.
func (s *Store) operations(w write) []any {
	plain := s.at.plain(w.next.Partition)
	value := replace(node{version: w.now.plain}, plain, formatPlain(w.next.SourceOffset))
	if w.now.plain != absent && w.now.offset == w.next.SourceOffset {
		value = &zookeeper.CheckVersionRequest{Path: plain, Version: w.now.plain}
	}
	return []any{value, replace(node{version: w.now.rest}, s.at.rest(w.next.Partition), w.text)}
}

// replace makes a node or changes it if it still has that version.
func replace(now node, path string, data []byte) any {
	if now.version == absent {
		return &zookeeper.CreateRequest{Path: path, Data: data, Acl: zookeeper.WorldACL(zookeeper.PermAll)}
	}
	return &zookeeper.SetDataRequest{Path: path, Data: data, Version: now.version}
}

// stored remembers what a transaction has made of its partitions.
func (s *Store) stored(some []write) {
	entries := make(map[route.Partition]entry, len(some))
	for _, w := range some {
		w.change.done = true
		e := entry{checkpoint: &w.next, offset: w.next.SourceOffset, plain: w.now.plain, rest: w.now.rest + 1}
		if w.now.plain == absent || w.now.offset != w.next.SourceOffset {
			e.plain++
		}
		entries[w.next.Partition] = e
	}
	s.cache.put(entries)
}

// rivalry says whether an error means that a node is not what it was taken for.
func rivalry(err error) bool {
	return slices.ContainsFunc([]error{zookeeper.ErrBadVersion, zookeeper.ErrNoNode, zookeeper.ErrNodeExists}, func(e error) bool { return errors.Is(err, e) })
}
