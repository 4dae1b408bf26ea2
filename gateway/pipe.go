package gateway

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/causeway-mirror/causeway/network"
)

var (
	errIdle  = errors.New("it was idle for too long")
	errMoved = errors.New("the broker has moved")
)

// pipe is a client's connection and the one to its broker. One goroutine takes requests, another one answers.
type pipe struct {
	gateway *Gateway
	way     way
	log     hclog.Logger
	cancel  context.CancelFunc
	client  *network.Frames
	window  *network.Window[asked]
	begun   []byte // of a Produce request; made for the first one

	mu     sync.Mutex // guards what follows
	broker net.Conn   // nil until it is dialed
	ended  bool
	err    error // the first one
}

// cut ends both connections, whoever waits for what.
func (p *pipe) cut() {
	p.mu.Lock()
	p.ended = true
	broker := p.broker
	p.mu.Unlock()
	p.cancel()
	p.window.End()
	_ = p.way.raw.Close() // without a TLS good-bye, which might have to wait
	if broker != nil {
		_ = broker.Close()
	}
}

// fail ends both connections because of an error.
func (p *pipe) fail(err error) {
	p.mu.Lock()
	if p.err == nil && !p.ended {
		p.err = err
	}
	p.mu.Unlock()
	p.cut()
}

// told says why a connection ended, where somebody should know.
func (p *pipe) told(err error) {
	refused, isRefused := errors.AsType[*RequestError](err)
	_, isFrame := errors.AsType[*network.FrameError](err)
	_, isChange := errors.AsType[*changeError](err)
	switch {
	case isRefused:
		p.gateway.metrics.refused.Inc()
		p.log.Warn("request refused", "err", refused)
	case isFrame:
		p.gateway.metrics.refused.Inc()
		p.log.Debug("no request", "err", err)
	case isChange:
		p.log.Error("answer not passed on", "err", err)
	case err != nil:
		p.log.Debug("connection ended", "err", err)
	}
}

// run passes requests and answers until either side ends, and returns why, nil if that was as it should be.
func (p *pipe) run(ctx context.Context) error {
	defer p.cut()
	head := make([]byte, requestHead)
	left, a, err := p.next(head)
	if err != nil {
		return err
	}
	broker, leave, err := p.dial(ctx) // not before it is seen that this is a client of Kafka
	if err != nil {
		return err
	}
	defer leave()
	var answers sync.WaitGroup
	answers.Go(func() { p.fail(p.answers(ctx, broker)) })
	for err == nil {
		if err = p.pass(broker, a, head, left); err == nil {
			left, a, err = p.next(head)
		}
	}
	if orderly(err) { // what is in flight may still be answered
		giveUp := time.AfterFunc(p.gateway.cfg.IdleTimeout, p.cut)
		p.window.AwaitEmpty()
		giveUp.Stop()
		err = nil
	}
	p.fail(err)
	answers.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// orderly says whether it was between two requests that no more came.
func orderly(err error) bool {
	return err == nil || errors.Is(err, io.EOF) || errors.Is(err, network.ErrStopped) || errors.Is(err, errIdle)
}

// next waits for a request and says what it asks.
func (p *pipe) next(head []byte) (left int, a asked, err error) {
	idle := p.gateway.cfg.IdleTimeout
	for {
		left, err = p.client.Await(head, idle)
		if !errors.Is(err, network.ErrQuiet) {
			break
		}
		if p.window.Idle() >= idle {
			return 0, a, errIdle
		}
	}
	if err == nil {
		a, err = judge(head, p.gateway.may)
	}
	return left, a, err
}

// dial connects to the broker, or to one of the bootstrap when it is not known. leave is for when the connection ended.
func (p *pipe) dial(ctx context.Context) (broker *network.Frames, leave func(), err error) {
	g := p.gateway
	tries := make([]string, 0, len(g.cfg.Upstream.Bootstrap))
	for _, i := range rand.Perm(len(g.cfg.Upstream.Bootstrap)) {
		tries = append(tries, g.cfg.Upstream.Bootstrap[i])
	}
	leave = func() {}
	if p.way.index != wholeCluster {
		tries = g.dir.enter(p, p.way.index, tries)
		leave = func() { g.dir.leave(p, p.way.index) }
	}
	for _, at := range tries {
		var conn net.Conn
		if conn, err = g.cfg.Upstream.Dial(ctx, at); err != nil {
			g.metrics.unreached.Inc()
			p.log.Warn("broker not reached", "err", err)
			continue
		}
		if err = p.join(conn); err == nil && p.way.index != wholeCluster && !g.dir.reached(p, p.way.index, at) {
			err = errMoved
		}
		if err != nil {
			break
		}
		return network.NewFrames(conn, g.brokerLimits()), leave, nil
	}
	leave()
	return nil, nil, err
}

// join adds the connection to the broker, unless all has ended meanwhile.
func (p *pipe) join(conn net.Conn) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		_ = conn.Close() // unused
		return net.ErrClosed
	}
	p.broker = conn
	return nil
}

