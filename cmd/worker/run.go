package main

import (
	"context"
	"io"
	"runtime/debug"

	"github.com/causeway-mirror/causeway/cmd/internal/program"
)

// version and revision are set by the linker: -ldflags "-X main.version=… -X main.revision=…".
var (
	version  = "dev"
	revision = ""
)

func this() program.Program {
	return program.Program{Name: "causeway-worker", Version: version, Revision: revision, Options: options}
}

// run is the program without its process: arguments in, exit code out.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return this().Run(args, stdout, stderr, func() error {
		s, err := read(args)
		if err != nil {
			return err
		}
		debug.SetMemoryLimit(int64(s.Worker.Memory)) // the runtime collects harder near it instead of growing past it
		return serve(ctx, s, stderr)
	})
}
