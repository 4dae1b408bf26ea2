package testkit

import "go.uber.org/goleak"

// Runner is a *testing.M, or something around one that has to end things before goroutines are counted.
type Runner interface {
	// Run runs the tests and returns the exit code.
	Run() int
}

// Main runs a package's tests and fails if they leave goroutines behind. It is the only place that may ignore one, with its reason.
func Main(m Runner) {
	goleak.VerifyTestMain(m,
		// kfake's loop stays behind when it is closed while a control function sleeps: the two wait for each other.
		goleak.IgnoreAnyFunction("github.com/twmb/franz-go/pkg/kfake.(*Cluster).continueSleptControl"),
		// sarama's metrics registry starts one meter goroutine for the whole process and offers no way to stop it.
		goleak.IgnoreAnyFunction("github.com/rcrowley/go-metrics.(*meterArbiter).tick"),
	)
}
