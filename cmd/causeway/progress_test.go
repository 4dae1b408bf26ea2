package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/api"
)

func TestProgressLine(t *testing.T) {
	t.Parallel()
	var p progress
	now := time.Unix(1000, 0)
	other := int64(-1)
	at := func(lag int64, state string) string {
		now = now.Add(time.Second)
		return p.line(api.Snapshot{State: api.StateMirroring, Partitions: []api.Partition{
			{State: state, LagRecords: lag, RecordsPerSecond: 20_000, BytesPerSecond: 5.4e6}, {State: api.StateMirroring, LagRecords: other},
		}}, now)
	}
	require.Equal(t, "mirroring  2 partitions  lag 100,000  20.0k records/s  5.40 MB/s  not gaining", at(100_000, api.StateMirroring))
	for lag := int64(99_000); lag > 60_000; lag -= 1000 {
		at(lag, api.StateMirroring)
	}
	require.Regexp(t, `caught up in (59|1m)`, at(60_000, api.StateMirroring))
	require.Contains(t, at(0, api.StateMirroring), "lag of 1 unknown")
	require.NotContains(t, at(0, api.StateHalted), "caught up")
	other = 0
	require.Contains(t, at(0, api.StateMirroring), "caught up")
	require.Contains(t, at(10, api.StateHalted), "1 halted")
	p = progress{}
	at(77, api.StateMirroring)
	require.Contains(t, at(77, api.StateMirroring), "  caught up", "records that are on their way are no lag")
	at(20_001, api.StateMirroring)
	require.Contains(t, at(20_001, api.StateMirroring), "  not gaining")
}

func TestProgressClaimsNothing(t *testing.T) {
	t.Parallel()
	var p progress
	now := time.Unix(1000, 0)
	starting := p.line(api.Snapshot{State: api.StateStarting, Reason: "source: unreachable"}, now)
	require.Equal(t, "starting  0 partitions  lag unknown  0 records/s  0.00 MB/s  (source: unreachable)", starting)
	require.Contains(t, p.line(api.Snapshot{State: api.StateMirroring}, now), "no topic to mirror yet")
	halted := []api.Partition{{State: api.StateHalted, LagRecords: -1}}
	require.Equal(t, "mirroring  1 partition  lag unknown  0 records/s  0.00 MB/s  1 halted", p.line(api.Snapshot{State: api.StateMirroring, Partitions: halted}, now))
}

func TestPlainScreenWritesLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := newScreen(&out)
	s.show("one")
	s.say("two %d", 2)
	s.finish()
	require.Equal(t, "one\ntwo 2\n", out.String())
}

func TestTerminalScreenKeepsLineBelow(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := newScreen(&out)
	s.terminal = true
	s.show("busy")
	s.say("said")
	s.finish()
	require.Equal(t, clearLine+"busy"+clearLine+"said\nbusy\n", out.String())
}

func TestJSONIsNotEscapedForBrowsers(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	form := output("json")
	require.NoError(t, form.print(&out, verdict{Difference: "a-0 -> b-0"}, nil))
	require.Contains(t, out.String(), `"a-0 -> b-0"`)
}

func TestFormats(t *testing.T) {
	t.Parallel()
	require.Equal(t, "1,234,567", count(1_234_567))
	require.Equal(t, "999", count(999))
	require.Equal(t, "-", count(-1))
	require.Equal(t, "1.50M/s", rate(1.5e6))
	require.Equal(t, "9999/s", rate(9999))
	require.Equal(t, "59.9s", seconds(59.9))
	require.Equal(t, "1h0m0s", seconds(3600))
	require.Equal(t, "1 halted, 2 mirroring", states(map[string]int{"mirroring": 2, "halted": 1}))
}
