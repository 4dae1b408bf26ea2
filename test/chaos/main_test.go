package chaos_test

import (
	"testing"

	"github.com/causeway-mirror/causeway/internal/testkit"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// programs is the folder of the binaries under test. It is global because TestMain, which builds them once, and the tests share nothing else.
var programs string

func TestMain(m *testing.M) {
	kafkatest.Main(testkit.Built{M: m, Programs: []string{"worker", "controller"}, Use: func(dir string) { programs = dir }})
}
