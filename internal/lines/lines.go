package lines

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"time"
)

// Room is how many bytes wait at most in a Queue: some thousand lines.
const Room = 1 << 20

// Queue holds lines on their way to one or more writers, in one order for all of them. Those of a stuck writer hold up those of the others, so
// writers that may be stuck one without the other need a Queue each.
type Queue struct {
	mu     sync.Mutex
	more   *sync.Cond // a line was queued, or the queue was closed
	lines  []line     // guarded by mu
	bytes  int        // of them; guarded by mu
	closed bool       // guarded by mu
}

// line is what was written at once, or, without text, the place where some lines were left out.
type line struct {
	to   io.Writer
	text []byte
	left int // lines left out here
}

// NewQueue returns a queue that takes lines at once; they are written while Serve runs.
func NewQueue() *Queue {
	q := &Queue{}
	q.more = sync.NewCond(&q.mu)
	return q
}

// To returns a writer whose lines go to w. It never waits and never fails, and may be used from any goroutine. Each Write should be whole lines.
func (q *Queue) To(w io.Writer) io.Writer { return &entrance{q, w} }

type entrance struct {
	queue *Queue
	to    io.Writer
}

// Write queues a copy of text.
func (e *entrance) Write(text []byte) (int, error) {
	q := e.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := len(q.lines); q.bytes+len(text) <= Room {
		q.lines = append(q.lines, line{to: e.to, text: bytes.Clone(text)})
		q.bytes += len(text)
	} else if n > 0 && q.lines[n-1].left > 0 {
		q.lines[n-1].left++
	} else {
		q.lines = append(q.lines, line{to: e.to, left: 1})
	}
	q.more.Signal()
	return len(text), nil
}

// Serve begins to write. The caller ends it by finish, which writes what is queued and gives up after a time of patience: lines that are written
// later are lost.
func (q *Queue) Serve() (finish func(patience time.Duration)) {
	done := make(chan struct{})
	go func() { // owned by the caller, who calls finish
		defer close(done)
		q.serve()
	}()
	return func(patience time.Duration) {
		q.mu.Lock()
		q.closed = true
		q.more.Signal()
		q.mu.Unlock()
		timer := time.NewTimer(patience)
		defer timer.Stop()
		select {
		case <-done:
		case <-timer.C:
		}
	}
}

func (q *Queue) serve() {
	for {
		l, ok := q.next()
		if !ok {
			return
		}
		text := l.text
		if l.left > 0 {
			text = fmt.Appendf(nil, "%d lines are left out here: what reads this output did not keep up\n", l.left)
		}
		_, _ = l.to.Write(text) // there is nobody left to tell
		q.mu.Lock()
		q.bytes -= len(l.text)
		q.mu.Unlock()
	}
}

// next takes the oldest line, and waits for one while the queue is open. What was taken has its room until it is written.
func (q *Queue) next() (l line, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.lines) == 0 && !q.closed {
		q.more.Wait()
	}
	if len(q.lines) == 0 {
		return line{}, false
	}
	l = q.lines[0]
	q.lines[0] = line{}
	if q.lines = q.lines[1:]; len(q.lines) == 0 {
		q.lines = nil
	}
	return l, true
}
