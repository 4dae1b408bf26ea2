package walkthrough_test

import (
	"testing"

	"github.com/causeway-mirror/causeway/test/helix/peers"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

func TestMain(m *testing.M) { kafkatest.Main(peers.Ending(m)) }
