package helix

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
)

// AddResource creates a resource with its ideal state and an empty config. ErrExists if it has an ideal state; ErrNotFound if its state model
// is not defined.
func (a *Admin) AddResource(ctx context.Context, is *IdealState) error {
	r := is.Resource()
	if err := checkName("resource", r); err != nil {
		return err
	}
	if _, _, err := a.session.Get(ctx, a.cluster.stateModel(is.Record.Simple[keyStateModelRef]), nil); err != nil {
		return fmt.Errorf("add resource %s: %w", r, err)
	}
	data, err := is.Record.Encode()
	if err != nil {
		return err
	}
	config, err := NewRecord(r).Encode()
	if err != nil {
		return err
	}
	if err := a.create(ctx, a.cluster.configResource(r), config); err != nil && !errors.Is(err, ErrExists) {
		return fmt.Errorf("add resource %s: %w", r, err)
	}
	if err := a.create(ctx, a.cluster.idealState(r), data); err != nil {
		return fmt.Errorf("add resource %s: %w", r, err)
	}
	return nil
}

// Resources lists the resources that have an ideal state, by name.
func (a *Admin) Resources(ctx context.Context) ([]string, error) {
	return a.session.Children(ctx, a.cluster.idealStates(), nil)
}

// IdealState reads a resource's ideal state; ErrNotFound, ErrMalformed.
func (a *Admin) IdealState(ctx context.Context, resource string) (*IdealState, error) {
	record, stat, err := a.session.GetRecord(ctx, a.cluster.idealState(resource), nil)
	if err != nil {
		return nil, err
	}
	record.ID = resource // the znode's name is what peers go by
	return &IdealState{Record: record, Version: stat.Version}, nil
}

