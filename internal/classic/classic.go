package classic

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/causeway-mirror/causeway/internal/conf"
)

// Option is one option of a program.
type Option struct {
	Name    string
	Key     string // in a properties file; empty if only the command line has it
	Default string // what holds when nobody says anything; empty = nothing
	Usage   string
}

// Values are what a program was told.
type Values struct {
	options  map[string]Option
	line     map[string]string
	file     map[string]string
	warnings []string
}

// UnknownError is an option that the program does not have.
type UnknownError struct {
	Name string
	hint string // of the option that may be meant
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("-%s: there is no such option%s", e.Name, e.hint)
}

// MissingValueError is an option at the end of the line, or before another one.
type MissingValueError struct{ Name string }

func (e *MissingValueError) Error() string { return fmt.Sprintf("-%s: needs a value", e.Name) }

// UnexpectedError is a word on a line without any option.
type UnexpectedError struct{ Word string }

func (e *UnexpectedError) Error() string {
	return fmt.Sprintf("unexpected argument %q; a file is named by --config", e.Word)
}

// Parse reads a command line. Options in flags stand alone, all others are followed by their value, which may also be joined by "=". Words that
// are neither are passed over with a warning. Errors: *UnknownError, *MissingValueError, *UnexpectedError.
func Parse(args []string, options []Option, flags ...string) (*Values, error) {
	v := &Values{options: make(map[string]Option, len(options)), line: map[string]string{}, file: map[string]string{}}
	for _, o := range options {
		v.options[o.Name] = o
	}
	var stray []string
	for len(args) > 0 {
		word := args[0]
		args = args[1:]
		if !isOption(word) {
			stray = append(stray, word)
			continue
		}
		name, value, joined := strings.Cut(strings.TrimLeft(word, "-"), "=")
		if slices.Contains(flags, name) {
			v.line[name] = "true"
			continue
		}
		if _, known := v.options[name]; !known {
			return nil, &UnknownError{Name: name, hint: conf.DidYouMean(name, slices.Sorted(maps.Keys(v.options)), "-")}
		}
		if !joined {
			if len(args) == 0 || isOption(args[0]) {
				return nil, &MissingValueError{Name: name}
			}
			value, args = args[0], args[1:]
		}
		v.line[name] = value
	}
	if len(stray) > 0 && len(v.line) == 0 {
		return nil, &UnexpectedError{Word: stray[0]}
	}
	for _, word := range stray {
		v.Warn("%q is no option and is passed over", word)
	}
	return v, nil
}

// isOption says that a word is an option. A negative number is a value.
func isOption(word string) bool {
	if len(word) < 2 || word[0] != '-' {
		return false
	}
	_, err := strconv.ParseFloat(word, 64)
	return err != nil
}

// SetFile gives the properties of the file that the command line named.
func (v *Values) SetFile(properties map[string]string) { v.file = properties }

// Property gives a property of the file that no option stands for.
func (v *Values) Property(key string) (string, bool) {
	value, ok := v.file[key]
	return strings.TrimSpace(value), ok
}

// Warn adds a warning.
func (v *Values) Warn(format string, args ...any) {
	v.warnings = append(v.warnings, fmt.Sprintf(format, args...))
}

// Warnings are what somebody should be told once.
func (v *Values) Warnings() []string { return v.warnings }

// Given says whether the command line or the file has an option.
func (v *Values) Given(name string) bool {
	_, ok := v.find(name)
	return ok
}

// find gives what was said of an option. One that nobody listed is a mistake of the program.
func (v *Values) find(name string) (string, bool) {
	if value, ok := v.line[name]; ok {
		return value, true
	}
	o, ok := v.options[name]
	if !ok {
		return "", false
	}
	if value, ok := v.file[o.Key]; ok && o.Key != "" {
		return strings.TrimSpace(value), true
	}
	return "", false
}

// String gives an option's value or its default.
func (v *Values) String(name string) string {
	if value, ok := v.find(name); ok {
		return value
	}
	return v.options[name].Default
}

// Bool accepts true and false, in any case. Anything else is the default.
func (v *Values) Bool(name string) bool {
	value := v.String(name)
	switch {
	case strings.EqualFold(value, "true"):
		return true
	case strings.EqualFold(value, "false"), value == "":
		return false
	}
	v.replaced(name, value, "true or false")
	return strings.EqualFold(v.options[name].Default, "true")
}

// Int accepts whole numbers. Anything else is the default.
func (v *Values) Int(name string) int {
	value := v.String(name)
	n, err := strconv.Atoi(strings.TrimSpace(value))
	if err == nil {
		return n
	}
	if value != "" {
		v.replaced(name, value, "a whole number")
	}
	n, _ = strconv.Atoi(v.options[name].Default)
	return n
}

// Float accepts numbers. Anything else is the default.
func (v *Values) Float(name string) float64 {
	value := v.String(name)
	n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	if err == nil {
		return n
	}
	if value != "" {
		v.replaced(name, value, "a number")
	}
	n, _ = strconv.ParseFloat(v.options[name].Default, 64)
	return n
}

func (v *Values) replaced(name, value, want string) {
	text := fmt.Sprintf("-%s %q: is not %s and counts as its default, %q", name, value, want, v.options[name].Default)
	if !slices.Contains(v.warnings, text) {
		v.warnings = append(v.warnings, text)
	}
}

// AsksUsage says that nothing is asked for but to be told how.
func AsksUsage(args []string) bool {
	return len(args) == 0 || slices.ContainsFunc(args, func(arg string) bool { return arg == "-help" || arg == "--help" || arg == "-h" })
}

// AsksVersion says that nothing is asked for but the version.
func AsksVersion(args []string) bool {
	return len(args) == 1 && (args[0] == "-version" || args[0] == "--version")
}

// Usage says what is enough to begin with, and lists the options, one a line.
func Usage(program string, options []Option) string {
	var b strings.Builder
	fmt.Fprintf(&b, "usage: %s --config causeway.yaml\n", program)
	b.WriteString("That file is all that is needed (docs/cluster.md has one). --version prints the version. Or, as uReplicator has it:\n")
	fmt.Fprintf(&b, "       %s [-option value]...\n", program)
	for _, o := range options {
		fmt.Fprintf(&b, "  -%-40s %s", o.Name, o.Usage)
		if o.Default != "" {
			fmt.Fprintf(&b, " (default %s)", o.Default)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
