package wire

import (
	"context"
	"errors"
	"time"
)

// dial makes a connection that is ready for requests: TLS, versions and authentication are done. An error is a *LinkError.
func (c *Client) dial(ctx context.Context, broker int32, addr string, timeout time.Duration) (*Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	link := func(op string, err error) error { return &LinkError{Op: op, Broker: broker, Addr: addr, Err: err} }
	nc, err := c.cluster.Dial(ctx, addr)
	if err != nil {
		return nil, link("open connection", err)
	}
	conn := newConn(nc, broker, addr, c.clientID(), c.cfg)
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
