package helix

import (
	"strings"

	"github.com/go-zookeeper/zk"
)

// EventKind is what happened to a watched znode.
type EventKind int8

// Kinds of events.
const (
	NodeCreated EventKind = iota + 1
	NodeDeleted
	NodeChanged
	ChildrenChanged
)

// Event is a change of a watched znode.
type Event struct {
	Kind EventKind
	Path string
}

// Notify is called at most once per watch, on a goroutine that must not be held up: it may mark something or signal somebody, no more. A
// call says that something may have changed, and comes before any answer that the change can be seen in; the next change is told only if the
// znode is read again with a watch. When the session gets a new connection, everybody is called. When it ends, nobody is: see Session.Done.
type Notify func(Event)

// watchKey is what one change can touch: a node itself, or its children.
type watchKey struct {
	path     string
	children bool
}

type watch struct{ notify Notify }

// arm registers a watch before the request that sets it at the server: an event between the two makes one call too many, never one too few.
// disarm is for when the server did not set it.
func (s *Session) arm(key watchKey, notify Notify) (disarm func()) {
	w := &watch{notify}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watches[key] = append(s.watches[key], w)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		list := s.watches[key]
		for i := range list {
			if list[i] == w {
				list[i] = list[len(list)-1]
				s.watches[key] = list[:len(list)-1]
				break
			}
		}
		if len(s.watches[key]) == 0 {
			delete(s.watches, key)
		}
	}
}

// watchKeys lists what has a watch, by the paths that ZooKeeper knows.
func (s *Session) watchKeys() []watchKey {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := make([]watchKey, 0, len(s.watches))
	for key := range s.watches {
		keys = append(keys, watchKey{s.full(key.path), key.children})
	}
	return keys
}

// notify passes an event of the library on to those who watch.
func (s *Session) notify(e zk.Event) {
	event := Event{Path: strings.TrimPrefix(e.Path, s.chroot)}
	keys := []watchKey{{event.Path, false}}
	switch e.Type {
	case zk.EventNodeCreated:
		event.Kind = NodeCreated
	case zk.EventNodeDataChanged:
		event.Kind = NodeChanged
	case zk.EventNodeChildrenChanged:
		event.Kind = ChildrenChanged
		keys[0].children = true
	case zk.EventNodeDeleted:
		event.Kind = NodeDeleted
		keys = append(keys, watchKey{event.Path, true})
	default:
		return
	}
	var told []*watch
	s.mu.Lock()
	for _, key := range keys {
		told = append(told, s.watches[key]...)
		delete(s.watches, key)
	}
	s.mu.Unlock()
	for _, w := range told {
		w.notify(event)
	}
}
