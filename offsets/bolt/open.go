package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bberrors "go.etcd.io/bbolt/errors"

	"github.com/causeway-mirror/causeway/offsets"
)

// LockTimeout is how long Open waits for another process to leave the folder: long enough for a predecessor that is closing.
const LockTimeout = 2 * time.Second

// ErrLocked says that another process has the folder.
var ErrLocked = errors.New("another process uses this folder")

// Open opens the store of a folder and creates both if need be, the folder with mode 0700, the file with 0600. It waits at most LockTimeout
// for another process and reads all that is stored once. Every error is an *offsets.StorageError.
func Open(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil { //nolint:gosec // the operator names the folder
		return nil, &offsets.StorageError{Op: "create folder", Path: dir, Err: err}
	}
	s := &Store{path: filepath.Join(dir, FileName)}
	var file *os.File
	err := guard(func() (err error) {
		s.db, err = bbolt.Open(s.path, 0o600, &bbolt.Options{
			Timeout: LockTimeout,
			OpenFile: func(name string, flag int, mode os.FileMode) (f *os.File, err error) {
				f, err = os.OpenFile(name, flag, mode)
				if file == nil {
					file = f
				}
				return f, err
			},
		})
		if err != nil {
			return err
		}
		return s.prepare(dir, file)
	})
	switch {
	case err == nil:
		return s, nil
	case errors.Is(err, bberrors.ErrTimeout):
		return nil, &offsets.StorageError{Op: "open state", Path: dir, Err: ErrLocked}
	case s.db != nil:
		_ = s.db.Close()
	case file != nil: // after a panic inside bbolt; the memory map would hold the lock even when the file is closed
		_ = syscall.Flock(int(file.Fd()), syscall.LOCK_UN)
		_ = file.Close()
	}
	return nil, &offsets.StorageError{Op: "open state", Path: s.path, Err: blame(err)}
}

// blame tells a damaged file from a disk that refuses: what is neither the system's word nor our own is bbolt's complaint about content.
func blame(err error) error {
	var errno syscall.Errno
	var version *offsets.VersionError
	if errors.As(err, &errno) || errors.As(err, &version) || errors.Is(err, offsets.ErrCorrupt) {
		return err
	}
	return fmt.Errorf("%w: %w", offsets.ErrCorrupt, err)
}

// prepare makes a new file durable and reads an old one through.
func (s *Store) prepare(dir string, file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if err := s.db.View(func(tx *bbolt.Tx) error {
		if tx.Size() > info.Size() {
			return fmt.Errorf("%w: the file has %d bytes of %d, it was cut short", offsets.ErrCorrupt, info.Size(), tx.Size())
		}
		return nil
	}); err != nil {
		return err
	}
	if err := s.db.Update(createLayout); err != nil {
		return err
	}
	if err := syncFolder(dir); err != nil {
		return err
	}
	return s.db.View(checkAll)
}

// syncFolder makes the file's name durable; bbolt syncs its content only.
func syncFolder(dir string) error {
	folder, err := os.Open(dir) //nolint:gosec // the operator names the folder
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// Close closes the file and gives the folder free.
func (s *Store) Close() error {
	if err := s.db.Close(); err != nil {
		return &offsets.StorageError{Op: "close state", Path: s.path, Err: err}
	}
	return nil
}

func (s *Store) view(ctx context.Context, op string, read func(*bbolt.Tx) error) error {
	return s.run(ctx, op, func() error { return s.db.View(read) })
}

func (s *Store) update(ctx context.Context, op string, write func(*bbolt.Tx) error) error {
	return s.run(ctx, op, func() error { return s.db.Update(write) })
}

// run gives every failure but a conflict and the context's own its operation and path.
func (s *Store) run(ctx context.Context, op string, transact func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := guard(transact)
	if err == nil || errors.Is(err, offsets.ErrConflict) {
		return err
	}
	return &offsets.StorageError{Op: op, Path: s.path, Err: err}
}

// guard turns what bbolt and the memory map do on a damaged file, panics and page faults, into ErrCorrupt.
func guard(transact func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("%w: %v", offsets.ErrCorrupt, reason)
		}
	}()
	return transact()
}
