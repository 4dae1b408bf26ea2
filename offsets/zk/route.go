package zk

import (
	"context"
	"encoding/json"
	"fmt"

	zookeeper "github.com/go-zookeeper/zk"

	"github.com/causeway-mirror/causeway/offsets"
)

// Route reads the route's state.
func (s *Store) Route(ctx context.Context) (offsets.Route, error) {
	r := offsets.NoRoute()
	err := s.session.read(ctx, "load route", func(ctx context.Context) (err error) {
		r, _, err = s.readRoute(ctx)
		return err
	})
	return r, err
}

// SaveRoute stores the route's state with the next version, or returns offsets.ErrConflict.
func (s *Store) SaveRoute(ctx context.Context, r offsets.Route) error {
	return s.session.retry(ctx, "save route", func(ctx context.Context) error {
		for range rounds {
			stored, err := s.saveRoute(ctx, r)
			if err != nil || stored {
				return err
			}
		}
		return errContended
	})
}

// saveRoute tries once; false says that somebody else was there first.
func (s *Store) saveRoute(ctx context.Context, r offsets.Route) (bool, error) {
	now, version, err := s.readRoute(ctx)
	if err != nil {
		return false, err
	}
	next, err := offsets.ReplaceRoute(now, r)
	if err != nil {
		return false, err
	}
	if next.Version == now.Version { // our own write, whose answer was lost
		return true, nil
	}
	text, err := json.Marshal(next)
	if err != nil {
		return false, err
	}
	if err := s.makeParents(ctx, s.at.group); err != nil {
		return false, err
	}
	_, err = call(ctx, s.session, func(c *zookeeper.Conn) ([]zookeeper.MultiResponse, error) {
		return c.Multi(replace(node{version: version}, s.at.causeway(), text))
	})
	if rivalry(err) {
		s.parents.forget()
		return false, nil
	}
	return err == nil, err
}

// readRoute gives the route and the version of its node. A node without data was made as the parent of topics.
func (s *Store) readRoute(ctx context.Context) (offsets.Route, int32, error) {
	r := offsets.NoRoute()
	if err := s.sync(ctx); err != nil {
		return r, absent, err
	}
	n, err := s.get(ctx, s.at.causeway())
	if err != nil || len(n.data) == 0 {
		return r, n.version, err
	}
	if err := json.Unmarshal(n.data, &r); err != nil {
		return offsets.NoRoute(), n.version, fmt.Errorf("route: %w", corrupt(s.at.causeway(), n.data, err))
	}
	return r, n.version, nil
}
