package main

import (
	"context"
	"io"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newStandalone(stdout, stderr io.Writer) *cobra.Command {
	var f settingFlags
	cmd := &cobra.Command{
		Use: "standalone", Short: "Mirror in one process, with its positions in a folder", Args: asUsed,
		Example: `  causeway standalone --source kafka-a:9092 --target kafka-b:9092 --topics 'orders,payments\..*'
  causeway standalone --config causeway.yaml --listen :8080`,
		RunE: action(func(ctx context.Context) error {
			s, err := f.load()
			if err != nil {
				return err
			}
			return runStandalone(ctx, s, stdout, stderr)
		}),
	}
	f.all(cmd)
	return cmd
}

// runStandalone mirrors until ctx ends.
func runStandalone(ctx context.Context, s settings, stdout, stderr io.Writer) error {
	debug.SetMemoryLimit(int64(s.Worker.Memory)) // the runtime collects harder near it instead of growing past it
	screen, logs, finish := openConsole(stdout, stderr)
	defer finish()
	service, err := openService(ctx, s, newLogger(&s, logs), newMirror)
	if err != nil {
		return err
	}
	screen.say("will mirror %s -> %s, API and UI at %s", clusterName(s.Route.Source), clusterName(s.Route.Target), service.address())
	showing, stop := context.WithCancel(ctx) // behind the line come the last words of the log
	shown := make(chan struct{})
	go func() { // owned by this function, which waits for shown
		defer close(shown)
		showProgress(showing, screen, service.Snapshot)
	}()
	err = service.run(ctx)
	stop()
	<-shown
	return err
}
