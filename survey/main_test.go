package survey

import (
	"testing"

	"github.com/causeway-mirror/causeway/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }
