package wire

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/causeway-mirror/causeway/cluster"
	"github.com/causeway-mirror/causeway/internal/slab"
	"github.com/causeway-mirror/causeway/route"
)

var errSkeleton = errors.New("not there yet")

// ErrUnsupported is the answer when the broker does not know a request, or not in a version that serves.
var ErrUnsupported = errors.New("the broker does not support this request")

type Client struct{}

func NewClient(cfg cluster.Config, log hclog.Logger) (*Client, error) { return nil, errSkeleton }
func (c *Client) Close()                                              {}
func (c *Client) Metadata(ctx context.Context, topics ...string) (*Metadata, error) {
	return nil, errSkeleton
}
func (c *Client) Dial(ctx context.Context, broker int32) (*Conn, error) { return nil, errSkeleton }
func (c *Client) Request(ctx context.Context, broker int32, req kmsg.Request) (kmsg.Response, error) {
	return nil, errSkeleton
}
func (c *Client) ListOffsets(ctx context.Context, leaders map[route.Partition]int32, at int64, committed bool) (map[route.Partition]ListedOffset, error) {
	return nil, errSkeleton
}
func (c *Client) OffsetsForLeaderEpoch(ctx context.Context, broker int32, asks []EpochAsk) (map[route.Partition]EpochEnd, error) {
	return nil, errSkeleton
}
func (c *Client) DescribeProducers(ctx context.Context, broker int32, parts []route.Partition) (map[route.Partition]Producers, error) {
	return nil, errSkeleton
}
func (c *Client) InitProducerID(ctx context.Context) (id int64, epoch int16, err error) {
	return 0, 0, errSkeleton
}

type Conn struct{}

func (c *Conn) Broker() int32              { return 0 }
func (c *Conn) MaxVersion(key int16) int16 { return -1 }
func (c *Conn) Call(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	return nil, errSkeleton
}
func (c *Conn) Fetch(ctx context.Context, req *kmsg.FetchRequest, pool *slab.Pool, reserved int64) (*kmsg.FetchResponse, *slab.Slab, error) {
	return nil, nil, errSkeleton
}

// Produce is one Produce request.
type Produce struct {
	Acks    int16
	Timeout time.Duration
	Batches []ProduceBatch
}

// ProduceBatch is the records of one partition.
type ProduceBatch struct {
	Topic     string
	Partition int32
	Records   []byte
}

func (c *Conn) Produce(req *Produce, done func(*kmsg.ProduceResponse, error)) error {
	return errSkeleton
}
func (c *Conn) OldestWait() time.Duration               { return 0 }
func (c *Conn) Unanswered() (requests int, bytes int64) { return 0, 0 }
func (c *Conn) Done() <-chan struct{}                   { return nil }
func (c *Conn) Err() error                              { return nil }
func (c *Conn) Close()                                  {}

// LinkError is a failure of the connection to a broker: whether the broker did what it was asked is not known.
type LinkError struct {
	Op     string
	Broker int32
	Addr   string
	Err    error
}

func (e *LinkError) Error() string { return e.Op + ": " + e.Err.Error() }

// Unwrap gives the cause.
func (e *LinkError) Unwrap() error { return e.Err }

// AuthError says that the cluster refused our credentials.
type AuthError struct {
	Mechanism string
	Err       error
}

func (e *AuthError) Error() string { return e.Mechanism + ": " + e.Err.Error() }

// Unwrap gives the cause.
func (e *AuthError) Unwrap() error { return e.Err }
