package gateway_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// program is the path of the causeway binary under test. It is global because TestMain, which builds it once, and the tests share nothing
// else.
var program string

func TestMain(m *testing.M) { kafkatest.Main(built{m}) }

// built builds the program before the tests and removes it after them.
type built struct{ m *testing.M }

// Run returns the tests' exit code, or 1 if the program can't be built.
func (b built) Run() int {
	flag.Parse() //nolint:revive // testing.Short needs it, and m.Run does it too late
	if testing.Short() {
		return b.m.Run()
	}
	dir, err := os.MkdirTemp("", "causeway-gateway-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "create folder of the program:", err)
		return 1
	}
	defer os.RemoveAll(dir) // best effort
	program = filepath.Join(dir, "causeway")
	build := exec.Command("go", "build", "-o", program, "github.com/causeway-mirror/causeway/cmd/causeway") // TestMain has no context
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build the program:", err)
		return 1
	}
	return b.m.Run()
}
