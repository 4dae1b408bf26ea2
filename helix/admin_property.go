package helix

import (
	"context"
	"errors"
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

// RemoveProperty removes a node of the property store with all below it, under the guard. That it is not there is no error; what others add
// meanwhile may make it ErrNotEmpty.
func (a *Admin) RemoveProperty(ctx context.Context, parts ...string) error {
	at := a.cluster.Property(parts...)
	err := a.removeTree(ctx, at)
	if err != nil {
		return fmt.Errorf("remove property %s: %w", at, err)
	}
	return nil
}

func (a *Admin) removeTree(ctx context.Context, at string) error {
	children, err := a.session.Children(ctx, at, nil)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	for _, name := range children {
		if err == nil {
			err = a.removeTree(ctx, at+"/"+name)
		}
	}
	if err != nil {
		return err
	}
	return a.remove(ctx, at)
}
