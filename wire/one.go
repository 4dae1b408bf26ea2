package wire

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/causeway-mirror/causeway/internal/slab"
	"github.com/causeway-mirror/causeway/route"
)

var errOther = errors.New("the answer to a Fetch is about something else than what was asked for")

// oneWaitMillis bounds how long a broker waits for a first record.
const oneWaitMillis = 1000

// One is a fetch of one partition, outside any session.
type One struct {
	Partition     route.Partition
	At            route.Offset
	ReadCommitted bool
	Pool          *slab.Pool
	Bytes         int32 // at most about so many; they are waited for in the pool's budget
}

// FetchOne sends it. The answer's batches are slices of the slab, which the caller releases. What the broker says against the request or the
// partition is the error (kerr).
func (c *Conn) FetchOne(ctx context.Context, o One) (*kmsg.FetchResponseTopicPartition, *slab.Slab, error) {
	req := kmsg.NewPtrFetchRequest()
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes, req.SessionEpoch = oneWaitMillis, 1, o.Bytes, -1
	if o.ReadCommitted {
		req.IsolationLevel = 1
	}
	t, part := kmsg.NewFetchRequestTopic(), kmsg.NewFetchRequestTopicPartition()
	t.Topic = o.Partition.Topic
	part.Partition, part.FetchOffset, part.PartitionMaxBytes, part.CurrentLeaderEpoch = o.Partition.Partition, int64(o.At), o.Bytes, -1
	t.Partitions = append(t.Partitions, part)
	req.Topics = append(req.Topics, t)
	if err := o.Pool.Budget().Reserve(ctx, int64(o.Bytes)); err != nil {
		return nil, nil, err
	}
	resp, s, err := c.Fetch(ctx, req, o.Pool, int64(o.Bytes))
	if err != nil {
		return nil, nil, err
	}
	err = kerr.ErrorForCode(resp.ErrorCode)
	if err == nil && (len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1) {
		err = errOther
	}
	if err == nil {
		err = kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode)
	}
	if err != nil {
		s.Release()
		return nil, nil, err
	}
	return &resp.Topics[0].Partitions[0], s, nil
}
