package helix

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Admin changes a cluster's configuration. Its writes are compare-and-set or all-or-nothing; ErrLost comes back only where the outcome
// can't be found out by looking.
type Admin struct {
	session *Session
	cluster Cluster
	guard   *Guard
}

// Guard is a condition on every write: the znode at Path still has the version. An election changes it, so that a leader which does not know yet
// that it is none writes nothing any more.
type Guard struct {
	Path    string
	Version int32
}

// NewAdmin gives an Admin in that session.
func NewAdmin(s *Session, cluster Cluster) *Admin { return &Admin{session: s, cluster: cluster} }

// Guarded gives an Admin whose writes fail with ErrDeposed when the guard's znode has another version.
func (a *Admin) Guarded(g Guard) *Admin {
	return &Admin{session: a.session, cluster: a.cluster, guard: &g}
}

// transact carries out the operations, and the guard's check, or nothing. MultiError.Index counts the operations without the guard's.
func (a *Admin) transact(ctx context.Context, ops ...Op) error {
	if a.guard == nil {
		return a.session.Multi(ctx, ops...)
	}
	err := a.session.Multi(ctx, append([]Op{CheckOp(a.guard.Path, a.guard.Version)}, ops...)...)
	var failed *MultiError
	if !errors.As(err, &failed) {
		return err
	}
	if failed.Index == 0 {
		return fmt.Errorf("%w: %w", ErrDeposed, err)
	}
	failed.Index--
	return err
}

// create creates a persistent znode; what is missing above it too. ErrExists only if somebody else made it.
func (a *Admin) create(ctx context.Context, path string, data []byte) error {
	for lost := false; ; {
		err := a.transact(ctx, CreateOp(path, data))
		switch {
		case errors.Is(err, ErrDeposed):
			return err
		case errors.Is(err, ErrLost):
			lost = true
		case errors.Is(err, ErrNotFound):
			if err := a.session.createParent(ctx, path); err != nil {
				return err
			}
		case errors.Is(err, ErrExists) && lost:
			if now, _, err := a.session.Get(ctx, path, nil); err == nil && slices.Equal(now, data) {
				return nil
			}
			return err
		default:
			return err
		}
	}
}

// update is Session.Update under the guard.
func (a *Admin) update(ctx context.Context, u updated, change func(*Record) error) error {
	return a.session.update(ctx, u, a.transact, change)
}

// CreateCluster creates what is missing of a cluster's tree and its state model, and sets the given keys of its config (such as
// allowParticipantAutoJoin). It may be called again.
func (a *Admin) CreateCluster(ctx context.Context, config map[string]string) error {
	if err := checkName("cluster", string(a.cluster)); err != nil {
		return err
	}
	empty, err := NewRecord(string(a.cluster)).Encode()
	if err != nil {
		return err
	}
	history := NewRecord(keyHistory)
	history.List[string(a.cluster)] = []string{}
	past, err := history.Encode()
	if err != nil {
		return err
	}
	nodes := append([]string{a.cluster.Root()}, a.cluster.required()...)
	for _, path := range nodes {
		data := map[string][]byte{a.cluster.configCluster(): empty, a.cluster.controllerHistory(): past}[path]
		if err := a.create(ctx, path, data); err != nil && !errors.Is(err, ErrExists) {
			return fmt.Errorf("create cluster %s: %w", a.cluster, err)
		}
	}
	if err := a.AddStateModel(ctx); err != nil {
		return err
	}
	if len(config) == 0 {
		return nil
	}
	return a.SetConfig(ctx, ClusterScope(), config)
}

// CheckCluster finds out whether the cluster has all that peers require; *MissingError if not.
func (a *Admin) CheckCluster(ctx context.Context) error {
	return a.session.checkSetUp(ctx, "cluster "+string(a.cluster), a.cluster.required())
}

