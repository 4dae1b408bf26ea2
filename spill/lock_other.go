//go:build !unix || solaris || aix

package spill

import (
	"os"
	"path/filepath"
)

// lockFolder makes the file alone: here two processes in one folder are not kept apart.
func lockFolder(dir string) (*os.File, error) {
	return os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
}

func unlockFolder(f *os.File) error { return f.Close() }
