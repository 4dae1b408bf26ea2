package gateway

import (
	"net"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTenThousandIdleConnectionsCostLittle opens so many, or as many as there may be files, which send nothing; others are served.
func TestTenThousandIdleConnectionsCostLittle(t *testing.T) {
	if testing.Short() {
		t.Skip("it opens 20,000 files")
	}
	var files syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files))
	n := min(10000, (int(files.Cur)-1000)/2) // both ends are ours
	s := open(t, fake(t).ListenAddrs(), 3, func(c *Config) { c.Connections.PerAddress, c.Connections.Total = n+100, n+100 })
	produce(t, s.client(t), 0, 10)
	used := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapInuse + m.StackInuse
	}
	before := used()
	var conns []net.Conn
	defer func() {
		for _, c := range conns {
			_ = c.Close()
		}
	}()
	for range n {
		conn, err := (&net.Dialer{Timeout: soon}).DialContext(t.Context(), "tcp", s.front)
		require.NoError(t, err)
		conns = append(conns, conn)
	}
	require.Eventually(t, func() bool { return openNow(s) >= float64(n) }, soon, 10*time.Millisecond)
	each := (used() - before) / uint64(n)
	t.Logf("%d idle connections, %d bytes each, the client's end included", n, each)
	require.Less(t, each, uint64(32<<10))
	produce(t, s.client(t), 10, 20)
}

func openNow(s *stand) float64 {
	families, err := s.reg.Gather()
	if err != nil {
		return 0
	}
	for _, f := range families {
		if f.GetName() == "causeway_network_connections" {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	return 0
}
