package kafkad

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// libs makes a folder that looks like one with the jars of a release.
func libs(t *testing.T, dir, release string) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kafka-clients-"+release+".jar"), nil, 0o600))
	return dir
}

func TestNewestFetchedReleaseIsTaken(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	_, _, err := Fetched(cache)
	require.ErrorContains(t, err, cache)
	libs(t, filepath.Join(cache, "kafka-libs-3.2.9"), "3.2.9")
	_, _, err = Fetched(cache)
	require.Error(t, err, "too old to run without ZooKeeper")
	libs(t, filepath.Join(cache, "kafka-libs-4.9.0"), "4.9.0")
	want := libs(t, filepath.Join(cache, "kafka-libs-4.10.1"), "4.10.1")
	require.NoError(t, os.Mkdir(filepath.Join(cache, "kafka-libs-9.9.9"), 0o750)) // empty
	dir, release, err := Fetched(cache)
	require.NoError(t, err)
	require.Equal(t, want, dir)
	require.Equal(t, "4.10.1", release)
}

func TestInstallation(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	_, _, err := Installed(home)
	require.ErrorContains(t, err, filepath.Join(home, "libs"))
	want := libs(t, filepath.Join(home, "libs"), "3.9.2")
	dir, release, err := Installed(home)
	require.NoError(t, err)
	require.Equal(t, want, dir)
	require.Equal(t, "3.9.2", release)
	old := t.TempDir()
	libs(t, filepath.Join(old, "libs"), "2.8.1")
	_, _, err = Installed(old)
	require.ErrorContains(t, err, "2.8.1")
}

func TestJavaOfItsHomeComesFirst(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(home, "bin"), 0o750))
	java := filepath.Join(home, "bin", "java")
	require.NoError(t, os.WriteFile(java, nil, 0o700))
	found, err := JDK(home, "java")
	require.NoError(t, err)
	require.Equal(t, java, found)
	_, err = JDK(home, "no-such-program-anywhere")
	require.Error(t, err)
}

func shell(t *testing.T, script string) *Process {
	t.Helper()
	p := &Process{Name: "shell", Dir: t.TempDir(), Args: []string{"/bin/sh", "-c", script}}
	require.NoError(t, p.Launch())
	t.Cleanup(func() { require.NoError(t, p.Kill()) })
	return p
}

func TestStopAndKillLeaveNothing(t *testing.T) {
	t.Parallel()
	p := shell(t, "echo up; sleep 100 & wait")
	require.NoError(t, p.Until(t.Context(), func(context.Context) error {
		if !strings.Contains(p.Log(), "up") {
			return errors.New("not yet")
		}
		return nil
	}))
	require.Error(t, p.Launch(), "it is running")
	require.NoError(t, p.Stop())
	require.False(t, p.Running())
	require.NoError(t, p.Stop(), "again")
	require.NoError(t, p.Kill(), "again")
	require.NoError(t, Poll(t.Context(), 20*time.Second, func(context.Context) error {
		if !errors.Is(syscall.Kill(-p.Pid(), 0), syscall.ESRCH) {
			return errors.New("its children have not ended")
		}
		return nil
	}))
	require.NoError(t, p.Launch())
	require.NoError(t, p.Kill())
	require.Equal(t, -1, p.ExitCode())
}

func TestUntilTellsOfAnEarlyEnd(t *testing.T) {
	t.Parallel()
	p := shell(t, "echo Address already in use; exit 3")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	err := p.Until(ctx, func(context.Context) error { return errors.New("not yet") })
	require.ErrorContains(t, err, "shell ended before it served")
	require.ErrorContains(t, err, "Address already in use")
	require.True(t, p.Unlucky())
	require.Equal(t, 3, p.ExitCode())
}

func TestRenderIsSorted(t *testing.T) {
	t.Parallel()
	require.Equal(t, "a=1\nb=2\n", string(Render(map[string]string{"b": "2", "a": "1"})))
}

func TestFreePortsDiffer(t *testing.T) {
	t.Parallel()
	ports, err := FreePorts(20)
	require.NoError(t, err)
	seen := map[int]bool{}
	for _, p := range ports {
		require.False(t, seen[p])
		seen[p] = true
	}
}