// checkSetUp gives a MissingError that lists which of the paths don't exist.
func (s *Session) checkSetUp(ctx context.Context, what string, paths []string) error {
	there := make([]bool, len(paths))
	err := s.Each(ctx, len(paths), func(ctx context.Context, i int) (err error) {
		there[i], _, err = s.Exists(ctx, paths[i], nil)
		return err
	})
	if err != nil {
		return err
	}
	missing := &MissingError{What: what}
	for i, path := range paths {
		if !there[i] {
			missing.Paths = append(missing.Paths, path)
		}
	}
	if missing.Paths == nil {
		return nil
	}
	missing.Whole = len(missing.Paths) == len(paths)
	if s.chroot != "" {
		found, _, err := s.Exists(ctx, "/", nil)
		if err != nil {
			return err
		}
		if !found {
			missing.Root = s.chroot
		}
	}
	return missing
}

// DropCluster removes the cluster with everything in it. ErrRefused while an instance or a controller is alive.
func (a *Admin) DropCluster(ctx context.Context) error {
	live, err := a.session.Children(ctx, a.cluster.liveInstances(), nil)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	led, _, err := a.session.Exists(ctx, a.cluster.leader(), nil)
	if err != nil {
		return err
	}
	if len(live) > 0 || led {
		return fmt.Errorf("drop cluster %s: %w: %d live instances, controller alive: %t", a.cluster, ErrRefused, len(live), led)
	}
	return a.session.DeleteTree(ctx, a.cluster.Root())
}

// AddStateModel writes the definition of OnlineOffline if there is none.
func (a *Admin) AddStateModel(ctx context.Context) error {
	data, err := stateModelRecord().Encode()
	if err != nil {
		return err
	}
	if err := a.create(ctx, a.cluster.stateModel(OnlineOffline), data); err != nil && !errors.Is(err, ErrExists) {
		return err
	}
	return nil
}

// EnableCluster ends or begins a pause: controllers send nothing while it lasts.
func (a *Admin) EnableCluster(ctx context.Context, on bool) error {
	if on {
		return a.remove(ctx, a.cluster.pause())
	}
	data, err := NewRecord("pause").Encode()
	if err != nil {
		return err
	}
	if err := a.create(ctx, a.cluster.pause(), data); err != nil && !errors.Is(err, ErrExists) {
		return err
	}
	return nil
}

// remove deletes znodes with all that somebody has put below them, which peers never do, in one transaction if it is not very much. Those that are
// gone already are no error.
func (a *Admin) remove(ctx context.Context, paths ...string) error {
	for {
		all, err := a.session.forest(ctx, paths)
		if err != nil {
			return err
		}
		for _, chunk := range Chunks(deletions(all), deletesPerTransaction) {
			if err = a.transact(ctx, chunk...); err != nil {
				break
			}
		}
		switch {
		case errors.Is(err, ErrDeposed):
			return err
		case errors.Is(err, ErrNotEmpty), errors.Is(err, ErrNotFound), errors.Is(err, ErrLost): // looked at again
		default:
			return err
		}
	}
}

// Scope says whose config is meant.
type Scope struct{ path, id func(Cluster) string }

func scope(id string, path func(Cluster, string) string) Scope {
	return Scope{path: func(c Cluster) string { return path(c, id) }, id: func(Cluster) string { return id }}
}

// ClusterScope is the cluster's own config.
func ClusterScope() Scope {
	return Scope{path: Cluster.configCluster, id: func(c Cluster) string { return string(c) }}
}

// ParticipantScope is an instance's config.
func ParticipantScope(instance string) Scope { return scope(instance, Cluster.configParticipant) }

// ResourceScope is a resource's config.
func ResourceScope(resource string) Scope { return scope(resource, Cluster.configResource) }

// Config reads a config record; ErrNotFound if there is none.
func (a *Admin) Config(ctx context.Context, s Scope) (*Record, error) {
	record, _, err := a.session.GetRecord(ctx, s.path(a.cluster), nil)
	return record, err
}

// SetConfig sets simple fields and removes others; all else stays. A missing record is created.
func (a *Admin) SetConfig(ctx context.Context, s Scope, set map[string]string, remove ...string) error {
	id := s.id(a.cluster)
	if err := checkName("config", id); err != nil {
		return err
	}
	return a.update(ctx, updated{path: s.path(a.cluster), id: id}, func(r *Record) error {
		maps.Copy(r.Simple, set)
		for _, key := range remove {
			delete(r.Simple, key)
		}
		return nil
	})
}
