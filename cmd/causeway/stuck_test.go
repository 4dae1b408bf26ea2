package main

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/internal/kafkad"
)

// stuck is an output whose reader stands still, as a pager does or a terminal after Ctrl-S, until the test ends.
type stuck struct{ free chan struct{} }

// Write waits.
func (s stuck) Write(text []byte) (int, error) {
	<-s.free
	return len(text), nil
}

// TestOutputThatNobodyReadsHoldsUpNothing: neither the copy nor the end.
func TestOutputThatNobodyReadsHoldsUpNothing(t *testing.T) {
	t.Parallel()
	source, target := embedded(t, "orders"), embedded(t)
	fill(t, source, "orders", sampleRecords()...)
	ports, err := kafkad.FreePorts(1)
	require.NoError(t, err)
	listen := kafkad.Loopback(ports[0])
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out := stuck{make(chan struct{})}
	t.Cleanup(func() { close(out.free) })
	done := make(chan int, 1)
	go func() { // ends with ctx; the test waits for done
		done <- run(ctx, []string{
			"standalone", "--listen", listen, "--state", filepath.Join(t.TempDir(), "state"), "--topics", "orders", "--log-level", "trace",
			"--source", source.ListenAddrs()[0], "--target", target.ListenAddrs()[0],
		}, out, out)
	}()
	for range 2 {
		require.Eventually(t, func() bool {
			code, _, _ := command(t.Context(), "wait", "--topic", "orders", "--timeout", "10s", "--api", "http://"+listen)
			return code == 0
		}, 30*time.Second, 50*time.Millisecond, "records are not copied")
		fill(t, source, "orders", sampleRecords()...)
	}
	stop()
	select {
	case code := <-done:
		require.Equal(t, 0, code)
	case <-time.After(30 * time.Second):
		t.Fatal("the process does not end")
	}
}

// TestFailureThatNobodyReadsEndsTheProcess: whoever watches over it starts it again then.
func TestFailureThatNobodyReadsEndsTheProcess(t *testing.T) {
	t.Parallel()
	out := stuck{make(chan struct{})}
	t.Cleanup(func() { close(out.free) })
	done := make(chan int, 1)
	go func() { done <- run(t.Context(), []string{"standalone", "--no-such-flag"}, out, out) }() // the test waits for done
	select {
	case code := <-done:
		require.Equal(t, exitUsage, code)
	case <-time.After(30 * time.Second):
		t.Fatal("the process does not end")
	}
}
