package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const keyProduce, keyFetch, keyAPIVersions = 0, 1, 18

// read takes answers from the socket until it fails, and then tells everyone who still waits.
func (c *Conn) read() {
	defer close(c.done)
	for {
		if op, err := c.readAnswer(); err != nil {
			c.fail(op, err)
			break
		}
	}
	err := c.Err()
	for w := c.pop(); w != nil; w = c.pop() {
		c.finish(w, err)
	}
}

// readAnswer reads one answer and gives it to the oldest request. It always reads, also when nothing is expected, so that a link that
// ends is noticed at once and not by the next request.
func (c *Conn) readAnswer() (op string, err error) {
	h, err := c.in.Peek(8)
	if err != nil {
		return c.await(), lateness(err)
	}
	size, corr := int64(binary.BigEndian.Uint32(h)), int32(binary.BigEndian.Uint32(h[4:]))
	if _, err = c.in.Discard(8); err != nil {
		return c.await(), err
	}
	w := c.oldest()
	switch {
	case size < 4 || size > int64(c.cfg.MaxFrameBytes):
		return "read answer", &FrameError{"size of the answer is out of bounds (is the peer a Kafka broker, and TLS set as there?)", size}
	case w == nil:
		return "read answer", &FrameError{"answer that nobody asked for, correlation id", int64(corr)}
	case w.corr != corr:
		return "read answer", &FrameError{fmt.Sprintf("answer out of order, expected correlation id %d, got", w.corr), int64(corr)}
	}
	body, err := c.readBody(w, int(size-4))
	if err != nil {
		return "read answer to " + kmsg.NameForKey(w.key), lateness(err)
	}
	if body != nil {
		if err := decode(w, body); err != nil {
			return "read answer to " + kmsg.NameForKey(w.key), err
		}
		c.throttle(w.resp)
	}
	c.finish(c.pop(), nil)
	return "set deadline", c.arm()
}

// await says what the connection was waiting for when it broke.
func (c *Conn) await() string {
	if w := c.oldest(); w != nil {
		return "await answer to " + kmsg.NameForKey(w.key)
	}
	return "idle connection"
}

func (c *Conn) oldest() *waiter {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waiting.head
}

// readBody reads the rest of an answer: a Fetch's into a slab of its own, a Produce's into scratch memory since nothing in it stays. The
// others may hold on to bytes and get new memory. It is nil, and skipped, when nobody waits for a Fetch any more.
func (c *Conn) readBody(w *waiter, n int) ([]byte, error) {
	switch {
	case w.pool != nil:
		c.mu.Lock()
		w.taken = !w.abandoned
		c.mu.Unlock()
		if !w.taken {
			return nil, c.skip(n, w.timeout)
		}
		w.body = w.pool.Get(n, w.reserved)
		return w.body.Bytes(), c.readFull(w.body.Bytes(), w.timeout)
	case n > pieceBytes: // believed only as far as it arrives
		return c.readGrowing(n, w.timeout)
	case w.key != keyProduce:
		b := make([]byte, n)
		return b, c.readFull(b, w.timeout)
	}
	if n > cap(c.answer) {
		c.answer = make([]byte, n+n/2)
	}
	b := c.answer[:n]
	return b, c.readFull(b, w.timeout)
}

func (c *Conn) readFull(b []byte, timeout time.Duration) error {
	for {
		n := min(len(b), pieceBytes)
		if _, err := io.ReadFull(c.in, b[:n]); err != nil {
			return err
		}
		if b = b[n:]; len(b) == 0 {
			return nil
		}
		if err := c.nc.SetReadDeadline(time.Now().Add(timeout)); err != nil {
			return err
		}
	}
}

func (c *Conn) readGrowing(n int, timeout time.Duration) ([]byte, error) {
	var b []byte
	for n > len(b) {
		at := len(b)
		b = append(b, make([]byte, min(n-at, pieceBytes))...)
		if err := c.readFull(b[at:], timeout); err != nil {
			return nil, err
		}
		if err := c.nc.SetReadDeadline(time.Now().Add(timeout)); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func (c *Conn) skip(n int, timeout time.Duration) error {
	for n > 0 {
		k, err := c.in.Discard(min(n, pieceBytes))
		if err != nil {
			return err
		}
		n -= k
		if err := c.nc.SetReadDeadline(time.Now().Add(timeout)); err != nil {
			return err
		}
	}
	return nil
}

// decode parses an answer's body. Bytes in the result are slices of it, strings are not.
func decode(w *waiter, b []byte) error {
	if w.key == keyAPIVersions {
		// Its header is never flexible, and a broker that does not know the version answers in version 0 (KIP-511).
		if len(b) >= 2 && int16(binary.BigEndian.Uint16(b)) == kerr.UnsupportedVersion.Code {
			w.resp.SetVersion(0)
		}
	} else if w.resp.IsFlexible() {
		var err error
		if b, err = skipTags(b); err != nil {
			return err
		}
	}
	if err := w.resp.ReadFrom(b); err != nil {
		return fmt.Errorf("decode %d bytes, version %d: %w", len(b), w.resp.GetVersion(), err)
	}
	return nil
}

var errTags = errors.New("header is cut short")

// skipTags drops the tagged fields that end a flexible answer's header.
func skipTags(b []byte) ([]byte, error) {
	count, n := binary.Uvarint(b)
	if n <= 0 {
		return nil, errTags
	}
	b = b[n:]
	for range count {
		if _, n = binary.Uvarint(b); n <= 0 {
			return nil, errTags
		}
		b = b[n:]
		size, k := binary.Uvarint(b)
		if k <= 0 || size > uint64(len(b)-k) {
			return nil, errTags
		}
		b = b[k+int(size):]
	}
	return b, nil
}

// throttle notes for how long the broker wants nothing from us. Before KIP-219 it delays the answer itself, and there is nothing to do.
func (c *Conn) throttle(resp kmsg.Response) {
	t, ok := resp.(kmsg.ThrottleResponse)
	if !ok {
		return
	}
	ms, ours := t.Throttle()
	if !ours || ms <= 0 {
		return
	}
	until := time.Now().Add(time.Duration(ms) * time.Millisecond)
	c.mu.Lock()
	defer c.mu.Unlock()
	if until.After(c.throttledUntil) {
		c.throttledUntil = until
	}
}

// finish tells a request's owner. The request is no longer counted as unanswered.
func (c *Conn) finish(w *waiter, err error) {
	if w.produced != nil {
		if resp, ok := w.resp.(*kmsg.ProduceResponse); ok && err == nil {
			w.produced(resp, nil)
			return
		}
		w.produced(nil, err)
		return
	}
	c.mu.Lock()
	w.err, w.finished = err, true
	drop := w.body != nil && (w.abandoned || err != nil)
	giveBack := w.pool != nil && err != nil && !w.taken && !w.abandoned
	c.mu.Unlock()
	if drop {
		w.body.Release()
		w.body = nil
	}
	if giveBack {
		w.pool.Budget().Return(w.reserved)
	}
	close(w.ready)
}

// lateness makes clear that it was the answer that did not come in time.
func lateness(err error) error {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("no answer in time: %w", err)
	case errors.Is(err, io.EOF):
		return fmt.Errorf("the broker closed the connection: %w", io.ErrUnexpectedEOF)
	}
	return err
}

// clampMillis converts for a request's int32 field.
func clampMillis(d time.Duration) int32 {
	return int32(max(0, min(d.Milliseconds(), math.MaxInt32)))
}
