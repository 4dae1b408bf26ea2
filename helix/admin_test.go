package helix

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestClusterHasWhatPeersRequire(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx, c := t.Context(), r.cfg.Cluster
	require.NoError(t, r.admin.CheckCluster(ctx))
	require.NoError(t, r.admin.CreateCluster(ctx, nil), "again")
	config, err := r.admin.Config(ctx, ClusterScope())
	require.NoError(t, err)
	require.Equal(t, string(c), config.ID)
	require.Equal(t, map[string]string{keyAutoJoin: configTrue}, config.Simple, "a second creation takes nothing away")
	for _, path := range c.required() {
		data, _, err := r.session().Get(ctx, path, nil)
		require.NoError(t, err, path)
		switch path {
		case c.configCluster(), c.controllerHistory():
			_, err := DecodeRecord(data)
			require.NoError(t, err, path)
		default:
			require.Empty(t, data, path)
		}
	}
	model, _, err := r.session().GetRecord(ctx, c.stateModel(OnlineOffline), nil)
	require.NoError(t, err)
	require.Equal(t, stateModelRecord(), model)

	require.NoError(t, r.admin.EnableCluster(ctx, false))
	require.NoError(t, r.admin.EnableCluster(ctx, false))
	_, _, err = r.session().GetRecord(ctx, c.pause(), nil)
	require.NoError(t, err)
	require.NoError(t, r.admin.EnableCluster(ctx, true))
	require.NoError(t, r.admin.EnableCluster(ctx, true))
	_, _, err = r.session().GetRecord(ctx, c.pause(), nil)
	require.ErrorIs(t, err, ErrNotFound)

	m := r.join("a_1")
	require.ErrorIs(t, r.admin.DropCluster(ctx), ErrRefused)
	require.NoError(t, m.stop())
	require.NoError(t, r.admin.DropCluster(ctx))
	require.ErrorIs(t, r.admin.CheckCluster(ctx), ErrNotSetUp)
}

func TestInstancesAreAddedChangedAndDropped(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx, a := t.Context(), r.admin
	in := Instance{Name: "host1_9001", Host: "host1", Port: "9001", Enabled: true, Tags: []string{"x"}, Disabled: map[string][]string{}}
	require.NoError(t, a.AddInstance(ctx, in))
	require.ErrorIs(t, a.AddInstance(ctx, in), ErrExists)
	require.ErrorContains(t, a.AddInstance(ctx, Instance{Name: "a/b"}), `instance: "a/b"`)
	got, err := a.Instance(ctx, "host1_9001")
	require.NoError(t, err)
	require.Equal(t, in, got)

	require.NoError(t, a.SetConfig(ctx, ParticipantScope("host1_9001"), map[string]string{"OURS": "kept"}))
	require.NoError(t, a.EnablePartitions(ctx, "host1_9001", "topic", []string{"3", "1"}, false))
	require.NoError(t, a.EnablePartitions(ctx, "host1_9001", "topic", []string{"2"}, false))
	require.NoError(t, a.EnablePartitions(ctx, "host1_9001", "other", []string{"7"}, false))
	require.NoError(t, a.EnablePartitions(ctx, "host1_9001", "topic", []string{"3", "9"}, true))
	require.NoError(t, a.EnableInstance(ctx, "host1_9001", false))
	require.NoError(t, a.AddTag(ctx, "host1_9001", "y"))
	require.NoError(t, a.AddTag(ctx, "host1_9001", "y"))
	require.NoError(t, a.RemoveTag(ctx, "host1_9001", "x"))
	record, err := a.Config(ctx, ParticipantScope("host1_9001"))
	require.NoError(t, err)
	require.Equal(t, map[string]string{keyHost: "host1", keyPort: "9001", keyEnabled: "false", "OURS": "kept"}, record.Simple)
	require.Equal(t, map[string]map[string]string{keyDisabledPartition: {"topic": "1,2", "other": "7"}}, record.Map)
	require.Equal(t, []string{"y"}, record.List[keyTagList])
	require.NoError(t, a.EnablePartitions(ctx, "host1_9001", "topic", []string{"1", "2"}, true))
	got, err = a.Instance(ctx, "host1_9001")
	require.NoError(t, err)
	require.Equal(t, map[string][]string{"other": {"7"}}, got.Disabled)
	require.ErrorIs(t, a.EnableInstance(ctx, "unknown", true), ErrNotFound)

	m := r.join("host1_9001")
	require.ErrorIs(t, a.DropInstance(ctx, "host1_9001"), ErrRefused)
	require.NoError(t, m.stop())
	require.NoError(t, a.DropInstance(ctx, "host1_9001"))
	names, err := a.Instances(ctx)
	require.NoError(t, err)
	require.Empty(t, names)
	found, _, err := r.session().Exists(ctx, r.cfg.Cluster.instance("host1_9001"), nil)
	require.NoError(t, err)
	require.False(t, found)
}

