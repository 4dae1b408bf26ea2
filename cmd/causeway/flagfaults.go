package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// tellAllFlags makes every command report all of its malformed flags at once, each with flag, value and reason. Parsing would end at the first.
func tellAllFlags(cmd *cobra.Command) {
	faults := &flagFaults{}
	wrap := func(f *pflag.Flag) {
		f.Value = &toldValue{Value: f.Value, flag: f, faults: faults}
		if f.DefValue == "[]" || f.DefValue == "0s" {
			f.DefValue = "" // help leaves out what is nothing, but no longer knows these forms of it
		}
	}
	cmd.Flags().VisitAll(wrap)
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return errors.Join(append(*faults, worded(err))...) })
	cmd.Args = faults.before(cmd.Args)
	for _, child := range cmd.Commands() {
		tellAllFlags(child)
	}
}

// flagFaults are what is wrong with the flags of one command.
type flagFaults []error

// before reports the faults before cobra judges the arguments, which is the first that it does after parsing.
func (f *flagFaults) before(args cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, given []string) error {
		faults := *f
		if args != nil {
			faults = append(faults, args(cmd, given))
		}
		return errors.Join(faults...)
	}
}

// toldValue takes any text and notes what is wrong with it.
type toldValue struct {
	pflag.Value

	flag   *pflag.Flag
	faults *flagFaults
}

// Set never fails.
func (v *toldValue) Set(text string) error {
	if err := v.Value.Set(text); err != nil {
		*v.faults = append(*v.faults, fault("--"+v.flag.Name, text, reasonOf(v.Type(), err)))
	}
	return nil
}

// reasonOf words what Go's parsers say; our own values say it in words.
func reasonOf(kind string, err error) string {
	if errors.Is(err, strconv.ErrRange) {
		return "is out of range"
	}
	switch kind {
	case "int", "int32", "int64":
		return "must be a whole number"
	case "float64":
		return "must be a number"
	case "bool":
		return "must be true or false"
	case "duration":
		return "must be a duration such as 30s"
	default:
		return err.Error()
	}
}

// worded gives parsing errors that are about no value the form of the others.
func worded(err error) error {
	if e, ok := errors.AsType[*pflag.NotExistError](err); ok {
		return fmt.Errorf("%s: unknown flag", dashed(e.GetSpecifiedName()))
	}
	if e, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return fmt.Errorf("%s: needs a value", dashed(e.GetFlag().Name))
	}
	return err
}

func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + strings.TrimLeft(name, "-")
}
