package helix

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Instance is an instance's config.
type Instance struct {
	Name    string // <host>_<port> where nobody says otherwise
	Host    string
	Port    string
	Enabled bool
	Tags    []string
	// Disabled are partitions that should be OFFLINE on this instance, by resource.
	Disabled map[string][]string
}

// newInstance is what a participant says of itself when it joins: host and port from its name, if it has both. Java peers of uReplicator look a
// host up by its port and break over an empty one.
func newInstance(name string) Instance {
	in := Instance{Name: name, Host: name, Port: "0", Enabled: true}
	if at := strings.LastIndexByte(name, '_'); at > 0 && at < len(name)-1 {
		in.Host, in.Port = name[:at], name[at+1:]
	}
	return in
}

func (in Instance) record() *Record {
	r := NewRecord(in.Name)
	r.Simple[keyHost], r.Simple[keyPort], r.Simple[keyEnabled] = in.Host, in.Port, configFalse
	if in.Enabled {
		r.Simple[keyEnabled] = configTrue
	}
	if len(in.Tags) > 0 {
		r.List[keyTagList] = slices.Clone(in.Tags)
	}
	for resource, partitions := range in.Disabled {
		disable(r, resource, partitions, true)
	}
	return r
}

func parseInstance(name string, r *Record) Instance {
	in := Instance{
		Name: name, Host: r.Simple[keyHost], Port: r.Simple[keyPort], Enabled: enabled(r), Tags: r.List[keyTagList],
		Disabled: map[string][]string{},
	}
	for resource, partitions := range r.Map[keyDisabledPartition] {
		if list := splitList(partitions); len(list) > 0 {
			in.Disabled[resource] = list
		}
	}
	return in
}

func splitList(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}

// disable adds partitions to those disabled, or takes them away; an empty list stays behind, as Java leaves it.
func disable(r *Record, resource string, partitions []string, off bool) {
	if r.Map[keyDisabledPartition] == nil {
		r.Map[keyDisabledPartition] = map[string]string{}
	}
	set := map[string]bool{}
	for _, p := range splitList(r.Map[keyDisabledPartition][resource]) {
		set[p] = true
	}
	for _, p := range partitions {
		if delete(set, p); off {
			set[p] = true
		}
	}
	r.Map[keyDisabledPartition][resource] = strings.Join(slices.Sorted(maps.Keys(set)), ",")
}

// AddInstance creates an instance's config and folders. ErrExists if it has a config, *MissingError if the cluster is not set up.
func (a *Admin) AddInstance(ctx context.Context, in Instance) error {
	if err := checkName("instance", in.Name); err != nil {
		return err
	}
	if err := a.CheckCluster(ctx); err != nil {
		return err
	}
	data, err := in.record().Encode()
	if err != nil {
		return err
	}
	if err := a.create(ctx, a.cluster.configParticipant(in.Name), data); err != nil {
		return fmt.Errorf("add instance %s: %w", in.Name, err)
	}
	for _, folder := range a.cluster.instanceFolders(in.Name) {
		if err := a.create(ctx, folder, nil); err != nil && !errors.Is(err, ErrExists) {
			return fmt.Errorf("add instance %s: %w", in.Name, err)
		}
	}
	return nil
}

// DropInstance removes an instance's config and folders. ErrRefused while it is alive.
func (a *Admin) DropInstance(ctx context.Context, name string) error {
	if err := checkName("instance", name); err != nil {
		return err
	}
	live, _, err := a.session.Exists(ctx, a.cluster.liveInstance(name), nil)
	if err != nil {
		return err
	}
	if live {
		return fmt.Errorf("drop instance %s: %w: it is alive", name, ErrRefused)
	}
	if err := a.remove(ctx, a.cluster.configParticipant(name)); err != nil {
		return err
	}
	return a.session.DeleteTree(ctx, a.cluster.instance(name))
}

// Instances lists the instances that have a config, by name.
func (a *Admin) Instances(ctx context.Context) ([]string, error) {
	return a.session.Children(ctx, a.cluster.configParticipants(), nil)
}

// Instance reads an instance's config; ErrNotFound if there is none.
func (a *Admin) Instance(ctx context.Context, name string) (Instance, error) {
	r, err := a.Config(ctx, ParticipantScope(name))
	if err != nil {
		return Instance{}, err
	}
	return parseInstance(name, r), nil
}

// LiveInstances lists the instances that are alive, by name.
func (a *Admin) LiveInstances(ctx context.Context) ([]string, error) {
	return a.session.Children(ctx, a.cluster.liveInstances(), nil)
}

// EnableInstance lets an instance have partitions ONLINE or not. ErrNotFound for an unknown one, as below.
func (a *Admin) EnableInstance(ctx context.Context, name string, on bool) error {
	return a.changeInstance(ctx, name, func(r *Record) { setEnabled(r, on) })
}

// EnablePartitions does the same for some partitions of a resource on that instance.
func (a *Admin) EnablePartitions(ctx context.Context, name, resource string, partitions []string, on bool) error {
	return a.changeInstance(ctx, name, func(r *Record) { disable(r, resource, partitions, !on) })
}

// AddTag gives an instance a tag that it may have already.
func (a *Admin) AddTag(ctx context.Context, name, tag string) error {
	return a.changeInstance(ctx, name, func(r *Record) {
		if !slices.Contains(r.List[keyTagList], tag) {
			r.List[keyTagList] = append(r.List[keyTagList], tag)
		}
	})
}

// RemoveTag takes a tag away that the instance may not have.
func (a *Admin) RemoveTag(ctx context.Context, name, tag string) error {
	return a.changeInstance(ctx, name, func(r *Record) {
		r.List[keyTagList] = slices.DeleteFunc(r.List[keyTagList], func(t string) bool { return t == tag })
	})
}

func (a *Admin) changeInstance(ctx context.Context, name string, change func(*Record)) error {
	if err := checkName("instance", name); err != nil {
		return err
	}
	return a.update(ctx, updated{path: a.cluster.configParticipant(name), id: name, mustExist: true}, func(r *Record) error {
		change(r)
		return nil
	})
}

func setEnabled(r *Record, on bool) {
	if r.Simple[keyEnabled] = configFalse; on {
		r.Simple[keyEnabled] = configTrue
	}
}
