package lines

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// stuck is a writer whose reader stands still until it is let go.
type stuck struct {
	bytes.Buffer

	entered, free chan struct{}
}

func newStuck() *stuck { return &stuck{entered: make(chan struct{}, 1), free: make(chan struct{})} }

// Write waits.
func (s *stuck) Write(text []byte) (int, error) {
	select {
	case s.entered <- struct{}{}:
	default:
	}
	<-s.free
	return s.Buffer.Write(text)
}

func TestLinesKeepTheirOrderOverWriters(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	q := NewQueue()
	finish := q.Serve()
	a, b := q.To(&out), q.To(&out)
	text := []byte("a0\n")
	_, err := a.Write(text)
	require.NoError(t, err)
	copy(text, "XX\n") // the caller's again
	fmt.Fprintln(b, "b1")
	fmt.Fprintln(a, "a2")
	finish(time.Minute)
	require.Equal(t, "a0\nb1\na2\n", out.String())
}

func TestNobodyWaitsForAReaderThatStandsStill(t *testing.T) {
	t.Parallel()
	out := newStuck()
	q := NewQueue()
	finish := q.Serve()
	w := q.To(out)
	line := strings.Repeat("x", 1023) + "\n"
	for range 3 * Room / len(line) {
		fmt.Fprint(w, line)
	}
	<-out.entered
	began := time.Now()
	finish(time.Millisecond)
	require.Less(t, time.Since(began), 10*time.Second, "the end waits for the reader")
	close(out.free)
	finish(time.Minute)
	kept := Room / len(line)
	require.Equal(t, strings.Repeat(line, kept)+fmt.Sprintf("%d lines are left out here: what reads this output did not keep up\n", 2*kept), out.String())
}

func TestLinesGoOnWhenTheReaderDoes(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	q := NewQueue()
	finish := q.Serve()
	to := q.To(w)
	for i := range 200_000 {
		fmt.Fprintln(to, i)
	}
	text := make(chan string)
	go func() { // ends with the pipe
		var all bytes.Buffer
		_, _ = all.ReadFrom(r)
		text <- all.String()
	}()
	require.Eventually(t, func() bool { q.mu.Lock(); defer q.mu.Unlock(); return q.bytes == 0 }, time.Minute, time.Millisecond)
	fmt.Fprintln(to, "again")
	finish(time.Minute)
	require.NoError(t, w.Close())
	all := <-text
	require.Contains(t, all, "lines are left out here")
	require.True(t, strings.HasSuffix(all, "\nagain\n"))
}