func TestIdealStatesAreChangedByCompareAndSet(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx, a := t.Context(), r.admin
	is := NewIdealState("topic", 2, 1)
	is.Assign("0", "a_1", Online)
	unknown := is.Clone()
	unknown.Record.Simple[keyStateModelRef] = "Unknown"
	require.ErrorIs(t, a.AddResource(ctx, unknown), ErrNotFound)
	require.NoError(t, a.AddResource(ctx, is))
	require.ErrorIs(t, a.AddResource(ctx, is), ErrExists)
	config, err := a.Config(ctx, ResourceScope("topic"))
	require.NoError(t, err)
	require.Equal(t, NewRecord("topic"), config)

	first, err := a.IdealState(ctx, "topic")
	require.NoError(t, err)
	require.Equal(t, is.Record, first.Record)
	second := first.Clone()
	first.Assign("1", "b_1", Online)
	require.NoError(t, a.SetIdealState(ctx, first))
	require.NoError(t, a.SetIdealState(ctx, first), "the version goes along")
	second.Assign("1", "c_1", Online)
	require.ErrorIs(t, a.SetIdealState(ctx, second), ErrBadVersion)
	fault := errors.New("no")
	require.ErrorIs(t, a.UpdateIdealState(ctx, "topic", func(*IdealState) error { return fault }), fault)
	require.NoError(t, a.UpdateIdealState(ctx, "topic", func(is *IdealState) error {
		is.Unassign("0")
		is.SetPartitions(3)
		return nil
	}))
	require.NoError(t, a.EnableResource(ctx, "topic", false))
	now, err := a.IdealState(ctx, "topic")
	require.NoError(t, err)
	require.Equal(t, map[string]map[string]string{"1": {"b_1": "ONLINE"}}, now.Record.Map)
	require.Equal(t, 3, now.Partitions())
	require.False(t, now.Enabled())

	require.NoError(t, r.session().Create(ctx, r.cfg.Cluster.idealState("torn"), []byte(`{"id":"torn","simpleFi`)))
	states, faults, err := a.IdealStates(ctx)
	require.NoError(t, err)
	require.Len(t, states, 1)
	require.Len(t, faults, 1)
	require.ErrorIs(t, faults[0], ErrMalformed)
	require.NoError(t, a.DropResource(ctx, "topic"))
	require.NoError(t, a.DropResource(ctx, "topic"))
	_, err = a.IdealState(ctx, "topic")
	require.ErrorIs(t, err, ErrNotFound)
	_, err = a.Config(ctx, ResourceScope("topic"))
	require.ErrorIs(t, err, ErrNotFound)
}

func TestGuardedWritesFailAfterTheNextElection(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx, epoch := t.Context(), r.cfg.Cluster.Property("causeway", "epoch")
	require.NoError(t, r.session().CreateAll(ctx, epoch, nil))
	guarded := r.admin.Guarded(Guard{Path: epoch, Version: 0})
	require.NoError(t, guarded.AddInstance(ctx, newInstance("a_1")))
	is := NewIdealState("topic", 1, 1)
	require.NoError(t, guarded.AddResource(ctx, is))
	require.ErrorIs(t, guarded.AddResource(ctx, is), ErrExists, "an operation's own failure is no deposition")
	require.NotErrorIs(t, guarded.AddResource(ctx, is), ErrDeposed)

	_, err := r.session().Set(ctx, epoch, nil, 0) // the next election
	require.NoError(t, err)
	for name, write := range map[string]func() error{
		"config":   func() error { return guarded.SetConfig(ctx, ClusterScope(), map[string]string{"a": "b"}) },
		"instance": func() error { return guarded.AddInstance(ctx, newInstance("b_1")) },
		"enable":   func() error { return guarded.EnableInstance(ctx, "a_1", false) },
		"resource": func() error { return guarded.AddResource(ctx, NewIdealState("other", 1, 1)) },
		"set":      func() error { return guarded.SetIdealState(ctx, is) },
		"drop":     func() error { return guarded.DropResource(ctx, "topic") },
		"pause":    func() error { return guarded.EnableCluster(ctx, false) },
	} {
		require.ErrorIs(t, write(), ErrDeposed, name)
	}
	names, err := r.admin.Instances(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"a_1"}, names)
	resources, err := r.admin.Resources(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"topic"}, resources)
}

func TestAdministrationGoesOnOverCutConnections(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := NewAdmin(r.open(r.through()), r.cfg.Cluster)
	stop, cut := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(cut)
		for n := range 40 {
			select {
			case <-stop:
				return
			default:
				r.proxy.Cut()
				_, _ = r.session().Children(t.Context(), r.cfg.Cluster.Root(), nil) // a round trip's pause
				_ = n
			}
		}
	}()
	is := NewIdealState("topic", 1, 1)
	require.NoError(t, a.AddResource(t.Context(), is))
	for i := range 20 {
		require.NoError(t, a.UpdateIdealState(t.Context(), "topic", func(is *IdealState) error {
			is.SetPartitions(i + 2)
			return nil
		}))
	}
	close(stop)
	<-cut
	now, err := r.admin.IdealState(t.Context(), "topic")
	require.NoError(t, err)
	require.Equal(t, 21, now.Partitions())
}
