package kafkatest

import (
	"fmt"
	"os"
	"testing"
)

// Require skips a test that needs real brokers where there can be none, or fails it if CAUSEWAY_REQUIRE_KAFKA=1 says that there
// must be. It also skips in -short mode, which is for the quick loop. Start and Shared call it themselves.
func Require(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("real brokers are not started in short mode")
	}
	for _, version := range []string{Kafka3, Kafka4} {
		err := Missing(version)
		if err == nil {
			_, err = Libs(version)
		}
		if err == nil {
			continue
		}
		if os.Getenv("CAUSEWAY_REQUIRE_KAFKA") == "1" {
			t.Fatalf("real brokers are required (CAUSEWAY_REQUIRE_KAFKA=1): %v", err)
		}
		fmt.Fprintf(os.Stderr, "!!! SKIPPING %s, WHICH NEEDS REAL KAFKA BROKERS: %v\n", t.Name(), err)
		t.Skipf("no real brokers: %v", err)
	}
}
