package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/causeway-mirror/causeway/internal/testkit"
)

// shared is the servers that the tests of this binary use together. It is global because TestMain, which ends them, and the
// tests, which use them, share nothing else.
var shared registry //nolint:gochecknoglobals // see above

type registry struct {
	mu            sync.Mutex
	clusters      map[string]*Cluster // guarded by mu; by version
	zooKeeper     *ZooKeeper          // guarded by mu; nil until it is asked for
	zooKeeperRoot string              // guarded by mu; its folder
}

// Shared returns a one-broker cluster of that release which all tests of the binary share: it starts at the first call and ends in
// Main. A test must not stop or pause it, and must use topics and groups that no other test uses. There is a proxy before it for tests
// that make trouble on the way to it, one at a time.
func Shared(t testing.TB, version string) *Cluster {
	t.Helper()
	Require(t)
	c, err := shared.get(version)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(c.Logs())
		}
	})
	return c
}

func (r *registry) get(version string) (*Cluster, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.clusters[version]; c != nil {
		return c, nil
	}
	c, err := Open(context.Background(), Options{Version: version, Proxy: true}) // the cluster outlives the test that asks first
	if err != nil {
		return nil, err
	}
	if r.clusters == nil {
		r.clusters = map[string]*Cluster{}
	}
	r.clusters[version] = c
	return c, nil
}

// SharedZooKeeper returns a ZooKeeper server that all tests of the binary share: it starts at the first call and ends in Main. A test must
// not stop or pause it, and must keep to a chroot or names of its own. One that makes trouble on the way to it uses a NewProxy of its own.
func SharedZooKeeper(t testing.TB) *ZooKeeper {
	t.Helper()
	Require(t)
	z, err := shared.getZooKeeper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(z.Tail())
		}
	})
	return z
}

func (r *registry) getZooKeeper() (z *ZooKeeper, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.zooKeeper != nil {
		return r.zooKeeper, nil
	}
	if r.zooKeeperRoot == "" {
		if r.zooKeeperRoot, err = newFolder(); err != nil {
			return nil, err
		}
	}
	r.zooKeeper, err = OpenZooKeeper(context.Background(), r.zooKeeperRoot) // it outlives the test that asks first
	return r.zooKeeper, err
}

func (r *registry) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var err error
	if r.zooKeeper != nil {
		err = r.zooKeeper.close()
		r.zooKeeper = nil
	}
	if r.zooKeeperRoot != "" {
		err = errors.Join(err, os.RemoveAll(r.zooKeeperRoot))
		r.zooKeeperRoot = ""
	}
	for _, c := range r.clusters {
		err = errors.Join(err, c.Close())
	}
	r.clusters = nil
	return err
}

// Main is for TestMain of packages that use Shared or SharedZooKeeper: it runs the tests, ends the shared servers and fails if goroutines are left.
func Main(m testkit.Runner) { testkit.Main(endShared{m}) }

// endShared runs tests and ends the shared servers before the search for leaked goroutines.
type endShared struct{ m testkit.Runner }

// Run runs the tests and returns their exit code.
func (e endShared) Run() int {
	code := e.m.Run()
	if err := shared.close(); err != nil {
		fmt.Fprintln(os.Stderr, "end shared servers:", err)
		code = max(code, 1)
	}
	return code
}
