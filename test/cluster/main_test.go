package cluster_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// programs is the folder of the binaries under test. It is global because TestMain, which builds them once, and the tests share nothing else.
var programs string

func TestMain(m *testing.M) { kafkatest.Main(built{m}) }

// built builds the programs before the tests and removes them after them.
type built struct{ m *testing.M }

// Run returns the tests' exit code, or 1 if the programs can't be built.
func (b built) Run() int {
	flag.Parse() //nolint:revive // testing.Short needs it, and m.Run does it too late
	if testing.Short() {
		return b.m.Run()
	}
	dir, err := os.MkdirTemp("", "causeway-cluster-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "create folder of the programs:", err)
		return 1
	}
	defer os.RemoveAll(dir) // best effort
	programs = dir
	for _, name := range []string{"worker", "controller"} {
		build := exec.Command("go", "build", "-o", filepath.Join(dir, name), "github.com/causeway-mirror/causeway/cmd/"+name) // TestMain has no context
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			fmt.Fprintln(os.Stderr, "build", name+":", err)
			return 1
		}
	}
	return b.m.Run()
}
