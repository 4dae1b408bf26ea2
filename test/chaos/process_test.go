package chaos_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/internal/kafkad"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// actor is a process of the cluster under one id and port, with links of its own to ZooKeeper.
type actor struct {
	*kafkatest.Program

	id   string
	base string // of its API
	link *kafkatest.Proxy

	mu   sync.Mutex
	peak int // guarded by mu; the most memory, in bytes, that any of its runs was seen to have resident
}

// newActor prepares a process of a program; file has its native file from the address of its ZooKeeper and of its API. It is killed with the test.
func newActor(t *testing.T, program, id, zookeeper string, file func(zookeeper, listen string) string) *actor {
	t.Helper()
	link, err := kafkatest.NewProxy(zookeeper)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, link.Close()) })
	ports, err := kafkad.FreePorts(1)
	require.NoError(t, err)
	dir := filepath.Join(t.ArtifactDir(), id)
	require.NoError(t, os.MkdirAll(dir, 0o750))
	path := filepath.Join(dir, "causeway.yaml")
	listen := kafkad.Loopback(ports[0])
	require.NoError(t, os.WriteFile(path, []byte(file(link.Addr(), listen)), 0o600))
	a := &actor{
		Program: kafkatest.NewProgram(id, dir, filepath.Join(programs, program), "--config", path),
		id:      id, base: "http://" + listen, link: link,
	}
	t.Cleanup(func() {
		require.NoError(t, a.Kill())
		if t.Failed() {
			t.Log(a.Tail())
		}
	})
	return a
}

// alive is an error if the process has ended by itself.
func (a *actor) alive() error {
	if a.Running() {
		return nil
	}
	return fmt.Errorf("%s ended by itself with code %d", a.id, a.ExitCode())
}

var highWater = regexp.MustCompile(`(?m)^VmHWM:\s+(\d+) kB$`)

// sample notes the most memory that the present run has had resident (proc(5), VmHWM); one that is just ending has none.
func (a *actor) sample() {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", a.Pid()))
	if err != nil {
		return
	}
	if found := highWater.FindSubmatch(status); found != nil {
		kilobytes, _ := strconv.Atoi(string(found[1])) // digits
		a.mu.Lock()
		a.peak = max(a.peak, kilobytes<<10)
		a.mu.Unlock()
	}
}
