package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// disk is a small file system of its own, in which a worker spills.
type disk struct{ dir string }

const diskBytes = 8 << 20

// newDisk mounts a file system below a folder; nil if only root may.
func newDisk(t *testing.T, dir string) *disk {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o700))
	err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", diskBytes))
	if errors.Is(err, syscall.EPERM) {
		return nil
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	return &disk{dir}
}

// strike takes all room that is left, and gives it back.
func (d *disk) strike(ctx context.Context, a action) error {
	filler := filepath.Join(d.dir, "filler")
	if err := os.WriteFile(filler, make([]byte, 2*diskBytes), 0o600); !errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("fill a disk: %w", err)
	}
	await(ctx, a.lasting)
	if err := os.Remove(filler); err != nil {
		return fmt.Errorf("give room back: %w", err)
	}
	return nil
}
