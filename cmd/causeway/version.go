package main

import (
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version and revision are set by the linker: -ldflags "-X main.version=… -X main.revision=…".
var (
	version  = "dev"
	revision = ""
)

type versionView struct {
	Version   string `json:"version"`
	Revision  string `json:"revision"`
	GoVersion string `json:"goversion"`
}

func newVersion(stdout io.Writer) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use: "version", Short: "Print the version", Args: asUsed,
		RunE: func(*cobra.Command, []string) error {
			v := versionView{Version: version, Revision: builtFrom(), GoVersion: runtime.Version()}
			return asExit(out.print(stdout, v, func(t *table) { t.row("causeway "+v.Version, v.Revision, v.GoVersion) }))
		},
	}
	out.flag(cmd)
	return cmd
}

// builtFrom is the revision that the linker was told, or that Go noted.
func builtFrom() string {
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
