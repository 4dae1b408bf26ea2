package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/causeway-mirror/causeway/internal/classic"
	"github.com/causeway-mirror/causeway/internal/lines"
)

// version and revision are set by the linker: -ldflags "-X main.version=… -X main.revision=…".
var (
	version  = "dev"
	revision = ""
)

// Exit codes, as docs/cli.md lists them.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
	exitFault   = 70
)

const program = "causeway-worker"

var (
	// errUsage says that the command line itself is wrong.
	errUsage = errors.New("try -help")
	// errFault says that the process itself is at fault.
	errFault = errors.New("internal fault")
)

// run is the program without its process: arguments in, exit code out.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (code int) {
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(stderr, "%s: internal fault: %v\n%s", program, p, debug.Stack())
			code = exitFault
		}
	}()
	if classic.AsksVersion(args) {
		fmt.Fprintln(stdout, program, version, builtFrom(), runtime.Version())
		return exitOK
	}
	if classic.AsksUsage(args) {
		fmt.Fprint(stdout, classic.Usage(program, options()))
		return exitOK
	}
	s, err := read(args)
	if err == nil {
		debug.SetMemoryLimit(int64(s.Worker.Memory)) // the runtime collects harder near it instead of growing past it
		err = serve(ctx, s, stderr)
	}
	return report(err, stderr)
}

// report prints an error, one line a fault, and gives the exit code.
func report(err error, stderr io.Writer) int {
	if err == nil {
		return exitOK
	}
	queue := lines.NewQueue()
	defer queue.Serve()(lastWords) // a failed process ends, also when nobody reads why
	stderr = queue.To(stderr)
	for line := range strings.SplitSeq(err.Error(), "\n") {
		fmt.Fprintln(stderr, program+": "+line)
	}
	switch {
	case errors.Is(err, errUsage):
		return exitUsage
	case errors.Is(err, errFault):
		return exitFault
	}
	return exitFailure
}
