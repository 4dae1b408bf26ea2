package main

import (
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/term"
)

const clearLine = "\r\x1b[K"

// screen shares one terminal between log lines and a line that is redrawn in place. When the output is no terminal, the line is an ordinary
// one each time.
type screen struct {
	out      io.Writer
	terminal bool

	mu sync.Mutex // guards line and keeps writes whole
	// line is what stands at the bottom now; log lines are written above it.
	line string
}

func newScreen(out io.Writer) *screen { return &screen{out: out, terminal: isTerminal(out)} }

// isTerminal says whether a person is likely to see w.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// show replaces the bottom line.
func (s *screen) show(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.terminal {
		fmt.Fprintln(s.out, line)
		return
	}
	s.line = s.fit(line)
	fmt.Fprint(s.out, clearLine+s.line)
}

// fit cuts a line to the terminal's width: one that wraps could not be redrawn in place.
func (s *screen) fit(line string) string {
	f, ok := s.out.(*os.File)
	if !ok {
		return line
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if runes := []rune(line); err == nil && width > 1 && len(runes) >= width {
		return string(runes[:width-1])
	}
	return line
}

// say writes a line that stays.
func (s *screen) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.aboveLocked(s.out, fmt.Appendf(nil, format+"\n", args...))
}

func (s *screen) aboveLocked(w io.Writer, text []byte) {
	if s.line != "" {
		fmt.Fprint(s.out, clearLine)
	}
	_, _ = w.Write(text) // there is nobody left to tell
	if s.line != "" {
		fmt.Fprint(s.out, s.line)
	}
}

// finish leaves the bottom line where it is and goes on below it.
func (s *screen) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.line != "" {
		fmt.Fprintln(s.out)
		s.line = ""
	}
}

// logWriter writes to w, above the bottom line when both are terminals (and so, very likely, the same one).
func (s *screen) logWriter(w io.Writer) io.Writer {
	if !s.terminal || !isTerminal(w) {
		return w
	}
	return &above{screen: s, w: w}
}

type above struct {
	screen *screen
	w      io.Writer
}

// Write writes whole log lines.
func (a *above) Write(text []byte) (int, error) {
	a.screen.mu.Lock()
	defer a.screen.mu.Unlock()
	a.screen.aboveLocked(a.w, text)
	return len(text), nil
}
