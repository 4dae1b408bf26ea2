package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
)

func newConfig(stdout io.Writer) *cobra.Command {
	return group("config", "Check or show the configuration of a mirror", newConfigValidate(stdout), newConfigShow(stdout))
}

func newConfigValidate(stdout io.Writer) *cobra.Command {
	var f settingFlags
	cmd := &cobra.Command{
		Use: "validate", Short: "Check file and flags without connecting anywhere: exit 0 when they are right", Args: asUsed,
		RunE: action(func(context.Context) error {
			if _, err := f.loadShared(); err != nil {
				return err
			}
			_, err := fmt.Fprintln(stdout, "valid")
			return err
		}),
	}
	f.all(cmd)
	return cmd
}

func newConfigShow(stdout io.Writer) *cobra.Command {
	var (
		f   settingFlags
		out output
	)
	cmd := &cobra.Command{
		Use: "show", Short: "Print the effective configuration, defaults included, secrets masked", Args: asUsed,
		RunE: action(func(context.Context) error {
			s, err := f.loadShared()
			if err != nil {
				return err
			}
			text, err := yaml.Marshal(s)
			if err != nil {
				return fmt.Errorf("write configuration: %w", err)
			}
			if out == "json" {
				var doc any
				if err = yaml.Unmarshal(text, &doc); err != nil {
					return fmt.Errorf("write configuration: %w", err)
				}
				return out.print(stdout, doc, nil)
			}
			_, err = stdout.Write(text) // the native form is the table of a configuration
			return err
		}),
	}
	f.all(cmd)
	out.flag(cmd)
	return cmd
}

// all gives a command every flag of standalone.
func (f *settingFlags) all(cmd *cobra.Command) {
	f.clusterFlags(cmd)
	f.mirrorFlags(cmd)
	f.logFlags(cmd)
}
