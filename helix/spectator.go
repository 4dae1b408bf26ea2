package helix

import (
	"context"
	"maps"
	"path"
	"slices"
	"sync"

	"github.com/hashicorp/go-hclog"
)

// Spectator knows who serves what: external views, live instances and their addresses, kept up to date by watches. It writes nothing. While no
// controller leads, views are as old as its end; instances that are gone are left out all the same.
type Spectator struct {
	cluster Cluster
	session *Session
	follow  *follower
	changed chan struct{}
	ready   chan struct{}

	mu      sync.RWMutex
	views   map[string]*Record  // guarded by mu
	live    map[string]string   // guarded by mu; instance → session
	configs map[string]Instance // guarded by mu
}

// NewSpectator gives a Spectator that knows nothing until Run. The session stays the caller's.
func NewSpectator(s *Session, cluster Cluster, log hclog.Logger) *Spectator {
	return &Spectator{
		cluster: cluster, session: s, follow: newFollower(s, log), changed: make(chan struct{}, 1), ready: make(chan struct{}),
		views: map[string]*Record{}, live: map[string]string{}, configs: map[string]Instance{},
	}
}

// Run follows the cluster until its context ends, which is no error, or the session does. It may be called once.
func (s *Spectator) Run(ctx context.Context) error {
	for _, folder := range []string{s.cluster.externalViews(), s.cluster.liveInstances(), s.cluster.configParticipants()} {
		s.follow.mark(point{folder, true})
	}
	for first := true; ; first = false {
		if err := s.follow.refresh(ctx, s.apply); err != nil {
			if ctx.Err() != nil {
				return nil //nolint:nilerr // the end was asked for
			}
			return err
		}
		if first {
			close(s.ready)
		}
		select {
		case <-s.follow.woken:
		case <-s.session.Done():
			return s.session.Err()
		case <-ctx.Done():
			return nil
		}
	}
}

// Ready is closed when everything has been read once.
func (s *Spectator) Ready() <-chan struct{} { return s.ready }

// Changed has a value when anything may have changed since it was last received.
func (s *Spectator) Changed() <-chan struct{} { return s.changed }

// Serving are the live instances that have the partition ONLINE, by name.
func (s *Spectator) Serving(resource, partition string) []Instance {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var all []Instance
	view := s.views[resource]
	if view == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(view.Map[partition])) {
		if State(view.Map[partition][name]) == Online && s.live[name] != "" {
			all = append(all, s.instanceLocked(name))
		}
	}
	return all
}

// View is a resource's external view as it stands in ZooKeeper, not to be changed; false if there is none.
func (s *Spectator) View(resource string) (*Record, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	view := s.views[resource]
	return view, view != nil
}

// Resources are those with an external view, by name.
func (s *Spectator) Resources() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Sorted(maps.Keys(s.views))
}

// Live are the live instances, by name.
func (s *Spectator) Live() []LiveInstance {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := make([]LiveInstance, 0, len(s.live))
	for _, name := range slices.Sorted(maps.Keys(s.live)) {
		all = append(all, LiveInstance{Instance: s.instanceLocked(name), Session: s.live[name]})
	}
	return all
}

// instanceLocked is an instance's configuration, or what its name says. The caller holds mu.
func (s *Spectator) instanceLocked(name string) Instance {
	if config, ok := s.configs[name]; ok {
		return config
	}
	return newInstance(name)
}

func (s *Spectator) apply(readings []reading) []point {
	s.mu.Lock()
	defer s.mu.Unlock()
	var more []point
	for _, r := range readings {
		if r.folder {
			came, went := s.follow.fresh(r)
			for _, name := range came {
				more = append(more, r.child(name))
			}
			for _, name := range went {
				s.noteLocked(reading{point: r.child(name)})
			}
			continue
		}
		s.noteLocked(r)
	}
	select {
	case s.changed <- struct{}{}:
	default:
	}
	return more
}

// noteLocked notes a record. One that can't be read leaves what was known; the caller holds mu.
func (s *Spectator) noteLocked(r reading) {
	name := path.Base(r.path)
	if r.exists && r.record == nil {
		return
	}
	switch r.parent().path {
	case s.cluster.externalViews():
		put(s.views, name, r.record, r.exists)
	case s.cluster.liveInstances():
		session := ""
		if r.exists {
			session = newLive(r.record, r.stat).session
		}
		put(s.live, name, session, session != "")
	case s.cluster.configParticipants():
		var config Instance
		if r.exists {
			config = parseInstance(name, r.record)
		}
		put(s.configs, name, config, r.exists)
	}
}

// put sets or removes a key.
func put[V any](m map[string]V, key string, value V, there bool) {
	if !there {
		delete(m, key)
		return
	}
	m[key] = value
}
