package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
)

func main() {
	debug.SetTraceback("crash") // a panic of any goroutine ends by SIGABRT: 2, as the runtime has it, is wrong usage, after which nobody starts it again
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // from the first signal on the second one has its default effect and ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
