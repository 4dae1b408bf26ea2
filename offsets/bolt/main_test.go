package bolt

import (
	"fmt"
	"os"
	"testing"

	"github.com/causeway-mirror/causeway/internal/testkit"
)

// childVariable makes the test binary play a process that is killed, paused or runs out of disk: its value names the part.
const childVariable = "CAUSEWAY_BOLT_TEST_CHILD"

func TestMain(m *testing.M) {
	part := os.Getenv(childVariable)
	if part == "" {
		testkit.Main(m)
		return
	}
	if err := child(part, os.Getenv("CAUSEWAY_BOLT_TEST_DIR")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
