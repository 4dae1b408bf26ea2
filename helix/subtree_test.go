package helix

import (
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSubtreeFollowsWhatComesChangesAndGoes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	root := r.cfg.Cluster.Property("app", "commands")
	s := NewSubtree(r.open(r.cfg), root, 2, testLog(t))
	seen := func(want map[string]string) {
		t.Helper()
		eventually(t, func() error {
			select {
			case <-s.Changed():
				if err := s.Refresh(t.Context()); err != nil {
					return err
				}
			default:
			}
			got := map[string]string{}
			for at, v := range s.Records() {
				got[at] = v.Record.Simple["do"]
			}
			if !maps.Equal(got, want) {
				return fmt.Errorf("%v, not %v", got, want)
			}
			return nil
		})
	}
	say := func(what string, parts ...string) {
		t.Helper()
		require.NoError(t, r.admin.UpdateProperty(t.Context(), func(r *Record) error { r.Simple["do"] = what; return nil },
			append([]string{"app", "commands"}, parts...)...))
	}
	seen(map[string]string{})
	for range 2 { // the folders go and come again, too
		say("a", "t", "0")
		seen(map[string]string{"t/0": "a"})
		say("b", "t", "0")
		say("c", "t", "1")
		say("d", "u", "0")
		seen(map[string]string{"t/0": "b", "t/1": "c", "u/0": "d"})
		require.NoError(t, r.session().Put(t.Context(), root+"/t/1", []byte("{")))
		seen(map[string]string{"t/0": "b", "t/1": "c", "u/0": "d"}) // what can't be read changes nothing
		require.NoError(t, r.admin.RemoveProperty(t.Context(), "app", "commands", "t"))
		seen(map[string]string{"u/0": "d"})
		say("e", "t", "0")
		seen(map[string]string{"t/0": "e", "u/0": "d"})
		require.NoError(t, r.admin.RemoveProperty(t.Context(), "app", "commands"))
		seen(map[string]string{})
		require.NoError(t, r.admin.RemoveProperty(t.Context(), "app", "commands"), "again")
	}
}

func TestCommandIsRemovedUnlessItWasReplaced(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx, s, at := t.Context(), r.session(), r.cfg.Cluster.Property("app", "commands", "t", "0")
	require.NoError(t, s.CreateAll(ctx, at, []byte("a")))
	_, err := s.Set(ctx, at, []byte("b"), 0)
	require.NoError(t, err)
	require.ErrorIs(t, s.DeleteUnchanged(ctx, at, 0), ErrBadVersion)
	require.NoError(t, s.CreateAll(ctx, r.cfg.Cluster.Property("app", "commands", "t", "1"), nil))
	require.NoError(t, s.DeleteUnchanged(ctx, at, 1))
	names, err := s.Children(ctx, r.cfg.Cluster.Property("app", "commands", "t"), nil)
	require.NoError(t, err)
	require.Equal(t, []string{"1"}, names)
	require.NoError(t, s.DeleteUnchanged(ctx, at, 1), "again")
	require.NoError(t, s.DeleteUnchanged(ctx, r.cfg.Cluster.Property("app", "commands", "t", "1"), 0))
	there, _, err := s.Exists(ctx, r.cfg.Cluster.Property("app", "commands", "t"), nil)
	require.NoError(t, err)
	require.False(t, there, "the empty folder goes too")
}

func TestPropertiesAreWrittenByTheLeaderAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	guard := r.cfg.Cluster.Property("app", "epoch")
	require.NoError(t, r.session().CreateAll(t.Context(), guard, nil))
	leader := r.admin.Guarded(Guard{Path: guard, Version: 0})
	set := func(r *Record) error { r.Simple["x"] = "1"; return nil }
	require.NoError(t, leader.UpdateProperty(t.Context(), set, "app", "topics", "t"))
	_, err := r.session().Set(t.Context(), guard, nil, 0) // another one is elected
	require.NoError(t, err)
	require.ErrorIs(t, leader.UpdateProperty(t.Context(), set, "app", "topics", "u"), ErrDeposed)
	require.ErrorIs(t, leader.RemoveProperty(t.Context(), "app", "topics", "t"), ErrDeposed)
	refused := errors.New("no")
	require.ErrorIs(t, r.admin.UpdateProperty(t.Context(), func(*Record) error { return refused }, "app", "topics", "t"), refused)
	names, err := r.session().Children(t.Context(), r.cfg.Cluster.Property("app", "topics"), nil)
	require.NoError(t, err)
	require.Equal(t, []string{"t"}, names)
}
