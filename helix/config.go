package helix

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
)

// Config is how a cluster's ZooKeeper is reached. The roles have their own settings beside it.
type Config struct {
	// ZooKeeper is the servers and, optionally, the path below which everything lives: "zk1:2181,zk2:2181/chroot".
	ZooKeeper string
	Cluster   Cluster
	// SessionTimeout is what ZooKeeper is asked for; it may grant another one.
	SessionTimeout time.Duration
	// Waiting, if set, is told every now and then that ZooKeeper is waited for, and why it can't be reached, as far as known.
	Waiting func(trouble error)
}

// DefaultConfig lacks only the address and the cluster.
func DefaultConfig() Config { return Config{SessionTimeout: 30 * time.Second} }

const (
	minSessionTimeout = time.Second
	maxSessionTimeout = 10 * time.Minute
	defaultPort       = "2181"
)

// Validate reports all faults at once.
func (c Config) Validate() error {
	var faults []error
	if _, _, err := parseAddress(c.ZooKeeper); err != nil {
		faults = append(faults, err)
	}
	if err := checkName("cluster", string(c.Cluster)); err != nil {
		faults = append(faults, err)
	}
	if c.SessionTimeout < minSessionTimeout || c.SessionTimeout > maxSessionTimeout {
		faults = append(faults, fmt.Errorf("session_timeout: %s: must be 1s to 10m", c.SessionTimeout))
	}
	return errors.Join(faults...)
}

// parseAddress splits an address list; each server gets its port, the chroot has no slash at its end and is empty for the root.
func parseAddress(address string) (servers []string, chroot string, err error) {
	bad := func(reason string) error { return fmt.Errorf("zookeeper: %q: %s", address, reason) }
	list, path, _ := strings.Cut(address, "/")
	for server := range strings.SplitSeq(list, ",") {
		server = strings.TrimSpace(server)
		if server == "" {
			return nil, "", bad("must be host:port, several with commas between, and at most one path at the end")
		}
		if _, _, err := net.SplitHostPort(server); err != nil {
			server = net.JoinHostPort(strings.Trim(server, "[]"), defaultPort)
			if _, _, err := net.SplitHostPort(server); err != nil {
				return nil, "", bad("must be host:port")
			}
		}
		servers = append(servers, server)
	}
	if path = strings.Trim(path, "/"); path == "" {
		return servers, "", nil
	}
	for part := range strings.SplitSeq(path, "/") {
		if checkName("chroot", part) != nil {
			return nil, "", bad("the path must consist of names")
		}
	}
	return servers, "/" + path, nil
}
