package zk

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	zookeeper "github.com/go-zookeeper/zk"
)

// parents are nodes that are known to be there.
type parents struct {
	mu    sync.Mutex
	known map[string]bool // guarded by mu
}

func (p *parents) has(path string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known[path]
}

func (p *parents) add(path string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil {
		p.known = map[string]bool{}
	}
	p.known[path] = true
}

func (p *parents) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known = nil
}

// makeParents makes nodes without data and everything above them up to the store's place, unless they are there. The place itself is not made.
func (s *Store) makeParents(ctx context.Context, paths ...string) error {
	for _, path := range paths {
		if err := s.makeParent(ctx, path); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) makeParent(ctx context.Context, path string) error {
	if path == s.root || s.parents.has(path) {
		return nil
	}
	if err := s.makeParent(ctx, path[:strings.LastIndexByte(path, '/')]); err != nil {
		return err
	}
	_, err := call(ctx, s.session, func(c *zookeeper.Conn) (string, error) {
		return c.Create(path, nil, 0, zookeeper.WorldACL(zookeeper.PermAll))
	})
	if errors.Is(err, zookeeper.ErrNoNode) && path[:strings.LastIndexByte(path, '/')] == s.root {
		return s.noRoot()
	}
	if err != nil && !errors.Is(err, zookeeper.ErrNodeExists) {
		return fmt.Errorf("make node %s: %w", path, err)
	}
	s.parents.add(path)
	return nil
}
