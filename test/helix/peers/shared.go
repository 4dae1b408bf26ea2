package peers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/causeway-mirror/causeway/internal/testkit"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// sharedSession is the session timeout of the shared processes: none of them is killed, so it only has to outlast a busy machine.
const sharedSession = 20 * time.Second

// shared is the processes that the tests of this binary use together. It is global because TestMain, which ends them, and the tests,
// which use them, share nothing else.
var shared registry //nolint:gochecknoglobals // see above

type registry struct {
	mu    sync.Mutex
	peers map[string]*Peer // guarded by mu; by release
	root  []string         // guarded by mu; their folders
}

// Shared returns a process of that release, on kafkatest.SharedZooKeeper, which all tests of the binary share: it starts at the first
// call. A test must not end or pause it and must use a cluster of its own.
func Shared(t testing.TB, version string) *Peer {
	t.Helper()
	Require(t)
	p, err := shared.get(version, kafkatest.SharedZooKeeper(t).Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.logIfFailed(t) })
	return p
}

func (r *registry) get(version, addr string) (*Peer, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.peers[version]; p != nil {
		return p, nil
	}
	dir, err := os.MkdirTemp("", "causeway-helix-")
	if err != nil {
		return nil, fmt.Errorf("create folder of helix peer: %w", err)
	}
	r.root = append(r.root, dir)
	p, err := open(context.Background(), dir, version, addr, sharedSession) // it outlives the test that asks first
	if err != nil {
		return nil, err
	}
	if r.peers == nil {
		r.peers = map[string]*Peer{}
	}
	r.peers[version] = p
	return p, nil
}

func (r *registry) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var err error
	for _, p := range r.peers {
		err = errors.Join(err, p.Close())
	}
	for _, dir := range r.root {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	r.peers, r.root = nil, nil
	return err
}

// Ending is for TestMain of packages that use Shared: kafkatest.Main(peers.Ending(m)) ends the shared processes before their ZooKeeper.
func Ending(m testkit.Runner) testkit.Runner { return ending{m} }

type ending struct{ m testkit.Runner }

// Run runs the tests and returns their exit code.
func (e ending) Run() int {
	code := e.m.Run()
	if err := shared.close(); err != nil {
		fmt.Fprintln(os.Stderr, "end shared helix peers:", err)
		code = max(code, 1)
	}
	return code
}
