package main

import (
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the linker: -ldflags "-X main.version=…".
var version = "dev"

type versionView struct {
	Version   string `json:"version"`
	Revision  string `json:"revision"`
	GoVersion string `json:"goversion"`
}

func newVersion(stdout io.Writer) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := versionView{Version: version, Revision: revision(), GoVersion: runtime.Version()}
			return asExit(out.print(stdout, v, func(t *table) { t.row("causeway "+v.Version, v.Revision, v.GoVersion) }))
		},
	}
	out.flag(cmd)
	return cmd
}

func revision() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value
			}
		}
	}
	return "unknown"
}
