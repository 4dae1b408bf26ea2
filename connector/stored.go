package connector

import (
	"context"
	"errors"
	"fmt"
	"maps"

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
		c.leaveOutLost(t, known)
		return known, nil
	}
	var broken *offsets.StorageError
	if errors.Is(err, offsets.ErrUnavailable) || errors.As(err, &broken) || ctx.Err() != nil {
		return nil, storeError("load checkpoints", err)
	}
	known = map[route.Partition]offsets.Checkpoint{}
	c.leaveOutIf(t, func(p *partition) error {
		one, err := c.deps.Store.Load(ctx, []route.Partition{p.source})
		if err != nil {
			return storeError("load checkpoint", err)
		}
		maps.Copy(known, one)
		return nil
	})
	c.leaveOutLost(t, known)
	return known, nil
}

// leaveOutLost halts the partitions that ran here and of which the store knows nothing any more: they must not begin as if they were new.
func (c *Connector) leaveOutLost(t *pair, known map[route.Partition]offsets.Checkpoint) {
	c.leaveOutIf(t, func(p *partition) error {
		if _, there := known[p.source]; there || !p.begun {
			return nil
		}
		return storeError(fmt.Sprintf("load checkpoint of %s", p.source), offsets.ErrMissing)
	})
}
