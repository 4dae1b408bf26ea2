package apifuzz_test

import (
	"testing"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

func TestMain(m *testing.M) { kafkatest.Main(m) }
