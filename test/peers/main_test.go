package peers_test

import (
	"path/filepath"
	"testing"

	"github.com/causeway-mirror/causeway/internal/testkit"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// program is the path of the causeway binary under test. It is global because TestMain, which builds it once, and the tests share nothing
// else.
var program string

func TestMain(m *testing.M) {
	kafkatest.Main(testkit.Built{M: m, Programs: []string{"causeway"}, Use: func(dir string) { program = filepath.Join(dir, "causeway") }})
}
