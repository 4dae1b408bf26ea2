package spill

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/causeway-mirror/causeway/route"
)

// Deps is what a store needs of others. All but Registerer may be missing.
type Deps struct {
	Registerer prometheus.Registerer
	Route      string // label of the figures

	// Notify hears what an operator must know; it is called without locks, by whoever comes upon it.
	Notify func(Notice)

	// Settle stores a partition's checkpoint at or behind a position, right before the queue begins to write there. So what is on disk always
	// continues what is stored. An error lets the put fail.
	Settle func(ctx context.Context, p route.Partition, at route.Offset) error

	// Alloc gives the memory that items are read into, with one reference that is the caller's.
	Alloc func(n int) ([]byte, Holder)
}

// Store is one process's folder of queues. Run must run for what is written to be synced in time.
type Store struct {
	cfg     Config
	deps    Deps
	disk    *disk
	lock    *os.File
	metrics *metrics

	mu     sync.Mutex
	queues map[route.Partition]*Queue
}

// Open opens, or makes, the folder. It fails if another process uses it.
func Open(cfg Config, d Deps) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := lockFolder(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", cfg.Dir, err)
	}
	used, err := folderBytes(cfg.Dir)
	if err != nil {
		return nil, errors.Join(err, unlockFolder(lock))
	}
	if d.Notify == nil {
		d.Notify = func(Notice) {}
	}
	if d.Alloc == nil {
		d.Alloc = func(n int) ([]byte, Holder) { return make([]byte, n), nil }
	}
	s := &Store{cfg: cfg, deps: d, disk: newDisk(cfg.Dir, cfg.MaxBytes), lock: lock, queues: map[route.Partition]*Queue{}}
	s.disk.used.Store(used)
	s.metrics = newMetrics(d.Route, d.Registerer, s)
	return s, nil
}

// Run syncs what the queues have written, by group. It returns nil when ctx ends. A queue whose sync has failed refuses what is put to disk; that
// is where its owner hears of it.
func (s *Store) Run(ctx context.Context) error {
	tick := time.NewTicker(s.cfg.SyncInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			for _, q := range s.all() {
				_ = q.log.sync() // kept in the log
			}
		}
	}
}

// Partitions lists those of which something is in the folder, in order.
func (s *Store) Partitions() ([]route.Partition, error) {
	entries, err := os.ReadDir(s.cfg.Dir)
	if err != nil {
		return nil, err
	}
	var found []route.Partition
	for _, e := range entries {
		p, ok := partitionOf(e.Name())
		if !ok || !e.IsDir() {
			continue
		}
		bases, err := segments(s.folder(p))
		if err != nil {
			return nil, err
		}
		if len(bases) > 0 {
			found = append(found, p)
		}
	}
	slices.SortFunc(found, route.Partition.Compare)
	return found, nil
}

// Holds reports whether something of a partition is in the folder.
func (s *Store) Holds(p route.Partition) (bool, error) {
	bases, err := segments(s.folder(p))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return len(bases) > 0, err
}

func partitionOf(name string) (route.Partition, bool) {
	i := strings.LastIndexByte(name, '-')
	if i < 1 {
		return route.Partition{}, false
	}
	n, err := strconv.ParseInt(name[i+1:], 10, 32)
	p := route.Partition{Topic: name[:i], Partition: int32(n)}
	return p, err == nil && p.String() == name
}

func (s *Store) folder(p route.Partition) string { return filepath.Join(s.cfg.Dir, p.String()) }

