package zk

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
)

// defaultPort is ZooKeeper's client port.
const defaultPort = "2181"

// leastSession is the shortest session timeout that makes sense: the library waits a second before it connects again.
const leastSession = 2 * time.Second

// Config says where the positions of a route are.
type Config struct {
	// Address is ZooKeeper's servers and the node below which everything lies, which must be there: "host:port,host:port/chroot". A missing port is
	// 2181.
	Address string
	// Group is the consumer group under whose name uReplicator keeps the route's offsets.
	Group string
	// SessionTimeout is asked of ZooKeeper; two thirds of it without an answer are a lost connection.
	SessionTimeout time.Duration
	// Timeout is how long an operation waits for ZooKeeper, be it for an answer or until it is back, before it is offsets.ErrUnavailable.
	Timeout time.Duration
}

// DefaultConfig lacks the address and the group.
func DefaultConfig() Config {
	return Config{SessionTimeout: 30 * time.Second, Timeout: 10 * time.Second}
}

// Validate reports all faults at once.
func (c Config) Validate() error {
	var faults []error
	if _, _, err := c.servers(); err != nil {
		faults = append(faults, fmt.Errorf("zookeeper: %w", err))
	}
	if c.Group == "" || strings.Contains(c.Group, "/") || c.Group == "." || c.Group == ".." {
		faults = append(faults, fmt.Errorf("group: %q, must be a name without a slash", c.Group))
	}
	if c.SessionTimeout < leastSession {
		faults = append(faults, fmt.Errorf("session_timeout: %v, must be at least %v", c.SessionTimeout, leastSession))
	}
	if c.Timeout <= 0 {
		faults = append(faults, fmt.Errorf("timeout: %v, must be more than 0", c.Timeout))
	}
	return errors.Join(faults...)
}

// servers splits the address into host:port each and the chroot, which is empty or begins with a slash.
func (c Config) servers() (servers []string, chroot string, err error) {
	list, below, _ := strings.Cut(c.Address, "/")
	for s := range strings.SplitSeq(list, ",") {
		s = strings.TrimSpace(s)
		if s == "" {
			return nil, "", fmt.Errorf("%q has a server without a name", c.Address)
		}
		host, _, err := net.SplitHostPort(s)
		if err != nil {
			host, s = s, net.JoinHostPort(strings.Trim(s, "[]"), defaultPort)
			_, _, err = net.SplitHostPort(s)
		}
		if err != nil || host == "" {
			return nil, "", fmt.Errorf("%q has a server without a name", c.Address)
		}
		servers = append(servers, s)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(below, "/"), "/") {
		switch {
		case name == "" && chroot == "" && strings.Trim(below, "/") == "":
		case name == "" || name == "." || name == "..":
			return nil, "", fmt.Errorf("%q has a chroot that is no path", c.Address)
		default:
			chroot += "/" + name
		}
	}
	return servers, chroot, nil
}
