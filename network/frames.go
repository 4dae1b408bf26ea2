package network

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// What Await returns between two frames.
var (
	ErrStopped = errors.New("no more frames are read")    // after Stop
	ErrQuiet   = errors.New("no frame has begun to come") // in time
)

// lengthSize is the length before each frame: big endian, not counting itself.
const lengthSize = 4

// FrameError is a frame with a length that is not allowed, or no frame at all.
type FrameError struct {
	Size, Least, Most int // bytes behind the length
}

// Error names the length and its bounds.
func (e *FrameError) Error() string {
	return fmt.Sprintf("a frame of %d bytes, from %d to %d are allowed", e.Size, e.Least, e.Most)
}

// Limits are the bounds of what a peer may do.
type Limits struct {
	Frame int           // bytes of a frame that is read, without its length
	Give  time.Duration // for the next bytes of a frame that has begun to come
	Take  time.Duration // for what is written to be taken, at most 64 KiB at a time unless it is more by itself
}

// Frames is a connection on which frames go both ways. One goroutine reads, and one writes; Stop may be called by any.
type Frames struct {
	conn   net.Conn
	limits Limits

	mu      sync.Mutex // guards stopped, and the deadline while a frame is awaited
	stopped bool
}

// NewFrames takes a connection over.
func NewFrames(conn net.Conn, limits Limits) *Frames { return &Frames{conn: conn, limits: limits} }

// Stop lets Await return at once from now on. A frame that has begun to come may still be read.
func (f *Frames) Stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopped = true
	_ = f.conn.SetReadDeadline(time.Unix(1, 0)) // a closed connection needs none
}

// Await waits for the next frame, up to a time (0: for ever), and reads its first bytes into head, the length included. It returns how many
// bytes of the frame are left to be read. Errors: io.EOF when the peer ended between two frames; ErrQuiet, after which it may be called again;
// ErrStopped; a *FrameError, and any other, after which nothing can be read any more.
func (f *Frames) Await(head []byte, limit time.Duration) (left int, err error) {
	if err = f.arm(limit); err != nil {
		return 0, err
	}
	if _, err = io.ReadFull(f.conn, head[:1]); err != nil { // no more: whoever only opens connections costs no buffers
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = ErrQuiet
		}
		if f.isStopped() {
			err = ErrStopped
		}
		return 0, err
	}
	if err = f.readFull(head[1:]); err != nil {
		return 0, fmt.Errorf("read the head of a frame: %w", err)
	}
	size := int(int32(binary.BigEndian.Uint32(head)))
	if least := len(head) - lengthSize; size < least || size > f.limits.Frame {
		return 0, &FrameError{Size: size, Least: least, Most: f.limits.Frame}
	}
	return size - (len(head) - lengthSize), nil
}

func (f *Frames) arm(limit time.Duration) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped {
		return ErrStopped
	}
	var deadline time.Time
	if limit > 0 {
		deadline = time.Now().Add(limit)
	}
	return f.conn.SetReadDeadline(deadline)
}

func (f *Frames) isStopped() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stopped
}

// Read reads some of a frame that has begun to come.
func (f *Frames) Read(b []byte) (int, error) {
	for {
		deadline := time.Now().Add(f.limits.Give)
		if err := f.conn.SetReadDeadline(deadline); err != nil {
			return 0, err
		}
		n, err := f.conn.Read(b)
		if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) && time.Now().Before(deadline) {
			continue // it was Stop's
		}
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF // within a frame
		}
		return n, err
	}
}

func (f *Frames) readFull(b []byte) error {
	_, err := io.ReadFull(f, b)
	return err
}

// Write writes all of b.
func (f *Frames) Write(b []byte) (int, error) { return f.write(b, f.limits.Take) }

// Send writes a frame, its length included, which the peer must take within a time.
func (f *Frames) Send(frame []byte, within time.Duration) error {
	if _, err := f.write(frame, within); err != nil {
		return fmt.Errorf("write a frame: %w", err)
	}
	return nil
}

func (f *Frames) write(b []byte, within time.Duration) (int, error) {
	if err := f.conn.SetWriteDeadline(time.Now().Add(within)); err != nil {
		return 0, err
	}
	return f.conn.Write(b)
}

// Close closes the connection.
func (f *Frames) Close() error { return f.conn.Close() }

// chunk is what is read and written at once of a frame that passes through, and all the memory that it needs, however long it is.
const chunk = 64 << 10

// chunks are the buffers for that. It is global because what they are lent for lasts no longer than a frame.
var chunks = sync.Pool{New: func() any { return new([chunk]byte) }} //nolint:gochecknoglobals // see above

// Pass writes to another connection what was read of a frame and what is left of it, as it comes.
func (f *Frames) Pass(to *Frames, begun []byte, left int) error {
	buffer := chunks.Get().(*[chunk]byte) //nolint:errcheck,forcetypeassert // nothing else is in the pool
	defer chunks.Put(buffer)
	n := copy(buffer[:], begun)
	if n < len(begun) {
		return fmt.Errorf("pass a frame: %d bytes of it were read, at most %d can be", len(begun), chunk)
	}
	for {
		if more := buffer[n:min(n+left, chunk)]; len(more) > 0 {
			got, err := f.Read(more)
			if err != nil {
				return fmt.Errorf("read a frame: %w", err)
			}
			n, left = n+got, left-got
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return fmt.Errorf("write a frame: %w", err)
		}
		if n = 0; left == 0 {
			return nil
		}
	}
}

// Take reads what is left of a frame behind what was read of it, and returns both. Memory grows with what comes: who only claims to send much gets
// little.
func (f *Frames) Take(begun []byte, left int) ([]byte, error) {
	size := len(begun) + left
	frame := append(make([]byte, 0, min(size, max(chunk, len(begun)))), begun...)
	for len(frame) < size {
		if len(frame) == cap(frame) {
			frame = append(make([]byte, 0, min(size, 2*cap(frame))), frame...)
		}
		was := len(frame)
		frame = frame[:cap(frame)]
		if err := f.readFull(frame[was:]); err != nil {
			return nil, fmt.Errorf("read a frame: %w", err)
		}
	}
	return frame, nil
}
