package main

import (
	"context"
	"io"

	"github.com/causeway-mirror/causeway/cmd/internal/program"
)

// version and revision are set by the linker: -ldflags "-X main.version=… -X main.revision=…".
var (
	version  = "dev"
	revision = ""
)

func this() program.Program {
	return program.Program{Name: "causeway-controller", Version: version, Revision: revision, Options: options}
}

// run is the program without its process: arguments in, exit code out.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return this().Run(args, stdout, stderr, func() error {
		s, err := read(args)
		if err != nil {
			return err
		}
		return serve(ctx, s, stderr)
	})
}
