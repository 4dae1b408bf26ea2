package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

// FileName is the one file in the folder.
const FileName = "causeway.db"

// Store is the store of one folder. It is safe for concurrent use; writes are serialised.
type Store struct {
	db   *bbolt.DB
	path string
}

var (
	_ offsets.Store       = (*Store)(nil)
	_ offsets.Lister      = (*Store)(nil)
	_ offsets.EventReader = (*Store)(nil)
)

// Load reads checkpoints in one consistent view.
func (s *Store) Load(ctx context.Context, parts []route.Partition) (map[route.Partition]offsets.Checkpoint, error) {
	found := make(map[route.Partition]offsets.Checkpoint, len(parts))
	err := s.view(ctx, "load checkpoints", func(tx *bbolt.Tx) error {
		for _, p := range parts {
			c, err := readCheckpoint(tx, p)
			if err != nil {
				return err
			}
			if c != nil {
				found[p] = *c
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// Partitions lists the partitions that have a checkpoint, by topic and number.
func (s *Store) Partitions(ctx context.Context) ([]route.Partition, error) {
	var parts []route.Partition
	err := s.view(ctx, "list checkpoints", func(tx *bbolt.Tx) error {
		return tx.Bucket(checkpointsBucket()).ForEach(func(key, _ []byte) error {
			p, err := parsePartitionKey(key)
			parts = append(parts, p)
			return err
		})
	})
	return parts, err
}

// Save stores all that may move forward in one transaction.
func (s *Store) Save(ctx context.Context, checkpoints []offsets.Checkpoint) error {
	var faults []error
	for _, c := range checkpoints {
		faults = append(faults, c.Validate())
	}
	if err := errors.Join(faults...); err != nil || len(checkpoints) == 0 {
		return err
	}
	var refused []offsets.Refused
	err := s.update(ctx, "save checkpoints", func(tx *bbolt.Tx) error {
		for _, c := range checkpoints {
			old, err := readCheckpoint(tx, c.Partition)
			if err != nil {
				return err
			}
			next, err := offsets.Advance(old, c)
			if err != nil {
				refused = append(refused, offsets.Refused{Checkpoint: c, Reason: err.Error()})
				continue
			}
			if err := writeJSON(tx, checkpointsBucket(), partitionKey(c.Partition), next); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && len(refused) > 0 {
		return &offsets.ConflictError{Refused: refused}
	}
	return err
}

// Begin replaces old by next, or returns offsets.ErrConflict.
func (s *Store) Begin(ctx context.Context, old *offsets.Checkpoint, next offsets.Checkpoint) error {
	if err := next.Validate(); err != nil {
		return err
	}
	return s.update(ctx, "begin checkpoint", func(tx *bbolt.Tx) error {
		if err := begin(tx, old, next); err != nil {
			return fmt.Errorf("begin %s: %w", next.Partition, err)
		}
		return nil
	})
}

// BeginAll does what Begin does for all that may begin, in one transaction.
func (s *Store) BeginAll(ctx context.Context, all []offsets.Beginning) error {
	var faults []error
	for _, b := range all {
		faults = append(faults, b.Next.Validate())
	}
	if err := errors.Join(faults...); err != nil || len(all) == 0 {
		return err
	}
	var refused []offsets.Refused
	err := s.update(ctx, "begin checkpoints", func(tx *bbolt.Tx) error {
		for _, b := range all {
			switch err := begin(tx, b.Old, b.Next); {
			case errors.Is(err, offsets.ErrConflict):
				refused = append(refused, offsets.Refused{Checkpoint: b.Next, Reason: err.Error()})
			case err != nil:
				return err
			}
		}
		return nil
	})
	if err == nil && len(refused) > 0 {
		return &offsets.ConflictError{Refused: refused}
	}
	return err
}

func begin(tx *bbolt.Tx, old *offsets.Checkpoint, next offsets.Checkpoint) error {
	now, err := readCheckpoint(tx, next.Partition)
	if err != nil {
		return err
	}
	if err := offsets.Replace(now, old, next); err != nil {
		return err
	}
	if now == nil {
		if err := countOne(tx); err != nil {
			return err
		}
	}
	return writeJSON(tx, checkpointsBucket(), partitionKey(next.Partition), next)
}

// Route reads the route's state.
func (s *Store) Route(ctx context.Context) (offsets.Route, error) {
	r := offsets.NoRoute()
	err := s.view(ctx, "load route", func(tx *bbolt.Tx) (err error) {
		r, err = readRoute(tx)
		return err
	})
	return r, err
}

// SaveRoute stores the route's state with the next version, or returns offsets.ErrConflict.
func (s *Store) SaveRoute(ctx context.Context, r offsets.Route) error {
	return s.update(ctx, "save route", func(tx *bbolt.Tx) error {
		now, err := readRoute(tx)
		if err != nil {
			return err
		}
		next, err := offsets.ReplaceRoute(now, r)
		if err != nil {
			return fmt.Errorf("save route: %w", err)
		}
		return writeJSON(tx, routeBucket(), stateKey(), next)
	})
}

// SaveEvent appends one event and drops the oldest beyond offsets.MaxEvents.
func (s *Store) SaveEvent(ctx context.Context, event []byte) error {
	if !json.Valid(event) {
		return errors.New("save event: not JSON")
	}
	return s.update(ctx, "save event", func(tx *bbolt.Tx) error {
		b := tx.Bucket(eventsBucket())
		n, err := b.NextSequence()
		if err != nil {
			return err
		}
		if err := put(b, binary.BigEndian.AppendUint64(nil, n), event); err != nil {
			return err
		}
		if n <= offsets.MaxEvents {
			return nil
		}
		oldest := binary.BigEndian.AppendUint64(nil, n-offsets.MaxEvents+1)
		c := b.Cursor()
		for key, _ := c.First(); key != nil && bytes.Compare(key, oldest) < 0; key, _ = c.First() {
			if err := c.Delete(); err != nil {
				return err
			}
		}
		return nil
	})
}

// Events reads all kept events, oldest first.
func (s *Store) Events(ctx context.Context) ([][]byte, error) {
	var events [][]byte
	err := s.view(ctx, "load events", func(tx *bbolt.Tx) error {
		return tx.Bucket(eventsBucket()).ForEach(func(key, value []byte) error {
			event, err := unseal(key, value)
			events = append(events, bytes.Clone(event))
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return events, nil
}

func readCheckpoint(tx *bbolt.Tx, p route.Partition) (*offsets.Checkpoint, error) {
	var c offsets.Checkpoint
	ok, err := readJSON(tx, checkpointsBucket(), partitionKey(p), &c)
	switch {
	case err != nil:
		return nil, fmt.Errorf("checkpoint of %s: %w", p, err)
	case !ok:
		return nil, nil //nolint:nilnil // absent is the answer, and the shape that offsets.Advance and Replace take
	case c.Partition != p:
		return nil, fmt.Errorf("checkpoint of %s: %w: it is %s's", p, offsets.ErrCorrupt, c.Partition)
	}
	return &c, nil
}

func readRoute(tx *bbolt.Tx) (offsets.Route, error) {
	r := offsets.NoRoute()
	if _, err := readJSON(tx, routeBucket(), stateKey(), &r); err != nil {
		return offsets.NoRoute(), fmt.Errorf("route: %w", err)
	}
	return r, nil
}
