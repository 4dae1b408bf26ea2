package main

import (
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/causeway-mirror/causeway/cmd/internal/program"
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
			v := versionView{Version: version, Revision: program.BuiltFrom(revision), GoVersion: runtime.Version()}
			return asExit(out.print(stdout, v, func(t *table) { t.row("causeway "+v.Version, v.Revision, v.GoVersion) }))
		},
	}
	out.flag(cmd)
	return cmd
}
