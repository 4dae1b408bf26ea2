package connector

import (
	"context"
	"errors"
	"fmt"

	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

// storeError is why something could not be read or stored. A store that is out of reach is waited for; all else must be mended by somebody.
func storeError(what string, err error) error {
	err = fmt.Errorf("%s: %w", what, err)
	if errors.Is(err, offsets.ErrUnavailable) {
		return err
	}
	return &haltError{err}
}

// load reads the checkpoints of a topic's partitions. One that can't be read halts its own partition, which is told and left out of t.parts,
// and no other.
func (c *Connector) load(ctx context.Context, t *pair, keys []route.Partition) (map[route.Partition]offsets.Checkpoint, error) {
	known, err := c.deps.Store.Load(ctx, keys)
	if err == nil {
		return known, nil
	}
	var broken *offsets.StorageError
	if errors.Is(err, offsets.ErrUnavailable) || errors.As(err, &broken) || ctx.Err() != nil {
		return nil, storeError("load checkpoints", err)
	}
	known = map[route.Partition]offsets.Checkpoint{}
	var good []*partition
	for _, p := range t.parts {
		one, err := c.deps.Store.Load(ctx, []route.Partition{p.source})
		if err != nil {
			c.blocked([]*partition{p}, storeError("load checkpoint", err))
			continue
		}
		if at, ok := one[p.source]; ok {
			known[p.source] = at
		}
		good = append(good, p)
	}
	t.parts = good
	return known, nil
}
