package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/causeway-mirror/causeway/internal/conf"
)

// tellAllFlags makes the commands report all of their malformed and unknown flags at once, each with flag, value and reason. Parsing would end
// at the first. args are the program's.
func tellAllFlags(root *cobra.Command, args []string) {
	called, rest, _ := root.Find(args) // what is wrong with the name of a command is told when it runs
	var each func(cmd *cobra.Command)
	each = func(cmd *cobra.Command) {
		faults := &flagFaults{}
		cmd.Flags().VisitAll(faults.wrap)
		if cmd == called {
			faults.admit(cmd, rest)
			faults.misnamed = cmd.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-")
		}
		cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return errors.Join(append(faults.told, worded(err))...) })
		cmd.Args = faults.before(cmd.Args)
		for _, child := range cmd.Commands() {
			each(child)
		}
	}
	each(root)
}

// flagFaults are what is wrong with the flags of one command.
type flagFaults struct {
	told     []error
	unknown  bool // a flag is: the word behind it may be its value
	misnamed bool // no command has the name that stands first: the flags are that one's
}

func (f *flagFaults) wrap(flag *pflag.Flag) {
	flag.Value = &toldValue{Value: flag.Value, flag: flag, faults: f}
	if flag.DefValue == "[]" || flag.DefValue == "0s" {
		flag.DefValue = "" // help leaves out what is nothing, but no longer knows these forms of it
	}
}

// before reports the faults before cobra judges the arguments, which is the first that it does after parsing.
func (f *flagFaults) before(args cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, given []string) error {
		if f.misnamed {
			return args(cmd, given)
		}
		faults := f.told
		if args != nil && !f.unknown {
			faults = append(faults, args(cmd, given))
		}
		return errors.Join(faults...)
	}
}

// admit gives a command the flags among args that it does not have, each of which is a fault.
func (f *flagFaults) admit(cmd *cobra.Command, args []string) {
	cmd.InitDefaultHelpFlag()
	cmd.InitDefaultVersionFlag()
	set := cmd.Flags()
	for i := 0; i < len(args) && args[i] != "--"; i++ {
		word, _, joined := strings.Cut(args[i], "=")
		var last *pflag.Flag
		switch {
		case strings.HasPrefix(word, "--"):
			name := word[len("--"):]
			if last = set.Lookup(name); last == nil && name != "" {
				last = f.add(set, name, "")
			}
		case strings.HasPrefix(word, "-"):
			last = f.admitShort(set, word[1:])
		}
		if last != nil && last.NoOptDefVal == "" && !joined {
			i++ // its value
		}
	}
}

// admitShort is admit for letters behind one dash, and returns the flag that takes the next word, if one does.
func (f *flagFaults) admitShort(set *pflag.FlagSet, letters string) (last *pflag.Flag) {
	for at := 0; at < len(letters) && letters[at] < 0x80; at++ {
		letter := letters[at : at+1]
		if last = set.ShorthandLookup(letter); last == nil {
			last = f.add(set, "unknown -"+letter, letter)
		}
		if last.NoOptDefVal == "" && at+1 < len(letters) {
			return nil // the rest is its value
		}
	}
	return last
}

// add adds a flag that takes no value of its own and is a fault.
func (f *flagFaults) add(set *pflag.FlagSet, name, letter string) *pflag.Flag {
	shown := letter
	if shown == "" {
		shown = name
	}
	flag := set.VarPF(unknownFlag{name: shown, set: set, faults: f}, name, letter, "")
	flag.NoOptDefVal, flag.Hidden = "true", true
	return flag
}

// unknownFlag is the value of a flag that there is not.
type unknownFlag struct {
	name   string
	set    *pflag.FlagSet // in which it is not
	faults *flagFaults
}

// String gives nothing.
func (unknownFlag) String() string { return "" }

// Type names the value in help texts, where it does not stand.
func (unknownFlag) Type() string { return "unknown" }

// Set notes the fault.
func (u unknownFlag) Set(string) error {
	u.faults.unknown = true
	var known []string
	u.set.VisitAll(func(flag *pflag.Flag) {
		if _, unknown := flag.Value.(unknownFlag); !unknown && len(u.name) > 1 && !flag.Hidden {
			known = append(known, flag.Name)
		}
	})
	u.faults.told = append(u.faults.told, fmt.Errorf("%w%s", unknownError(u.name), conf.DidYouMean(u.name, known, "--")))
	return nil
}

func unknownError(name string) error { return fmt.Errorf("%s: unknown flag", dashed(name)) }

// toldValue takes any text and notes what is wrong with it.
type toldValue struct {
	pflag.Value

	flag   *pflag.Flag
	faults *flagFaults
}

// Set never fails.
func (v *toldValue) Set(text string) error {
	if err := v.Value.Set(text); err != nil {
		v.faults.told = append(v.faults.told, fault("--"+v.flag.Name, text, reasonOf(v.Type(), err)))
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
		return valueless(err)
	}
}

// valueless is what is wrong with a value, where the value itself stands already.
func valueless(err error) string {
	if wrong, ok := errors.AsType[*conf.ValueError](err); ok {
		return wrong.Reason
	}
	return err.Error()
}

// worded gives parsing errors that are about no value the form of the others.
func worded(err error) error {
	if e, ok := errors.AsType[*pflag.NotExistError](err); ok {
		return unknownError(e.GetSpecifiedName())
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
