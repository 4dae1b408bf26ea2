package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"
)

// dial makes a connection that is ready for requests: TLS, versions and authentication are done. An error is a *LinkError.
func (c *Client) dial(ctx context.Context, broker int32, addr string, timeout time.Duration) (*Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	link := func(op string, err error) error { return &LinkError{Op: op, Broker: broker, Addr: addr, Err: err} }
	var d net.Dialer
	nc, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, link("dial", err)
	}
	secured, err := c.secure(ctx, nc, addr)
	if err != nil {
		_ = nc.Close()
		return nil, link("start TLS", err)
	}
	conn := newConn(secured, broker, addr, c.clientID(), c.cfg)
	if err = conn.negotiate(ctx); err == nil {
		err = c.authenticate(ctx, conn)
	}
	if err == nil {
		return conn, nil
	}
	conn.Close()
	var known *LinkError
	if errors.As(err, &known) {
		return nil, err
	}
	return nil, link("open connection", err)
}

// secure starts TLS if the cluster has it. The configuration is made anew for each connection, so that renewed files count.
func (c *Client) secure(ctx context.Context, nc net.Conn, addr string) (net.Conn, error) {
	config, err := c.cluster.TLSConfig()
	if err != nil || config == nil {
		return nc, err
	}
	if config.ServerName == "" {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, fmt.Errorf("split address: %w", err)
		}
		config = config.Clone()
		config.ServerName = host
	}
	t := tls.Client(nc, config)
	return t, t.HandshakeContext(ctx)
}
