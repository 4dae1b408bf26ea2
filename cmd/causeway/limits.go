package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/causeway-mirror/causeway/internal/conf"
)

// limits are what is taken of a topic or a partition in a second at most, as the API has them; 0 is no limit.
type limits struct {
	Records int32 `json:"records_per_second"`
	Bytes   int64 `json:"bytes_per_second"`
}

func limitFlags() []string { return []string{"records-per-second", "bytes-per-second"} }

func (l *limits) flag(cmd *cobra.Command) {
	names := limitFlags()
	cmd.Flags().Var(number{&l.Records, 0}, names[0], "`N` records a second; 0, or left out, is no limit")
	cmd.Flags().Var((*conf.Bytes)(&l.Bytes), names[1], "`SIZE` a second, such as 10MiB; 0, or left out, is no limit")
}

// String says what holds.
func (l *limits) String() string {
	var parts []string
	if l.Records > 0 {
		parts = append(parts, count(int64(l.Records))+" records/s")
	}
	if l.Bytes > 0 {
		text := conf.Bytes(l.Bytes).String()
		if !strings.HasSuffix(text, "B") { // it divides by no unit
			text += " bytes"
		}
		parts = append(parts, text+"/s")
	}
	if parts == nil {
		return "no limit"
	}
	return "at most " + strings.Join(parts, " and ")
}
