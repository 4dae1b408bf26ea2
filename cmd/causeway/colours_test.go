package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/api"
)

func TestAStateHasTheColourOfItsWorstWord(t *testing.T) {
	t.Parallel()
	paint := table{colours: true}
	for cell, colour := range map[string]string{
		"mirroring": green, "3 mirroring, 1 halted": red, "degraded: it is halted": red, "1 halted, 2 degraded": red, "2 degraded, 1 mirroring": yellow, "paused": uncolour,
		"STATE": uncolour, strings.Repeat("mirroring ", 10): green,
	} {
		painted := paint.painted(cell)
		require.True(t, strings.HasPrefix(painted, "\x1b["+colour+"m"), cell)
		require.True(t, strings.HasSuffix(painted, "\x1b[0m"), cell)
		require.Equal(t, cell, (&table{}).painted(cell), "no terminal, no colour")
	}
}

// Colours must not move columns: without their signs the table is the plain one.
func TestColoursDoNotMoveColumns(t *testing.T) {
	t.Parallel()
	parts := []api.Partition{
		{Topic: "orders", State: api.StateMirroring, LagRecords: -1, Reason: "none"}, {Topic: strings.Repeat("long-", 20), State: api.StateHalted, Reason: "MESSAGE_TOO_LARGE"},
	}
	show := func(colours bool) string {
		var out bytes.Buffer
		tab := newTable(&out)
		tab.colours = colours
		partitionRows(tab, parts)
		require.NoError(t, tab.w.Flush())
		return out.String()
	}
	coloured := show(true)
	require.Regexp(t, `0 +- +- +0/s`, coloured, "a lag that is not known, and for how long")
	require.Contains(t, coloured, "\x1b[31mhalted\x1b[0m")
	signs := strings.NewReplacer("\x1b[31m", "", "\x1b[32m", "", "\x1b[39m", "", "\x1b[0m", "")
	require.Equal(t, show(false), signs.Replace(coloured))
}
