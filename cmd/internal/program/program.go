package program

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/causeway-mirror/causeway/internal/classic"
	"github.com/causeway-mirror/causeway/internal/lines"
)

// Exit codes, as docs/cli.md lists them.
const (
	OK      = 0
	Failure = 1
	Usage   = 2
	Fault   = 70
)

var (
	// ErrUsage says that the command line itself is wrong.
	ErrUsage = errors.New("try -help")
	// ErrFault says that the process itself is at fault.
	ErrFault = errors.New("internal fault")
)

// LastWords is how long a process that ends waits for the reader of its log.
const LastWords = 2 * time.Second

// Program is one that takes uReplicator's options.
type Program struct {
	Name              string
	Version, Revision string // as the linker was told
	Options           func() []classic.Option
}

// Run is the program without its process: arguments in, exit code out. Where the arguments ask for no more than the version or the usage, work is not
// called.
func (p Program) Run(args []string, stdout, stderr io.Writer, work func() error) (code int) {
	defer func() {
		if fault := recover(); fault != nil {
			fmt.Fprintf(stderr, "%s: internal fault: %v\n%s", p.Name, fault, debug.Stack())
			code = Fault
		}
	}()
	if classic.AsksVersion(args) {
		fmt.Fprintln(stdout, p.Name, p.Version, BuiltFrom(p.Revision), runtime.Version())
		return OK
	}
	if classic.AsksUsage(args) {
		fmt.Fprint(stdout, classic.Usage(p.Name, p.Options()))
		return OK
	}
	return p.Report(work(), stderr)
}

// Report prints an error, one line a fault, and gives the exit code.
func (p Program) Report(err error, stderr io.Writer) int {
	if err == nil {
		return OK
	}
	queue := lines.NewQueue()
	defer queue.Serve()(LastWords) // a failed process ends, also when nobody reads why
	stderr = queue.To(stderr)
	for line := range strings.SplitSeq(err.Error(), "\n") {
		fmt.Fprintln(stderr, p.Name+": "+line)
	}
	switch {
	case errors.Is(err, ErrUsage):
		return Usage
	case errors.Is(err, ErrFault):
		return Fault
	}
	return Failure
}

// BuiltFrom is the revision that the linker was told, or that Go noted.
func BuiltFrom(revision string) string {
	if revision != "" {
		return revision
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value
			}
		}
	}
	return "unknown"
}
