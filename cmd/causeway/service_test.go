package main

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/api"
	"github.com/causeway-mirror/causeway/cmd/internal/engine"
	"github.com/causeway-mirror/causeway/internal/conf"
)

func serviceOf(t *testing.T, mirror *fakeMirror) *service {
	t.Helper()
	s := defaultSettings()
	s.Route.Source.Bootstrap, s.Route.Target.Bootstrap = []string{"127.0.0.1:1"}, []string{"127.0.0.1:2"}
	s.Route.Topics.Include = []string{"orders"}
	s.Server.Listen, s.Offsets.Dir = "127.0.0.1:0", filepath.Join(t.TempDir(), "state")
	s.Worker.ShutdownTimeout = conf.Duration(time.Millisecond)
	v, err := openService(t.Context(), s, hclog.NewNullLogger(), func(settings, engine.Deps) (mirrorer, error) { return mirror, nil })
	require.NoError(t, err)
	return v
}

func TestFailedMirrorIsOwnFault(t *testing.T) {
	t.Parallel()
	err := serviceOf(t, &fakeMirror{fail: errors.New("disk full")}).run(t.Context())
	exit, ok := errors.AsType[*exitError](err)
	require.True(t, ok)
	require.Equal(t, exitFault, exit.code)
	require.ErrorContains(t, err, "disk full")
}

func TestMirrorThatDoesNotStopIsGivenUp(t *testing.T) {
	t.Parallel()
	mirror := &fakeMirror{stuck: make(chan struct{})}
	v := serviceOf(t, mirror)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	done := make(chan error, 1)
	go func() { done <- v.run(ctx) }()
	require.Eventually(t, func() bool { return v.Snapshot().State == api.StateDraining }, 10*time.Second, time.Millisecond)
	err := <-done
	close(mirror.stuck)
	require.ErrorContains(t, err, "did not stop within")
}

func TestRefusedMirrorClosesWhatWasOpened(t *testing.T) {
	t.Parallel()
	s := defaultSettings()
	s.Server.Listen, s.Offsets.Dir = "127.0.0.1:0", filepath.Join(t.TempDir(), "state")
	refuse := func(settings, engine.Deps) (mirrorer, error) { return nil, errors.New("no") }
	for range 2 { // the second time would find the folder locked
		_, err := openService(t.Context(), s, hclog.NewNullLogger(), refuse)
		require.EqualError(t, err, "no")
	}
}

func TestIgnoredPropertiesAreNamedOnce(t *testing.T) {
	t.Parallel()
	s := defaultSettings()
	s.Server.Listen, s.Offsets.Dir = "127.0.0.1:0", filepath.Join(t.TempDir(), "state")
	s.Route.Source.Ignored = []string{"acks", "group.id"}
	var text bytes.Buffer
	v, err := openService(t.Context(), s, newLogger(&s, &text), func(settings, engine.Deps) (mirrorer, error) { return &fakeMirror{}, nil })
	require.NoError(t, err)
	require.NoError(t, v.close())
	require.Equal(t, 1, strings.Count(text.String(), "ignored"))
	require.Contains(t, text.String(), `cluster=source keys="acks,group.id"`)
}

func TestSnapshotJoinsMirrorAndDiscovery(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name          string
		mirror        string
		rounds        int
		trouble       string
		state, reason string
	}{
		{"not asked yet", "mirroring", 0, "", "starting", "asking both clusters for their topics"},
		{"cannot ask", "mirroring", 0, "source a: refused", "starting", "source a: refused"},
		{"well", "mirroring", 3, "", "mirroring", ""},
		{"cannot ask any more", "mirroring", 3, "source a: refused", "degraded", "source a: refused"},
		{"the mirror knows more", "degraded", 3, "source a: refused", "degraded", "target"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			m := &fakeMirror{state: api.Snapshot{State: row.mirror}}
			if row.mirror == "degraded" {
				m.state.Reason = "target"
			}
			v := &service{mirror: m, discovery: &discovery{rounds: row.rounds, trouble: row.trouble}}
			got := v.Snapshot()
			require.Equal(t, row.state, got.State)
			require.Equal(t, row.reason, got.Reason)
		})
	}
}

func TestWaitNeedsADiscoveryFirst(t *testing.T) {
	t.Parallel()
	v := &service{mirror: &fakeMirror{}, discovery: &discovery{}}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	_, ok, err := v.WaitCaughtUp(ctx, "", 0)
	require.False(t, ok, "no topics are not the same as no lag")
	require.Error(t, err)
	d := newDiscovery(t, ".*")
	v.discovery = d.discovery
	require.NoError(t, d.round(t.Context()))
	_, ok, err = v.WaitCaughtUp(t.Context(), "", 0)
	require.True(t, ok)
	require.NoError(t, err)
}
