package wire

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const minProduce, maxProduce = 3, 12 // 13 names topics by id and gives us nothing

// Produce is one Produce request. Batches of one topic stand together.
type Produce struct {
	Acks    int16         // 1 or -1; 0 has no answer and is refused
	Timeout time.Duration // the broker's wait for replicas
	Batches []ProduceBatch
}

// ProduceBatch is the records of one partition, one whole batch as a rule.
type ProduceBatch struct {
	Topic     string
	Partition int32
	Records   []byte
}

// Produce sends a request behind those that are unanswered. It returns when the request is written, which may take as long as the broker
// does not read, and waits out a throttle. An error means that nothing was queued, and done is not called.
//
// Otherwise done is called exactly once, in the order of requests, from the goroutine that reads answers, and only when the connection no
// longer refers to the request's bytes: the write has returned, however it ended. done must not block and must not call Close, Call,
// Fetch or Produce of this connection, since they wait for the goroutine that it runs in. The answer is done's to keep.
func (c *Conn) Produce(req *Produce, done func(*kmsg.ProduceResponse, error)) error {
	v := c.MaxVersion(keyProduce)
	if v < 0 {
		return fmt.Errorf("send Produce: %w", ErrUnsupported)
	}
	if err := req.check(); err != nil {
		return err
	}
	if err := c.lock(nil); err != nil {
		return err
	}
	defer c.unlock()
	c.corr++
	resp := kmsg.NewPtrProduceResponse()
	resp.Version = v
	timeout := time.Duration(clampMillis(req.Timeout))*time.Millisecond + c.cfg.ProduceMargin
	w := &waiter{corr: c.corr, key: keyProduce, timeout: timeout, resp: resp, produced: done}
	var err error
	if w.size, err = c.out.produce(req, v, w.corr); err != nil {
		return err
	}
	return c.writeLocked(w)
}

var (
	errAcks  = errors.New("encode Produce: acks must be 1 or -1")
	errEmpty = errors.New("encode Produce: no batches")
)

func (p *Produce) check() error {
	if p.Acks != 1 && p.Acks != -1 {
		return errAcks
	}
	if len(p.Batches) == 0 {
		return errEmpty
	}
	for i := range p.Batches {
		if n := len(p.Batches[i].Topic); n == 0 || n > math.MaxInt16 {
			return fmt.Errorf("encode Produce: topic name of %d bytes", n)
		}
	}
	return nil
}
