package zk

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"

	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

// Store is the store of one group. It is safe for concurrent use, also by several processes.
type Store struct {
	log     hclog.Logger
	session *session
	root    string // the address's chroot; empty if it has none
	at      layout
	cache   cache
	parents parents
	trimmed sync.Once // old events

	rootless atomic.Bool // it was told that root is not there
}

var (
	_ offsets.Store       = (*Store)(nil)
	_ offsets.Lister      = (*Store)(nil)
	_ offsets.EventReader = (*Store)(nil)
)

// Open begins to connect and returns at once: whether ZooKeeper is there, the first operation tells.
func Open(ctx context.Context, cfg Config, log hclog.Logger) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	servers, chroot, err := cfg.servers()
	if err != nil {
		return nil, err
	}
	conn, err := connect(ctx, cfg, servers, log)
	if err != nil {
		return nil, err
	}
	return &Store{log: log, session: conn, root: chroot, at: layout{chroot + "/consumers/" + cfg.Group}}, nil
}

// Close ends the connection. A request that is under way may still be carried out.
func (s *Store) Close() error {
	s.session.close()
	return nil
}

// Trouble is why positions could neither be read nor stored at the last try; nil if they could, or if the last try is long ago.
func (s *Store) Trouble() error { return s.session.troubled() }

// Load reads checkpoints. Those of partitions whose nodes can't be read are missing from the map and named by the error, which is joined of
// *NodeErrors; the others are good all the same. One whose plain offset was written by another program is marked foreign.
func (s *Store) Load(ctx context.Context, parts []route.Partition) (map[route.Partition]offsets.Checkpoint, error) {
	found := make(map[route.Partition]offsets.Checkpoint, len(parts))
	var faults []error
	err := s.session.read(ctx, "load checkpoints", func(ctx context.Context) error {
		entries, err := s.fetch(ctx, parts)
		if err != nil {
			return err
		}
		for p, e := range entries {
			switch {
			case e.err != nil:
				faults = append(faults, fmt.Errorf("load checkpoint of %s: %w", p, e.err))
			case e.checkpoint != nil:
				found[p] = *e.checkpoint
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return found, errors.Join(faults...)
}

// Save moves positions forward, hundreds in one request and many requests at once. What is refused because its nodes can't be read is
// named by the *offsets.ConflictError, too.
func (s *Store) Save(ctx context.Context, checkpoints []offsets.Checkpoint) error {
	var faults []error
	changes := make([]*change, len(checkpoints))
	for i, c := range checkpoints {
		faults = append(faults, c.Validate())
		changes[i] = &change{next: c, decide: func(now *offsets.Checkpoint) (offsets.Checkpoint, error) { return offsets.Advance(now, c) }}
	}
	if err := errors.Join(faults...); err != nil || len(changes) == 0 {
		return err
	}
	if err := s.apply(ctx, "save checkpoints", changes); err != nil {
		return err
	}
	return refused(changes)
}

// Begin replaces old by next, or returns offsets.ErrConflict.
func (s *Store) Begin(ctx context.Context, old *offsets.Checkpoint, next offsets.Checkpoint) error {
	if err := next.Validate(); err != nil {
		return err
	}
	c := s.beginning(offsets.Beginning{Old: old, Next: next})
	if err := s.apply(ctx, "begin checkpoint", []*change{c}); err != nil {
		return err
	}
	if c.err != nil {
		return fmt.Errorf("begin %s: %w", next.Partition, c.err)
	}
	return nil
}

// BeginAll does what Begin does for all that may begin. Partitions of one topic begin by hundreds in one request.
func (s *Store) BeginAll(ctx context.Context, all []offsets.Beginning) error {
	var faults []error
	changes := make([]*change, len(all))
	for i, b := range all {
		faults = append(faults, b.Next.Validate())
		changes[i] = s.beginning(b)
	}
	if err := errors.Join(faults...); err != nil || len(changes) == 0 {
		return err
	}
	if err := s.apply(ctx, "begin checkpoints", changes); err != nil {
		return err
	}
	return refused(changes)
}

// beginning forgets what is remembered of the partition: only what is stored now says whether a beginning is a conflict or was done before.
func (s *Store) beginning(b offsets.Beginning) *change {
	s.cache.forget(b.Next.Partition)
	return &change{next: b.Next, decide: func(now *offsets.Checkpoint) (offsets.Checkpoint, error) {
		return b.Next, offsets.Replace(now, b.Old, b.Next)
	}}
}

func refused(changes []*change) error {
	var conflict offsets.ConflictError
	for _, c := range changes {
		if c.err != nil {
			conflict.Refused = append(conflict.Refused, offsets.Refused{Checkpoint: c.next, Reason: c.err.Error()})
		}
	}
	if conflict.Refused == nil {
		return nil
	}
	return &conflict
}

// cache remembers what was last read or written, so that a save needs no read. It may be out of date: every write names the versions that it
// replaces.
type cache struct {
	mu      sync.Mutex
	entries map[route.Partition]entry // guarded by mu
}

func (c *cache) put(entries map[route.Partition]entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil {
		c.entries = map[route.Partition]entry{}
	}
	maps.Copy(c.entries, entries)
}

func (c *cache) get(p route.Partition) (entry, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[p]
	e.cached = true
	return e, ok
}

func (c *cache) forget(parts ...route.Partition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range parts {
		delete(c.entries, p)
	}
}