// Queue opens a partition's queue at a position: the stored checkpoint. What the folder has from there on is the first to be taken; what lies
// before is removed. What doesn't continue the position, or was written for another origin (which names the source's log: cluster and topic id),
// is set aside, by notice. Only one queue of a partition may be open.
func (s *Store) Queue(p route.Partition, origin string, from route.Offset) (*Queue, error) {
	switch {
	case p.Topic == "" || strings.ContainsAny(p.Topic, `/\`+"\x00") || p.Partition < 0:
		return nil, fmt.Errorf("partition %q: no folder can have this name", p.String())
	case len(origin) > math.MaxUint16:
		return nil, fmt.Errorf("origin of %d bytes: at most %d", len(origin), math.MaxUint16)
	case from < 0:
		return nil, fmt.Errorf("position %d: must not be negative", from)
	}
	q := &Queue{
		store: s, partition: p, limits: s.cfg.Limits, room: make(chan struct{}, 1), filled: make(chan struct{}, 1),
		committed: from, next: from, lost: map[route.Offset]bool{},
	}
	s.mu.Lock()
	if s.queues[p] != nil {
		s.mu.Unlock()
		return nil, fmt.Errorf("%s: %w", p, ErrBusy)
	}
	s.queues[p] = q
	s.mu.Unlock()
	if err := q.open(origin, from); err != nil {
		s.leave(q)
		return nil, fmt.Errorf("open the spill of %s: %w", p, err)
	}
	return q, nil
}

// open takes over what the folder has.
func (q *Queue) open(origin string, from route.Offset) error {
	dir := q.store.folder(q.partition)
	l, found, err := openLog(dir, origin, q.store.disk)
	if err != nil {
		return err
	}
	first, next := l.extent()
	reason := ""
	switch {
	case found.foreign != nil:
		reason = found.foreign.Error()
	case first > from:
		reason = fmt.Sprintf("it begins at %d, the stored position is %d", first, from)
	}
	if reason != "" {
		if err := q.store.disk.moveAside(dir); err != nil {
			return err
		}
		q.tell(SetAside, first, next, dir, reason)
		if l, _, err = openLog(dir, origin, q.store.disk); err != nil {
			return err
		}
		first, next = l.extent()
	} else {
		for _, c := range found.corrupt {
			q.tell(Corrupt, max(c.First, from), c.Next, c.Path, c.Reason)
		}
	}
	if first != route.NoOffset && next > from {
		r := reader{log: l, alloc: q.store.deps.Alloc}
		err := r.seek(from)
		if c := (*Corruption)(nil); err != nil && !errors.As(err, &c) {
			return err
		}
		q.order.disk = int(r.left())
		q.next, q.overflowing, q.told = next, true, true
	}
	q.mu.Lock() // from here on Run may sync it
	q.log = l
	q.mu.Unlock()
	return q.Trim(from)
}

// Discard closes a partition's queue and removes what it has on disk: its owner goes on from another position.
func (q *Queue) Discard() error {
	err := q.Close()
	_, next := q.log.extent()
	return errors.Join(err, q.log.trim(next), removeEmpty(q.store.folder(q.partition)))
}

// SetAside closes a partition's queue and moves what it has on disk out of the way.
func (q *Queue) SetAside(reason string) error {
	if err := q.Close(); err != nil {
		return err
	}
	first, next := q.log.extent()
	if first == route.NoOffset {
		return nil
	}
	dir := q.store.folder(q.partition)
	if err := q.store.disk.moveAside(dir); err != nil {
		return err
	}
	q.tell(SetAside, first, next, dir, reason)
	return nil
}

func removeEmpty(dir string) error {
	err := os.Remove(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// leave forgets a queue that was closed.
func (s *Store) leave(q *Queue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queues[q.partition] == q {
		delete(s.queues, q.partition)
	}
}

// all returns the queues that are open.
func (s *Store) all() []*Queue {
	s.mu.Lock()
	defer s.mu.Unlock()
	open := make([]*Queue, 0, len(s.queues))
	for _, q := range s.queues {
		q.mu.Lock()
		if q.log != nil {
			open = append(open, q)
		}
		q.mu.Unlock()
	}
	return open
}

func (s *Store) tell(n Notice) { s.deps.Notify(n) }

// Bytes is what all files take, with those that were set aside.
func (s *Store) Bytes() int64 { return s.disk.used.Load() }

// Close closes the queues and the folder.
func (s *Store) Close() error {
	var faults []error
	for _, q := range s.all() {
		faults = append(faults, q.Close())
	}
	s.metrics.unregister()
	return errors.Join(append(faults, unlockFolder(s.lock))...)
}

// errInUse says that another process has the folder.
var errInUse = errors.New("another process uses this folder")
