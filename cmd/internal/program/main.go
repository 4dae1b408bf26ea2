package program

import (
	"context"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
)

// Main is the process around run, and returns its exit code. The first SIGINT or SIGTERM ends ctx, the second one has its default effect and ends the
// process at once, however soon it comes.
func Main(run func(ctx context.Context, args []string, stdout, stderr io.Writer) (code int)) (code int) {
	debug.SetTraceback("crash") // a panic of any goroutine ends by SIGABRT: 2, as the runtime has it, is wrong usage, after which nobody starts it again
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() { // owned by the process, and ends with it
		<-signals
		cancel()
		second := <-signals
		signal.Reset()
		if self, err := os.FindProcess(os.Getpid()); err == nil {
			_ = self.Signal(second)
		}
	}()
	return run(ctx, os.Args[1:], os.Stdout, os.Stderr)
}
