package bolt

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/offsets/storetest"
	"github.com/causeway-mirror/causeway/route"
)

// together is how many partitions the child saves at once: after a kill all must stand at the same offset.
const together = 40

func child(part, dir string) error {
	switch part {
	case "save":
		return childSave(dir)
	case "full":
		limit := syscall.Rlimit{Cur: 256 << 10, Max: 256 << 10}
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			return err
		}
		_, err := saveUntilFull(context.Background(), dir)
		return err
	}
	return fmt.Errorf("unknown part %q", part)
}

// childSave saves for ever and says on stdout what it knows to be stored.
func childSave(dir string) error {
	ctx := context.Background()
	s, err := Open(dir)
	if err != nil {
		return err
	}
	for offset := route.Offset(0); ; offset++ {
		checkpoints := make([]offsets.Checkpoint, together)
		for i := range checkpoints {
			checkpoints[i] = storetest.Checkpoint("topic", int32(i), offset)
		}
		if offset == 0 {
			now, err := s.Load(ctx, []route.Partition{checkpoints[0].Partition})
			if err != nil {
				return err
			}
			if c, ok := now[checkpoints[0].Partition]; ok {
				offset = c.SourceOffset
				continue
			}
			for _, c := range checkpoints {
				if err := s.Begin(ctx, nil, c); err != nil {
					return err
				}
			}
		}
		if err := s.Save(ctx, checkpoints); err != nil {
			return err
		}
		fmt.Println(offset)
	}
}

func startChild(t *testing.T, part, dir string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+part, "CAUSEWAY_BOLT_TEST_DIR="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	return cmd, bufio.NewScanner(out)
}

// readSome reads at least one line of the child's and a random number more, and gives the last.
func readSome(t *testing.T, lines *bufio.Scanner) route.Offset {
	t.Helper()
	last := route.NoOffset
	for range 1 + rand.IntN(30) {
		require.True(t, lines.Scan(), "the child has ended")
		n, err := strconv.Atoi(lines.Text())
		require.NoError(t, err)
		last = route.Offset(n)
	}
	return last
}

// stoodAt gives the one offset at which all partitions stand.
func stoodAt(t *testing.T, dir string) route.Offset {
	t.Helper()
	s, err := Open(dir)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	parts, err := s.Partitions(t.Context())
	require.NoError(t, err)
	require.Len(t, parts, together)
	found, err := s.Load(t.Context(), parts)
	require.NoError(t, err)
	first := found[parts[0]].SourceOffset
	for _, c := range found {
		require.Equal(t, first, c.SourceOffset, "a save was stored in part")
	}
	return first
}

func TestKilledInTheMiddleOfSaves(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for range 8 {
		cmd, lines := startChild(t, "save", dir)
		acknowledged := readSome(t, lines)
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait()
		require.GreaterOrEqual(t, stoodAt(t, dir), acknowledged, "an acknowledged save is lost")
	}
}

func TestCopyOfPausedProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd, lines := startChild(t, "save", dir)
	for range 8 {
		acknowledged := readSome(t, lines)
		require.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))
		waitStopped(t, cmd.Process.Pid)
		copied := t.TempDir()
		copyFile(t, filepath.Join(dir, FileName), filepath.Join(copied, FileName))
		require.GreaterOrEqual(t, stoodAt(t, copied), acknowledged)
		require.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
	}
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
}

// waitStopped waits until every thread of the child stands still: the signal is only a request.
func waitStopped(t *testing.T, pid int) {
	t.Helper()
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(pid, &status, syscall.WUNTRACED, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		require.NoError(t, err)
		break
	}
	require.True(t, status.Stopped())
}

// saveUntilFull adds partitions until the disk refuses, and gives how many were acknowledged.
func saveUntilFull(ctx context.Context, dir string) (int, error) {
	s, err := Open(dir)
	if err != nil {
		return 0, err
	}
	for n := range 100_000 {
		if err := s.Begin(ctx, nil, storetest.Checkpoint("topic", int32(n), 100)); err != nil {
			return n, errors.Join(err, s.Close())
		}
	}
	return 0, errors.Join(errors.New("the disk was never full"), s.Close())
}

func TestFileSizeLimit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"=full", "CAUSEWAY_BOLT_TEST_DIR="+dir)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, "%s", out)
	require.Equal(t, 1, exit.ExitCode(), "it must end by an error, not by a signal or a panic: %s", out)
	require.Equal(t, "begin checkpoint in "+filepath.Join(dir, FileName)+": "+
		"file resize error: truncate "+filepath.Join(dir, FileName)+": file too large\n", string(out))
	require.Positive(t, count(t, dir), "what was acknowledged before is there")
}

func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := mountSmall(t)
	acknowledged, err := saveUntilFull(t.Context(), dir)
	requireStorage(t, err, filepath.Join(dir, FileName), syscall.ENOSPC)
	require.GreaterOrEqual(t, acknowledged, 10)
	require.Equal(t, acknowledged, count(t, dir), "what was acknowledged before is there")

	require.NoError(t, syscall.Mount("", dir, "", syscall.MS_REMOUNT, "size=8m"))
	s, err := Open(dir)
	require.NoError(t, err)
	require.NoError(t, s.Begin(t.Context(), nil, storetest.Checkpoint("topic", int32(acknowledged), 100)), "there is room again")
	require.NoError(t, s.Close())
	require.Equal(t, acknowledged+1, count(t, dir))
}

func TestReadOnlyDisk(t *testing.T) {
	t.Parallel()
	dir := mountSmall(t)
	fill(t, dir, 3)
	require.NoError(t, syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
	_, err := Open(dir)
	requireStorage(t, err, filepath.Join(dir, FileName), syscall.EROFS)
}

func requireStorage(t *testing.T, err error, path string, cause syscall.Errno) {
	t.Helper()
	var storage *offsets.StorageError
	require.ErrorAs(t, err, &storage)
	require.Equal(t, path, storage.Path)
	require.ErrorIs(t, err, cause)
	require.ErrorContains(t, err, path)
}

// mountSmall mounts a memory file system of 256 KiB, or skips where that is not allowed; TestFileSizeLimit runs everywhere.
func mountSmall(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Skipf("no file system can be mounted here: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, 0)) })
	return dir
}