// pass passes a request on.
func (p *pipe) pass(broker *network.Frames, a asked, head []byte, left int) error {
	begun, answered := head, true
	if a.key == keyProduce {
		var err error
		if begun, answered, err = p.produce(a, head, left); err != nil {
			return err
		}
		left -= len(begun) - len(head)
	}
	if answered && !p.window.Put(a) {
		return net.ErrClosed
	}
	p.gateway.metrics.passed(a.key)
	p.gateway.metrics.in.Add(float64(len(begun) + left))
	if !a.tooNew {
		return p.client.Pass(broker, begun, left)
	}
	if _, err := io.CopyN(io.Discard, p.client, int64(left)); err != nil {
		return fmt.Errorf("read a request: %w", err)
	}
	_, err := broker.Write(a.frame())
	return err
}

// produce reads as much of a Produce request as says whether it wants an answer.
func (p *pipe) produce(a asked, head []byte, left int) (begun []byte, answered bool, err error) {
	if p.begun == nil {
		p.begun = make([]byte, requestHead+produceHead)
	}
	begun = p.begun[:requestHead+min(left, produceHead)]
	copy(begun, head)
	if _, err = io.ReadFull(p.client, begun[requestHead:]); err != nil {
		return nil, false, fmt.Errorf("read a request: %w", err)
	}
	if answered, err = a.answered(begun[requestHead-2:]); err != nil {
		return nil, false, &RequestError{a.key, a.version, err.Error()}
	}
	return begun, answered, nil
}

// changeError is an answer that could not be changed.
type changeError struct{ err error }

// Error says why.
func (e *changeError) Error() string { return e.err.Error() }

// Unwrap gives the reason.
func (e *changeError) Unwrap() error { return e.err }

// answers passes answers on until the broker ends.
func (p *pipe) answers(ctx context.Context, broker *network.Frames) error {
	var head [headSize]byte
	for {
		left, err := broker.Await(head[:], 0)
		if err != nil {
			return fmt.Errorf("await an answer: %w", err)
		}
		correlation := int32(binary.BigEndian.Uint32(head[4:]))
		a, ok := p.window.First()
		switch {
		case !ok || a.correlation != correlation:
			return &changeError{fmt.Errorf("an answer with correlation id %d, %d was asked for", correlation, a.correlation)}
		case a.changes():
			err = p.changed(ctx, broker, a, head[:], left)
		default:
			p.gateway.metrics.out.Add(float64(len(head) + left))
			err = broker.Pass(p.client, head[:], left)
		}
		if err != nil {
			return err
		}
		p.window.Pop()
	}
}

// changed reads an answer whole, and passes it on with places in place of addresses. All pipes share the memory for that, so the client must take
// it in the time of a frame.
func (p *pipe) changed(ctx context.Context, broker *network.Frames, a asked, head []byte, left int) error {
	g := p.gateway
	size := int64(len(head) + left)
	if size > g.cfg.MaxAnswers {
		return &changeError{fmt.Errorf("an answer to %s of %d bytes, at most %d are held", kmsg.NameForKey(a.key), size, g.cfg.MaxAnswers)}
	}
	if err := g.room.Acquire(ctx, size); err != nil {
		return err
	}
	defer g.room.Release(size)
	frame, err := broker.Take(head, left)
	if err != nil {
		return err
	}
	if frame, err = a.change(frame, g.dir.translate, g.may); err != nil {
		return &changeError{err}
	}
	g.metrics.out.Add(float64(len(frame)))
	return p.client.Send(frame, g.cfg.FrameTimeout)
}
