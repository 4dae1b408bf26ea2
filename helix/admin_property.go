package helix

import (
	"context"
	"fmt"
)

// UpdateProperty changes a record of the property store as Session.Update does, under the guard. The record's id is its node's name.
func (a *Admin) UpdateProperty(ctx context.Context, change func(*Record) error, parts ...string) error {
	at := a.cluster.Property(parts...)
	if err := a.update(ctx, updated{path: at, id: parts[len(parts)-1]}, change); err != nil {
		return fmt.Errorf("change property %s: %w", at, err)
	}
	return nil
}

// RemoveProperty removes a node of the property store with all below it, under the guard. That it is not there is no error.
func (a *Admin) RemoveProperty(ctx context.Context, parts ...string) error {
	at := a.cluster.Property(parts...)
	if err := a.remove(ctx, at); err != nil {
		return fmt.Errorf("remove property %s: %w", at, err)
	}
	return nil
}
