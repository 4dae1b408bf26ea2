package graphite

import (
	"bufio"
	"bytes"
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
)

func TestFiguresArriveAsLines(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	r := New(Config{Address: l.Addr().String(), Prefix: "stats.eu.counter.w", Interval: time.Millisecond}, hclog.NewNullLogger(),
		func() []Sample { return []Sample{{"OwnedPartitionsCount", 12}, {"odd name\n", 0.5}} })
	r.now = func() time.Time { return time.Unix(1_700_000_000, 0) }
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); r.Run(ctx) }() // owned by the test, which waits for ended
	for range 2 {                                  // a connection each
		conn, err := l.Accept()
		require.NoError(t, err)
		var lines []string
		for in := bufio.NewScanner(conn); in.Scan(); {
			lines = append(lines, in.Text())
		}
		require.NoError(t, conn.Close())
		require.Equal(t, []string{"stats.eu.counter.w.OwnedPartitionsCount 12 1700000000", "stats.eu.counter.w.odd-name- 0.5 1700000000"}, lines)
	}
	cancel()
	<-ended
}

func TestGraphiteThatIsAwayIsToldOnce(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	var text bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	log := hclog.New(&hclog.LoggerOptions{Output: &text})
	r := New(Config{Address: l.Addr().String(), Prefix: "p", Interval: time.Millisecond}, log, func() []Sample { return nil })
	require.Error(t, r.send(ctx))
	ended := make(chan struct{})
	go func() { defer close(ended); r.Run(ctx) }() // owned by the test, which waits for ended
	time.AfterFunc(300*time.Millisecond, cancel)
	<-ended
	require.Equal(t, 1, strings.Count(text.String(), "can't be sent"), text.String())
}

func TestMeterFollowsItsCounter(t *testing.T) {
	t.Parallel()
	now, count := time.Unix(0, 0), 0.0
	m := NewMeter("commitFailure", now, func() float64 { return count })
	value := func(name string) float64 {
		for _, s := range m.Samples(now) {
			if s.Name == "commitFailure."+name {
				return s.Value
			}
		}
		t.Fatal(name)
		return 0
	}
	for range 60 {
		now, count = now.Add(time.Minute), count+120
		require.InDelta(t, 2, value("m1_rate"), 1e-9)
	}
	require.InDelta(t, 7200, value("count"), 0)
	require.InDelta(t, 2, value("mean_rate"), 1e-9)
	now = now.Add(time.Minute) // nothing more
	require.InDelta(t, 2/2.718281828, value("m1_rate"), 1e-6)
	require.Greater(t, value("m15_rate"), 1.8)
}
