package replace

import (
	"errors"
	"os"
	"path/filepath"
)

// File writes a file so that a reader, also after a crash of the machine, sees the old one or the new one, whole. What was there before is what a
// failed call leaves.
func File(path string, content []byte) error {
	next, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	_, err = next.Write(content)
	if err = errors.Join(err, next.Sync(), next.Close()); err == nil {
		err = os.Rename(next.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(next.Name()))
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
