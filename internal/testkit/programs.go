package testkit

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Build makes a program of the module: causeway, or causeway-worker, which may be called worker.
func Build(ctx context.Context, name, at string) error {
	folder := "github.com/causeway-mirror/causeway/cmd/" + strings.TrimPrefix(name, "causeway-")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", at, folder).CombinedOutput(); err != nil { //nolint:gosec // our own programs
		return fmt.Errorf("build %s: %w\n%s", name, err, out)
	}
	return nil
}

// Built runs a package's tests with programs that are built before and removed after them; in short mode without.
type Built struct {
	M        Runner
	Programs []string
	Use      func(dir string) // takes the folder of the programs
}

// Run returns the tests' exit code, or 1 if the programs can't be built.
func (b Built) Run() int {
	flag.Parse() //nolint:revive // testing.Short needs it, and Run of M does it too late
	if testing.Short() {
		return b.M.Run()
	}
	dir, err := os.MkdirTemp("", "causeway-programs-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "create folder of the programs:", err)
		return 1
	}
	defer os.RemoveAll(dir) // best effort
	for _, name := range b.Programs {
		if err := Build(context.Background(), name, filepath.Join(dir, name)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	b.Use(dir)
	return b.M.Run()
}
