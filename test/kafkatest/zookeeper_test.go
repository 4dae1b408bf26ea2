package kafkatest_test

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// silent is a logger for clients whose lost links are the point of the test.
type silent struct{}

func (silent) Printf(string, ...any) {}

// connect returns a client with a session, and the channel that its connection's states come by.
func connect(t *testing.T, addr string, timeout time.Duration) (*zk.Conn, <-chan zk.Event) {
	t.Helper()
	conn, states, err := zk.Connect([]string{addr}, timeout, zk.WithLogger(silent{}))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	awaitState(t, states, zk.StateHasSession)
	return conn, states
}

func awaitState(t *testing.T, states <-chan zk.Event, want zk.State) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		select {
		case e := <-states:
			if e.State == want {
				return
			}
		case <-deadline:
			t.Fatalf("the connection never became %v", want)
		}
	}
}

func TestZooKeeperKeepsItsPortAndData(t *testing.T) {
	t.Parallel()
	z := kafkatest.StartZooKeeper(t)
	addr := z.Addr()
	conn, states := connect(t, addr, 10*time.Second)
	_, err := conn.Create("/kept", []byte("data"), 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)

	require.NoError(t, z.Kill())
	awaitState(t, states, zk.StateDisconnected)
	require.NoError(t, z.Start(t.Context()))
	require.Equal(t, addr, z.Addr())
	awaitState(t, states, zk.StateHasSession)
	data, _, err := conn.Get("/kept")
	require.NoError(t, err)
	require.Equal(t, "data", string(data))
}

func TestZooKeeperExpiresShortSessionsBehindItsProxy(t *testing.T) {
	t.Parallel()
	z := kafkatest.StartZooKeeper(t)
	direct, _ := connect(t, z.Addr(), 10*time.Second)
	proxied, states := connect(t, z.Proxy().Addr(), 3*time.Second) // the library waits a second before it connects again
	_, err := proxied.Create("/mine", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)

	z.Proxy().Cut()
	awaitState(t, states, zk.StateHasSession)
	there, _, gone, err := direct.ExistsW("/mine")
	require.NoError(t, err)
	require.True(t, there, "a cut link does not end a session")

	z.Proxy().Blackhole()
	select {
	case e := <-gone:
		require.Equal(t, zk.EventNodeDeleted, e.Type)
	case <-time.After(30 * time.Second):
		t.Fatal("the session never ended")
	}
	require.NoError(t, z.Proxy().Heal())
	awaitState(t, states, zk.StateExpired)
	awaitState(t, states, zk.StateHasSession)
}

func TestSharedZooKeeperIsOne(t *testing.T) {
	t.Parallel()
	first, again := kafkatest.SharedZooKeeper(t), kafkatest.SharedZooKeeper(t)
	require.Same(t, first, again)
	connect(t, first.Addr(), 10*time.Second)
}
