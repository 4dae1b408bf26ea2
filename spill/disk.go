package spill

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
)

// disk is what the logs of a store share: the bound on their bytes, buffers, the folder for what was set aside, and the two calls that tests let fail.
type disk struct {
	max     int64
	used    atomic.Int64
	aside   string
	scratch sync.Pool // of *[]byte, in which frames are put together
	writeAt func(f *os.File, b []byte, at int64) (int, error)
	sync    func(f *os.File) error
}

func newDisk(dir string, maxBytes int64) *disk {
	return &disk{
		max: maxBytes, aside: filepath.Join(dir, asideFolder), scratch: sync.Pool{New: func() any { return new([]byte) }},
		writeAt: (*os.File).WriteAt, sync: (*os.File).Sync,
	}
}

// asideFolder can't be a partition's: its name doesn't end with a number.
const asideFolder = "set-aside"

func (d *disk) reserve(n int64) bool {
	if d.used.Add(n) > d.max {
		d.used.Add(-n)
		return false
	}
	return true
}

func (d *disk) free(n int64) { d.used.Add(-n) }

// moveAside moves a segment or a partition's folder out of the way. It goes on being counted: it is still there.
func (d *disk) moveAside(path string) error {
	to, err := d.place(path)
	if err != nil {
		return err
	}
	if err := os.Rename(path, to); err != nil {
		return err
	}
	return errors.Join(d.syncPath(filepath.Dir(path)), d.syncPath(d.aside))
}

// copyAside keeps a segment as it is before it is cut.
func (d *disk) copyAside(path string) error {
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	defer from.Close()
	name, err := d.place(path)
	if err != nil {
		return err
	}
	to, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(to, from)
	d.used.Add(n)
	return errors.Join(err, d.sync(to), to.Close(), d.syncPath(d.aside))
}

// place finds a name below the folder for what was set aside that is not taken: <partition>.<n>, or <partition>.<n>.<segment> for a segment.
func (d *disk) place(path string) (string, error) {
	if err := os.MkdirAll(d.aside, 0o700); err != nil {
		return "", err
	}
	partition, ending := filepath.Base(path), ""
	if filepath.Ext(path) == suffix {
		partition, ending = filepath.Base(filepath.Dir(path)), "."+filepath.Base(path)
	}
	for n := 1; ; n++ {
		name := filepath.Join(d.aside, fmt.Sprintf("%s.%d%s", partition, n, ending))
		if _, err := os.Lstat(name); errors.Is(err, os.ErrNotExist) {
			return name, nil
		} else if err != nil {
			return "", err
		}
	}
}

// syncPath brings a file, or the entries of a folder, to disk.
func (d *disk) syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.sync(f), f.Close())
}
