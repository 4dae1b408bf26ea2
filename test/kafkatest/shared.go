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

// shared is the clusters that the tests of this binary use together. It is global because TestMain, which ends them, and the
// tests, which use them, share nothing else.
var shared registry //nolint:gochecknoglobals // see above

type registry struct {
	mu       sync.Mutex
	clusters map[string]*Cluster // guarded by mu; by version
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

func (r *registry) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var err error
	for _, c := range r.clusters {
		err = errors.Join(err, c.Close())
	}
	r.clusters = nil
	return err
}

// Main is for TestMain of packages that use Shared: it runs the tests, ends the shared clusters and fails if goroutines are left.
func Main(m testkit.Runner) { testkit.Main(endShared{m}) }

// endShared runs tests and ends the shared clusters before the search for leaked goroutines.
type endShared struct{ m testkit.Runner }

// Run runs the tests and returns their exit code.
func (e endShared) Run() int {
	code := e.m.Run()
	if err := shared.close(); err != nil {
		fmt.Fprintln(os.Stderr, "end shared clusters:", err)
		code = max(code, 1)
	}
	return code
}
