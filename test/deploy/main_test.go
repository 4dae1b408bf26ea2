package deploy_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/internal/testkit"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

const (
	// patience is how long what is waited for may take to come about: processes start, and all on few cores.
	patience = 60 * time.Second
	often    = 100 * time.Millisecond
)

func TestMain(m *testing.M) { kafkatest.Main(builder{m}) }

// builder runs the tests with a folder for our programs, which each test would else link anew.
type builder struct{ m *testing.M }

// Run runs the tests and returns their exit code.
func (b builder) Run() int {
	var err error
	if built.dir, err = os.MkdirTemp("", "causeway-deploy-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(built.dir)
	return b.m.Run()
}

var built struct {
	dir string
	mu  sync.Mutex // one build at a time
}

// inRoot is the path of one of the repository's files.
func inRoot(name string) string { return filepath.Join("..", "..", filepath.FromSlash(name)) }

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(inRoot(name))
	require.NoError(t, err)
	return string(text)
}

// write writes a file of a test and returns its path.
func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// needs skips a test where a program of Prometheus is missing, or fails it if CAUSEWAY_REQUIRE_PROMETHEUS=1 says that it must be there.
func needs(t *testing.T, program string) {
	t.Helper()
	_, err := exec.LookPath(program)
	switch {
	case err == nil:
	case os.Getenv("CAUSEWAY_REQUIRE_PROMETHEUS") == "1":
		t.Fatalf("prometheus is required (CAUSEWAY_REQUIRE_PROMETHEUS=1): %v", err)
	default:
		fmt.Fprintf(os.Stderr, "!!! SKIPPING %s, WHICH NEEDS PROMETHEUS (Debian's package prometheus): %v\n", t.Name(), err)
		t.Skip(err)
	}
}

// promtool runs it with what it is to read from its standard input, and requires that it finds nothing.
func promtool(t *testing.T, input string, args ...string) {
	t.Helper()
	needs(t, "promtool")
	run := exec.CommandContext(t.Context(), "promtool", args...)
	run.Stdin = strings.NewReader(input)
	out, err := run.CombinedOutput()
	require.NoError(t, err, "promtool %v: %s", args, out)
}

// binary builds one of our programs at its first call. Processes are not for the quick loop.
func binary(t *testing.T, name string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("programs are not started in short mode")
	}
	built.mu.Lock()
	defer built.mu.Unlock()
	at := filepath.Join(built.dir, name)
	if _, err := os.Stat(at); err == nil {
		return at
	}
	require.NoError(t, testkit.Build(t.Context(), name, at))
	return at
}

// start runs a program in a folder of its own until the test ends; it must end as one that was told to.
func start(t *testing.T, name string, args ...string) *kafkatest.Program {
	t.Helper()
	run := kafkatest.NewProgram(name, t.TempDir(), args...)
	require.NoError(t, run.Start())
	t.Cleanup(func() {
		err := run.Stop()
		if t.Failed() {
			t.Log("--- "+name, "\n", run.Log())
		}
		require.NoError(t, err)
		require.Zero(t, run.ExitCode(), "exit code of %s", name)
	})
	return run
}

// eventually waits for something that a program or a server brings about.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !condition() {
		require.True(t, time.Now().Before(deadline), "%s: not within %s", what, patience)
		require.NoError(t, rest(t.Context()))
	}
}

// rest waits a moment.
func rest(ctx context.Context) error {
	timer := time.NewTimer(often)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
