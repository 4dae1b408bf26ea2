package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/causeway-mirror/causeway/cmd/internal/program"
	"github.com/causeway-mirror/causeway/internal/conf"
	"github.com/causeway-mirror/causeway/internal/lines"
)

// Exit codes, as docs/cli.md lists them.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
	exitFault   = 70
)

// exitError carries an exit code. Without a message nothing is printed: the command has said what there is to say.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// run is the program without its process: arguments in, exit code out.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (code int) {
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(stderr, "causeway: internal fault: %v\n%s", p, debug.Stack())
			code = exitFault
		}
	}()
	root := newRoot(stdout, stderr) //nolint:contextcheck // cobra carries ctx to the commands
	tellAllFlags(root, args)
	root.SetArgs(append([]string{}, args...)) // nil would make cobra look at the process's own arguments
	return report(root.ExecuteContext(ctx), stderr)
}

// report prints an error, one line a fault, and returns its exit code. What cobra itself says against is wrong usage; what our commands
// return is an exitError.
func report(err error, stderr io.Writer) int {
	if err == nil {
		return exitOK
	}
	queue := lines.NewQueue()
	defer queue.Serve()(lastWords) // a failed process ends, also when nobody reads why
	stderr = queue.To(stderr)
	code := exitUsage
	exit, ours := errors.AsType[*exitError](err)
	if ours {
		code = exit.code
	}
	if text := err.Error(); text != "" {
		for line := range strings.SplitSeq(text, "\n") {
			fmt.Fprintln(stderr, "causeway: "+line)
		}
	}
	if !ours {
		fmt.Fprintln(stderr, "causeway: try --help")
	}
	return code
}

// action turns a command's function into cobra's, and its errors into exit code 1 unless they carry another one.
func action(f func(ctx context.Context) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error { return ended(cmd.Context(), f(cmd.Context())) }
}

// ended is asExit of what a command returned: where nothing but the interrupt of ctx kept it from its end, that is all that there is to say.
func ended(ctx context.Context, err error) error {
	err = asExit(err)
	if err == nil || ctx.Err() == nil {
		return err
	}
	if !errors.Is(err, context.Canceled) && !errors.Is(err, context.Cause(ctx)) {
		return err
	}
	code := exitFailure
	if exit, ok := errors.AsType[*exitError](err); ok {
		code = exit.code
	}
	return &exitError{code, errors.New("interrupted")}
}

func asExit(err error) error {
	if err == nil {
		return nil
	}
	if exit, ok := errors.AsType[*exitError](err); ok {
		return exit
	}
	return &exitError{exitFailure, err}
}

func newRoot(stdout, stderr io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:           "causeway",
		Short:         "Copy Kafka topics from one cluster to another, batch by batch, each record once",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          knownCommand,
		RunE:          help,
		Version:       version, // makes --version
	}
	root.SetVersionTemplate("causeway " + version + "  " + program.BuiltFrom(revision) + "  " + runtime.Version() + "\n")
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.AddCommand(
		newDemo(stdout, stderr), newStandalone(stdout, stderr), newGateway(stdout, stderr), newStatus(stdout), newTopics(stdout), newPartitions(stdout),
		newWorkers(stdout), newDeadLetters(stdout), newOffsets(stdout), newBackup(stdout), newRestore(stdout), newEvents(stdout), newWait(stdout),
		newVerify(stdout, stderr), newCheck(stdout), newConfig(stdout), newVersion(stdout),
	)
	return root
}

// group is a command that only holds others.
func group(use, short string, children ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: knownCommand, RunE: help}
	cmd.AddCommand(children...)
	return cmd
}

// knownCommand refuses what stands where the name of a command should.
func knownCommand(cmd *cobra.Command, given []string) error {
	if len(given) == 0 {
		return nil
	}
	var names []string
	for _, child := range cmd.Commands() {
		if child.IsAvailableCommand() {
			names = append(names, child.Name())
		}
	}
	return fmt.Errorf("unknown command %q%s", given[0], conf.DidYouMean(given[0], names, ""))
}

func help(cmd *cobra.Command, _ []string) error { return cmd.Help() }
