package wire

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
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
		err = c.identify(ctx, conn)
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

// identify makes sure that the broker belongs to the cluster that the client has come to know: addresses are used again, and a batch for a
// stranger's topic of the same name would be taken there. Brokers before 2.8 can't be asked without asking for metadata; they pass.
func (c *Client) identify(ctx context.Context, conn *Conn) error {
	req := kmsg.NewPtrDescribeClusterRequest()
	c.mu.Lock()
	known := c.id != ""
	c.mu.Unlock()
	if !known || conn.MaxVersion(req.Key()) < 0 {
		return nil
	}
	r, err := conn.Call(ctx, req)
	if err != nil {
		return err
	}
	resp, ok := r.(*kmsg.DescribeClusterResponse)
	if !ok {
		panic("BUG: DescribeCluster is answered by something else")
	}
	if resp.ErrorCode != 0 {
		return nil // one that may not tell us is no stranger for that
	}
	return c.belongs(&resp.ClusterID)
}
