package network

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// framed is a connection of which the server's end takes frames, and the client's is as it is.
func framed(t *testing.T, limits Limits) (client net.Conn, server *Frames) {
	t.Helper()
	d := open(t, Quotas{PerAddress: 10, Total: 10})
	client, conn := d.enter("127.0.0.1")
	return client, NewFrames(conn, limits)
}

func frame(body []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

func send(t *testing.T, c net.Conn, b []byte) {
	t.Helper()
	require.NoError(t, c.SetDeadline(time.Now().Add(limit)))
	_, err := c.Write(b)
	require.NoError(t, err)
}

func TestFramesPassAsTheyCome(t *testing.T) {
	t.Parallel()
	limits := Limits{Frame: 1 << 20, Give: limit, Take: limit}
	from, in := framed(t, limits)
	to, out := framed(t, limits)
	for _, size := range []int{4, 5, chunk - 4, chunk, chunk + 1, 1 << 20} {
		want := frame(bytes.Repeat([]byte{byte(size), 7}, size/2))
		done := make(chan error, 1)
		go func() {
			var head [8]byte
			left, err := in.Await(head[:], limit)
			if err == nil {
				err = in.Pass(out, head[:], left)
			}
			done <- err
		}()
		go func() { _, _ = from.Write(want) }() // what comes is judged
		got := make([]byte, len(want))
		require.NoError(t, to.SetDeadline(time.Now().Add(limit)))
		_, err := io.ReadFull(to, got)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.NoError(t, <-done)
	}
	send(t, from, frame(bytes.Repeat([]byte{1}, 3*chunk)))
	var head [8]byte
	left, err := in.Await(head[:], limit)
	require.NoError(t, err)
	whole, err := in.Take(head[:], left)
	require.NoError(t, err)
	require.Equal(t, frame(bytes.Repeat([]byte{1}, 3*chunk)), whole)
	require.NoError(t, from.Close())
	_, err = in.Await(head[:], limit)
	require.ErrorIs(t, err, io.EOF)
}

func TestWhatIsNoFrameIsRefused(t *testing.T) {
	t.Parallel()
	for name, sent := range map[string][]byte{
		"too long": {0, 0, 4, 1, 0, 0, 0, 0}, "too short": {0, 0, 0, 3, 0, 0, 0, 0}, "negative": {0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0},
		"text": []byte("GET / HTTP/1.1"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, f := framed(t, Limits{Frame: 1024, Give: limit, Take: limit})
			send(t, client, sent)
			var head [8]byte
			_, err := f.Await(head[:], limit)
			var refused *FrameError
			require.ErrorAs(t, err, &refused)
			require.Equal(t, 1024, refused.Most)
		})
	}
}

// TestWhoSendsByteByByteIsGivenUp: each byte comes in time, until one does not.
func TestWhoSendsByteByByteIsGivenUp(t *testing.T) {
	t.Parallel()
	for name, begun := range map[string][]byte{
		"the length": {0, 0}, "the head": {0, 0, 1, 0, 9}, "the body": append([]byte{0, 0, 1, 0}, make([]byte, 100)...),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, f := framed(t, Limits{Frame: 1024, Give: 50 * time.Millisecond, Take: limit})
			send(t, client, begun)
			var head [8]byte
			left, err := f.Await(head[:], limit)
			if err == nil {
				_, err = f.Take(head[:], left)
			}
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		})
	}
	client, f := framed(t, Limits{Frame: 1024, Give: limit, Take: limit})
	send(t, client, []byte{0, 0, 1, 0, 9})
	require.NoError(t, client.Close())
	var head [8]byte
	_, err := f.Await(head[:], limit)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

func TestWhoSendsNothingIsIdle(t *testing.T) {
	t.Parallel()
	client, f := framed(t, Limits{Frame: 1024, Give: limit, Take: limit})
	var head [8]byte
	_, err := f.Await(head[:], time.Millisecond)
	require.ErrorIs(t, err, ErrQuiet)
	send(t, client, frame([]byte("late")))
	left, err := f.Await(head[:], limit)
	require.NoError(t, err)
	require.Zero(t, left)
}

func TestWhoTakesNothingIsGivenUp(t *testing.T) {
	t.Parallel()
	_, f := framed(t, Limits{Frame: 1024, Give: limit, Take: 50 * time.Millisecond})
	var err error
	for range 10000 { // as much as the kernel holds, and more
		if _, err = f.Write(make([]byte, chunk)); err != nil {
			break
		}
	}
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
}

// TestWhoClaimsToSendMuchGetsLittle: 2 GiB are announced.
func TestWhoClaimsToSendMuchGetsLittle(t *testing.T) {
	client, f := framed(t, Limits{Frame: 1<<31 - 1, Give: 50 * time.Millisecond, Take: limit})
	send(t, client, append([]byte{0x7f, 0xff, 0xff, 0xff}, make([]byte, 1000)...))
	var head [8]byte
	left, err := f.Await(head[:], limit)
	require.NoError(t, err)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = f.Take(head[:], left)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4<<20))
}

func TestAFrameThatHasBegunIsReadAfterStop(t *testing.T) {
	t.Parallel()
	client, f := framed(t, Limits{Frame: 1024, Give: limit, Take: limit})
	send(t, client, frame(make([]byte, 100))[:50])
	var head [8]byte
	left, err := f.Await(head[:], limit)
	require.NoError(t, err)
	got := make(chan error, 1)
	go func() {
		_, err := f.Take(head[:], left)
		got <- err
	}()
	f.Stop()
	send(t, client, make([]byte, 54))
	require.NoError(t, <-got)
	_, err = f.Await(head[:], limit)
	require.ErrorIs(t, err, ErrStopped)
}

func TestStopWakesWhoAwaits(t *testing.T) {
	t.Parallel()
	_, f := framed(t, Limits{Frame: 1024, Give: limit, Take: limit})
	got := make(chan error, 1)
	go func() {
		var head [8]byte
		_, err := f.Await(head[:], 0)
		got <- err
	}()
	f.Stop()
	require.ErrorIs(t, <-got, ErrStopped)
}