// IdealStates reads all; those that are malformed are left out, with their errors.
func (a *Admin) IdealStates(ctx context.Context) (states []*IdealState, faults []error, err error) {
	names, err := a.Resources(ctx)
	if err != nil {
		return nil, nil, err
	}
	found, faulty := make([]*IdealState, len(names)), make([]error, len(names))
	err = a.session.Each(ctx, len(names), func(ctx context.Context, i int) (err error) {
		found[i], err = a.IdealState(ctx, names[i])
		switch {
		case errors.Is(err, ErrMalformed), errors.Is(err, ErrEmpty):
			faulty[i] = err
		case !errors.Is(err, ErrNotFound): // one that went meanwhile is gone
			return err
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	isNil := func(err error) bool { return err == nil }
	return slices.DeleteFunc(found, func(s *IdealState) bool { return s == nil }), slices.DeleteFunc(faulty, isNil), nil
}

// SetIdealState replaces an ideal state that was read before, by compare-and-set on its version: ErrBadVersion if somebody else changed it,
// ErrNotFound if it is gone. On success the version is the new one. A lost answer is looked up.
func (a *Admin) SetIdealState(ctx context.Context, is *IdealState) error {
	data, err := is.Record.Encode()
	if err != nil {
		return err
	}
	path := a.cluster.idealState(is.Resource())
	err = a.transact(ctx, SetOp(path, data, is.Version))
	if errors.Is(err, ErrLost) {
		now, stat, readErr := a.session.Get(ctx, path, nil)
		if readErr != nil {
			return readErr
		}
		switch {
		case stat.Version == is.Version+1 && slices.Equal(now, data):
			err = nil
		case stat.Version != is.Version:
			return &OpError{Op: "set", Path: path, Err: ErrBadVersion}
		}
	}
	if err != nil {
		return err
	}
	is.Version++
	return nil
}

// UpdateIdealState changes an ideal state by compare-and-set as often as needed: change may be called again, with what is there then.
func (a *Admin) UpdateIdealState(ctx context.Context, resource string, change func(*IdealState) error) error {
	return a.update(ctx, updated{path: a.cluster.idealState(resource), id: resource, mustExist: true}, func(r *Record) error {
		return change(&IdealState{Record: r})
	})
}

// DropResource removes a resource's ideal state and config; the controller then has its partitions dropped. One that is gone is no error.
func (a *Admin) DropResource(ctx context.Context, resource string) error {
	if err := checkName("resource", resource); err != nil {
		return err
	}
	return a.remove(ctx, a.cluster.idealState(resource), a.cluster.configResource(resource))
}

// EnableResource lets a resource's partitions be ONLINE or not.
func (a *Admin) EnableResource(ctx context.Context, resource string, on bool) error {
	return a.UpdateIdealState(ctx, resource, func(is *IdealState) error {
		setEnabled(is.Record, on)
		return nil
	})
}

// CurrentStates reads what a live instance says of a resource: partition → state. ErrNotFound if the instance is not alive.
func (a *Admin) CurrentStates(ctx context.Context, instance, resource string) (map[string]State, error) {
	session, err := a.liveSession(ctx, instance)
	if err != nil {
		return nil, err
	}
	record, _, err := a.session.GetRecord(ctx, a.cluster.currentState(instance, session, resource), nil)
	if errors.Is(err, ErrNotFound) {
		return map[string]State{}, nil
	}
	if err != nil {
		return nil, err
	}
	return partitionStates(record), nil
}

func partitionStates(r *Record) map[string]State {
	states := make(map[string]State, len(r.Map))
	for partition, fields := range r.Map {
		if state := fields[keyCurrentState]; state != "" {
			states[partition] = State(state)
		}
	}
	return states
}

// liveSession is the session of a live instance: the owner of its node, as newer controllers see it.
func (a *Admin) liveSession(ctx context.Context, instance string) (string, error) {
	_, stat, err := a.session.Get(ctx, a.cluster.liveInstance(instance), nil)
	return stat.Owner, err
}

// ResetPartitions has partitions that are in ERROR on an instance go OFFLINE, from where the controller takes them. ErrRefused, and nothing is
// done, unless all are assigned there, in ERROR, and without a pending message; ErrNotFound if the instance is not alive or the resource is
// unknown.
func (a *Admin) ResetPartitions(ctx context.Context, instance, resource string, partitions ...string) error {
	refuse := func(partition, reason string) error {
		return fmt.Errorf("reset partition %s of %s on %s: %w: %s", partition, resource, instance, ErrRefused, reason)
	}
	session, err := a.liveSession(ctx, instance)
	if err != nil {
		return fmt.Errorf("reset %s on %s: %w", resource, instance, err)
	}
	is, err := a.IdealState(ctx, resource)
	if err != nil {
		return fmt.Errorf("reset %s on %s: %w", resource, instance, err)
	}
	states, err := a.CurrentStates(ctx, instance, resource)
	if err != nil {
		return err
	}
	pending, err := a.pending(ctx, instance, resource)
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "causeway"
	}
	var ops []Op
	for _, p := range partitions {
		switch {
		case is.Record.Map[p] == nil:
			return refuse(p, "not in the ideal state")
		case states[p] != Error:
			return refuse(p, "not in state ERROR")
		case pending[p]:
			return refuse(p, "a message for it is pending")
		}
		m := newTransition(Message{
			Source: host + "-ADMIN", Target: instance, TargetSession: session, Resource: resource, From: Error, To: Offline, Created: time.Now(),
		}, p)
		data, err := m.record().Encode()
		if err != nil {
			return err
		}
		ops = append(ops, CreateOp(a.cluster.message(instance, m.ID), data))
	}
	for _, chunk := range Chunks(ops, deletesPerTransaction) {
		if err := a.transact(ctx, chunk...); err != nil {
			return fmt.Errorf("reset %s on %s: %w", resource, instance, err)
		}
	}
	return nil
}

// pending gives the partitions of a resource for which a transition waits in the instance's queue.
func (a *Admin) pending(ctx context.Context, instance, resource string) (map[string]bool, error) {
	names, err := a.session.Children(ctx, a.cluster.messages(instance), nil)
	if err != nil {
		return nil, err
	}
	found := make([]*Message, len(names))
	err = a.session.Each(ctx, len(names), func(ctx context.Context, i int) error {
		record, _, err := a.session.GetRecord(ctx, a.cluster.message(instance, names[i]), nil)
		if err == nil {
			found[i] = parseMessage(names[i], record)
		}
		if errors.Is(err, ErrNotFound) || errors.Is(err, ErrMalformed) || errors.Is(err, ErrEmpty) {
			return nil
		}
		return err
	})
	pending := map[string]bool{}
	for _, m := range found {
		if m != nil && m.Type == msgTransition && m.Resource == resource {
			for _, p := range m.Partitions {
				pending[p] = true
			}
		}
	}
	return pending, err
}
