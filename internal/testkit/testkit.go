// Package testkit holds what tests of every package share. It is imported by tests only.
package testkit

import (
	"testing"

	"go.uber.org/goleak"
)

// Main runs a package's tests and fails if they leave goroutines behind. It is the only place that may ignore one, with its reason.
func Main(m *testing.M) {
	goleak.VerifyTestMain(m,
		// sarama's metrics registry starts one meter goroutine for the whole process and offers no way to stop it.
		goleak.IgnoreAnyFunction("github.com/rcrowley/go-metrics.(*meterArbiter).tick"),
	)
}
