package spill

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFullDiskIsNoMoreRoomAndNoLoss(t *testing.T) {
	t.Parallel()
	cfg := small(t.TempDir())
	r := newRig(t, cfg, 0)
	next := r.fill(0, 10)
	for n := range 3 { // in the middle of the head, of the frame, in front of everything
		r.store.disk.writeAt = func(f *os.File, b []byte, at int64) (int, error) {
			written, err := f.WriteAt(b[:n*20], at)
			return written, errors.Join(err, syscall.ENOSPC)
		}
		used := r.store.Bytes()
		err := r.put(source{}.item(next))
		require.ErrorIs(t, err, ErrFull)
		require.ErrorIs(t, err, syscall.ENOSPC)
		require.Equal(t, used, r.store.Bytes())
		r.store.disk.writeAt = (*os.File).WriteAt
		next = r.fill(next, 1)
	}
	r.crash()
	r.open(0)
	lost, end := r.take()
	require.Empty(t, lost)
	require.Equal(t, next, end)
}

func TestPutIsTriedTwiceOnAFullDisk(t *testing.T) {
	t.Parallel()
	r := newRig(t, small(t.TempDir()), 0)
	next := r.fill(0, 5)
	tries := 0
	r.store.disk.writeAt = func(f *os.File, b []byte, at int64) (int, error) {
		if tries++; tries == 1 {
			return 0, syscall.ENOSPC
		}
		return f.WriteAt(b, at)
	}
	next = r.fill(next, 1)
	require.Equal(t, 2, tries)
	_, end := r.take()
	require.Equal(t, next, end)
}

func TestDiskThatFailsIsNotWrittenToAgain(t *testing.T) {
	t.Parallel()
	broken := errors.New("input/output error")
	for _, what := range []string{"sync", "cut"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, small(t.TempDir()), 0)
			next := r.fill(0, 8)
			if what == "sync" {
				r.store.disk.sync = func(*os.File) error { return broken }
				require.ErrorIs(t, r.queue.log.sync(), broken)
				r.store.disk.sync = (*os.File).Sync
			} else {
				r.store.disk.writeAt = func(f *os.File, _ []byte, _ int64) (int, error) {
					return 0, errors.Join(broken, f.Close()) // so that it can't be cut either
				}
				require.ErrorIs(t, r.put(source{}.item(next)), broken)
				r.store.disk.writeAt = (*os.File).WriteAt
			}
			require.Error(t, r.put(source{}.item(next)))
			_, end := r.take()
			require.Equal(t, next, end, "what is there can be taken")
			require.NoError(t, r.queue.Trim(end))
			r.crash()
			r.open(end)
			r.fill(end, 8)
		})
	}
}

func TestErrorOfTheDiskIsNotTakenForDamage(t *testing.T) {
	t.Parallel()
	files, _ := written(t, 14)
	cfg := lay(t, files)
	path := filepath.Join(cfg.Dir, "orders-3", names(files)[1])
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Symlink(path, path))
	s, err := Open(cfg, Deps{})
	require.NoError(t, err)
	_, err = s.Queue(orders, origin, 0)
	require.ErrorIs(t, err, syscall.ELOOP)
	require.NoError(t, s.Close())
}
