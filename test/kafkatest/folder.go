package kafkatest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// folderPrefix and the id of the process that made it name a cluster's folder.
const folderPrefix = "causeway-kafka-"

// newFolder makes the folder of a cluster. First it removes those of test binaries that were killed before they could clean up; their
// servers died with them.
func newFolder() (string, error) {
	left, err := filepath.Glob(filepath.Join(os.TempDir(), folderPrefix+"*"))
	if err != nil {
		return "", fmt.Errorf("look for old cluster folders: %w", err)
	}
	for _, dir := range left {
		var pid int
		if _, err := fmt.Sscanf(filepath.Base(dir), folderPrefix+"%d-", &pid); err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			_ = os.RemoveAll(dir) // may be another user's
		}
	}
	dir, err := os.MkdirTemp("", fmt.Sprintf("%s%d-", folderPrefix, os.Getpid()))
	if err != nil {
		return "", fmt.Errorf("create cluster folder: %w", err)
	}
	return dir, nil
}
