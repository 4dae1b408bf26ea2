package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	clientID       = "floor"
	produceVersion = 8
	// unanswered bounds the requests on a connection; more would only wait in the kernel.
	unanswered = 4096
)

// conn is one pipelined plaintext connection: requests go out in call order, and answers come back in it.
type conn struct {
	c     net.Conn
	fail  context.CancelCauseFunc
	await chan waiter

	mu          sync.Mutex
	correlation uint32                 // guarded by mu
	format      *kmsg.RequestFormatter // guarded by mu
	buf         []byte                 // guarded by mu
}

type waiter struct {
	resp kmsg.Response
	done func(kmsg.Response)
}

// dial connects. An error of a later read goes to fail.
func dial(addr string, fail context.CancelCauseFunc) (*conn, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	k := &conn{c: c, fail: fail, format: kmsg.NewRequestFormatter(kmsg.FormatterClientID(clientID)), await: make(chan waiter, unanswered)}
	go func() { // owned by the program, which ends with it
		if err := k.read(); err != nil {
			fail(err)
		}
	}()
	return k, nil
}

func (k *conn) read() error {
	r := bufio.NewReaderSize(k.c, 64<<10)
	var head [8]byte
	for w := range k.await {
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return fmt.Errorf("read from %v: %w", k.c.RemoteAddr(), err)
		}
		body := make([]byte, int(binary.BigEndian.Uint32(head[:]))-4)
		if _, err := io.ReadFull(r, body); err != nil {
			return fmt.Errorf("read from %v: %w", k.c.RemoteAddr(), err)
		}
		if err := w.resp.ReadFrom(body); err != nil { // no flexible versions are used here
			return fmt.Errorf("decode answer of %v: %w", k.c.RemoteAddr(), err)
		}
		w.done(w.resp)
	}
	return nil
}

// call sends a request and waits for its answer.
func (k *conn) call(req kmsg.Request) (kmsg.Response, error) {
	answer := make(chan kmsg.Response, 1)
	if err := k.send(req, func(r kmsg.Response) { answer <- r }); err != nil {
		return nil, err
	}
	return <-answer, nil
}

func (k *conn) send(req kmsg.Request, done func(kmsg.Response)) error {
	resp := req.ResponseKind()
	resp.SetVersion(req.GetVersion())
	k.mu.Lock()
	defer k.mu.Unlock()
	k.correlation++
	k.buf = k.format.AppendRequest(k.buf[:0], req, int32(k.correlation))
	k.await <- waiter{resp, done}
	_, err := k.c.Write(k.buf)
	return err
}

// sendProduce writes a Produce request with writev: small pieces of header and the batches where they lie.
func (k *conn) sendProduce(req *kmsg.ProduceRequest, done func(kmsg.Response)) error {
	resp := req.ResponseKind()
	resp.SetVersion(produceVersion)
	topic := req.Topics[0]
	k.mu.Lock()
	defer k.mu.Unlock()
	k.correlation++
	order := binary.BigEndian
	h := order.AppendUint32(k.buf[:0], 0) // the size, later
	h = order.AppendUint16(h, uint16(req.Key()))
	h = order.AppendUint16(h, produceVersion)
	h = order.AppendUint32(h, k.correlation)
	h = order.AppendUint16(h, uint16(len(clientID)))
	h = append(h, clientID...)
	h = append(h, 0xff, 0xff) // no transactional id
	h = order.AppendUint16(h, uint16(req.Acks))
	h = order.AppendUint32(h, uint32(req.TimeoutMillis))
	h = order.AppendUint32(h, 1)
	h = order.AppendUint16(h, uint16(len(topic.Topic)))
	h = append(h, topic.Topic...)
	h = order.AppendUint32(h, uint32(len(topic.Partitions)))
	cuts := make([]int, 0, len(topic.Partitions))
	size := 0
	for _, p := range topic.Partitions {
		h = order.AppendUint32(h, uint32(p.Partition))
		h = order.AppendUint32(h, uint32(len(p.Records)))
		cuts = append(cuts, len(h))
		size += len(p.Records)
	}
	order.PutUint32(h, uint32(len(h)-4+size))
	k.buf = h
	pieces := make(net.Buffers, 0, 2*len(cuts))
	from := 0
	for i, cut := range cuts {
		pieces = append(pieces, h[from:cut], topic.Partitions[i].Records)
		from = cut
	}
	k.await <- waiter{resp, done}
	_, err := pieces.WriteTo(k.c)
	return err
}
