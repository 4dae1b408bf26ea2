package zk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	zookeeper "github.com/go-zookeeper/zk"

	"github.com/causeway-mirror/causeway/offsets"
)

// eventPrefix is what the names of events begin with; ZooKeeper adds ten digits.
const eventPrefix = "event-"

// SaveEvent appends one event and drops the one that this makes too many. An event whose answer was lost may be stored twice.
func (s *Store) SaveEvent(ctx context.Context, event []byte) error {
	if !json.Valid(event) {
		return errors.New("save event: not JSON")
	}
	return s.session.retry(ctx, "save event", func(ctx context.Context) error {
		if err := s.makeParents(ctx, s.at.events()); err != nil {
			return err
		}
		path, err := call(ctx, s.session, func(c *zookeeper.Conn) (string, error) {
			return c.Create(s.at.events()+"/"+eventPrefix, event, zookeeper.FlagSequence, zookeeper.WorldACL(zookeeper.PermAll))
		})
		if rivalry(err) {
			s.parents.forget() // one of them was removed
		}
		if err != nil {
			return err
		}
		s.trim(ctx, path)
		return nil
	})
}

// trim drops events. What it fails to drop is not read, and is dropped by the first event of another process.
func (s *Store) trim(ctx context.Context, newest string) {
	n, err := strconv.Atoi(newest[strings.LastIndexByte(newest, '-')+1:])
	if err != nil || n < offsets.MaxEvents {
		return
	}
	drop := []string{fmt.Sprintf("%s%010d", eventPrefix, n-offsets.MaxEvents)}
	s.trimmed.Do(func() {
		if names, err := s.eventNames(ctx); err == nil && len(names) > offsets.MaxEvents {
			drop = names[:len(names)-offsets.MaxEvents]
		}
	})
	for _, name := range drop {
		_, err := call(ctx, s.session, func(c *zookeeper.Conn) (struct{}, error) { return struct{}{}, c.Delete(s.at.events()+"/"+name, -1) })
		if err != nil && !errors.Is(err, zookeeper.ErrNoNode) {
			s.log.Debug("an old event stays", "name", name, "err", err)
			return
		}
	}
}

// eventNames are in order, the oldest first.
func (s *Store) eventNames(ctx context.Context) ([]string, error) {
	names, err := s.children(ctx, s.at.events())
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, eventPrefix) })
	slices.Sort(names)
	return names, err
}

// Events reads all kept events, oldest first.
func (s *Store) Events(ctx context.Context) ([][]byte, error) {
	found, _, err := s.EventsAfter(ctx, "")
	return found, err
}

// EventsAfter reads the kept events that were appended after a mark ("" means all), oldest first, and gives the mark of the newest. Asking again
// for what is new costs one read.
func (s *Store) EventsAfter(ctx context.Context, mark string) (found [][]byte, next string, err error) {
	err = s.session.read(ctx, "load events", func(ctx context.Context) error {
		found, next = nil, mark
		if err := s.sync(ctx); err != nil {
			return err
		}
		names, err := s.eventNames(ctx)
		if err != nil {
			return err
		}
		names = names[max(0, len(names)-offsets.MaxEvents):]
		first, known := slices.BinarySearch(names, mark)
		switch {
		case known:
			first++
		case first == len(names):
			first = 0 // the folder was made anew, and counts from 0 again
		}
		names = names[first:]
		nodes := make([]node, len(names))
		err = each(ctx, len(names), func(ctx context.Context, i int) (err error) {
			nodes[i], err = s.get(ctx, s.at.events()+"/"+names[i])
			return err
		})
		if err != nil {
			return err
		}
		for i, n := range nodes {
			if n.version != absent {
				found = append(found, n.data)
			}
			next = names[i]
		}
		return nil
	})
	return found, next, err
}
