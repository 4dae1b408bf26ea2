package zk

import (
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
)

func TestAddress(t *testing.T) {
	t.Parallel()
	tests := []struct {
		address string
		servers []string
		chroot  string
		fault   string
	}{
		{address: "zk1", servers: []string{"zk1:2181"}},
		{address: "zk1:2182,zk2", servers: []string{"zk1:2182", "zk2:2181"}},
		{address: " zk1:1 , zk2:2/kafka/a", servers: []string{"zk1:1", "zk2:2"}, chroot: "/kafka/a"},
		{address: "zk1:1/kafka/", servers: []string{"zk1:1"}, chroot: "/kafka"},
		{address: "zk1:1/", servers: []string{"zk1:1"}},
		{address: "[::1]:1,[::1]", servers: []string{"[::1]:1", "[::1]:2181"}},
		{address: "", fault: "a server without a name"},
		{address: "zk1,", fault: "a server without a name"},
		{address: ":2181", fault: "a server without a name"},
		{address: "/kafka", fault: "a server without a name"},
		{address: "zk1//kafka", fault: "a chroot that is no path"},
		{address: "zk1/a//b", fault: "a chroot that is no path"},
		{address: "zk1/a/../b", fault: "a chroot that is no path"},
	}
	for _, test := range tests {
		t.Run(test.address, func(t *testing.T) {
			t.Parallel()
			servers, chroot, err := Config{Address: test.address}.servers()
			if test.fault != "" {
				require.ErrorContains(t, err, test.fault)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.servers, servers)
			require.Equal(t, test.chroot, chroot)
		})
	}
}

func TestValidateNamesAllFaults(t *testing.T) {
	t.Parallel()
	cfg := Config{Address: ",", Group: "a/b", SessionTimeout: time.Second}
	_, err := Open(t.Context(), cfg, hclog.NewNullLogger())
	for _, fault := range []string{`zookeeper: ","`, `group: "a/b"`, "session_timeout: 1s, must be at least 2s", "timeout: 0s"} {
		require.ErrorContains(t, err, fault)
	}
	cfg = DefaultConfig()
	cfg.Address, cfg.Group = "zk", "g"
	require.NoError(t, cfg.Validate())
}
