package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// verb is a command that changes something by the API and prints one line that says what was done.
type verb struct {
	use, short string
	example    string
	args       cobra.PositionalArgs
	flags      func(cmd *cobra.Command) // nil: none of its own
	do         func(ctx context.Context, c *client, args []string) (done string, err error)
}

func (v verb) command(stdout io.Writer) *cobra.Command {
	var c client
	cmd := &cobra.Command{Use: v.use, Short: v.short, Example: v.example, Args: v.args}
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		done, err := v.do(cmd.Context(), &c, args)
		if err != nil {
			return ended(cmd.Context(), err)
		}
		_, err = fmt.Fprintln(stdout, done)
		return asExit(err)
	}
	c.flag(cmd)
	if v.flags != nil {
		v.flags(cmd)
	}
	return cmd
}

// with also wants flags to be given; what is missing is told with what else is wrong.
func with(args cobra.PositionalArgs, flags ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, given []string) error {
		faults := []error{args(cmd, given)}
		for _, name := range flags {
			if !cmd.Flags().Changed(name) {
				faults = append(faults, fmt.Errorf("--%s: must be given", name))
			}
		}
		return errors.Join(faults...)
	}
}

// withAny wants at least one of some flags to be given.
func withAny(args cobra.PositionalArgs, flags ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, given []string) error {
		err := args(cmd, given)
		if slices.ContainsFunc(flags, cmd.Flags().Changed) {
			return err
		}
		return errors.Join(err, fmt.Errorf("--%s: must be given", strings.Join(flags, " or --")))
	}
}

// number is the value of a flag that is a whole number from least on.
type number struct {
	value *int32
	least int32
}

var _ pflag.Value = number{}

// String gives the number.
func (n number) String() string {
	if n.value == nil {
		return ""
	}
	return strconv.FormatInt(int64(*n.value), 10)
}

// Type names the value in help texts.
func (number) Type() string { return "number" }

// Set takes a number.
func (n number) Set(text string) error {
	v, err := strconv.ParseInt(text, 10, 32)
	if errors.Is(err, strconv.ErrRange) {
		return err // worded as that of other numbers
	}
	if err != nil || v < int64(n.least) {
		return fmt.Errorf("must be a whole number of at least %d", n.least)
	}
	*n.value = int32(v)
	return nil
}
