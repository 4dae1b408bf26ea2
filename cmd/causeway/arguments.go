package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// asUsed wants the arguments that a command's Use names, and no others.
func asUsed(cmd *cobra.Command, given []string) error {
	names := strings.Fields(cmd.Use)[1:]
	var faults []error
	for _, name := range names[min(len(given), len(names)):] {
		faults = append(faults, fmt.Errorf("%s: must be given", name))
	}
	for i, name := range names[:min(len(given), len(names))] {
		if given[i] == "" || name != "FILE" && (given[i] == "." || given[i] == "..") { // as part of a path it would ask for something else
			faults = append(faults, fmt.Errorf("%s %q: is no name", name, given[i]))
		}
	}
	for _, surplus := range given[min(len(given), len(names)):] {
		faults = append(faults, fmt.Errorf("unexpected argument %q%s", surplus, howSwitched(cmd)))
	}
	return errors.Join(faults...)
}

// howSwitched says how a flag that is true or false is given, if one was: what stands behind it is no value of its.
func howSwitched(cmd *cobra.Command) (hint string) {
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		if flag.Value.Type() == "bool" {
			hint = fmt.Sprintf("; the value of --%s is joined to it: --%s=false", flag.Name, flag.Name)
		}
	})
	return hint
}
