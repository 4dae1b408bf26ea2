package engine

import "syscall"

// FreeBytes is what a process without privileges may still write below dir.
func FreeBytes(dir string) (float64, error) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return 0, err
	}
	return float64(fs.Bavail) * float64(fs.Bsize), nil
}
