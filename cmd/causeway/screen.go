package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/causeway-mirror/causeway/internal/lines"
)

const clearLine = "\r\x1b[K"

// screen shares one terminal between log lines and a line that is redrawn in place. When the output is no terminal, the line is an ordinary
// one each time.
type screen struct {
	out      io.Writer // where it is shown
	to       io.Writer // out, or what passes on to it
	terminal bool

	mu sync.Mutex // guards line and keeps writes whole
	// line is what stands at the bottom now; log lines are written above it.
	line string
}

func newScreen(out io.Writer) *screen { return &screen{out: out, to: out, terminal: isTerminal(out)} }

// openConsole is the screen and the log of a process that mirrors: neither waits for who reads them. finish writes what is on its way.
func openConsole(stdout, stderr io.Writer) (s *screen, log io.Writer, finish func()) {
	shown, logged := lines.NewQueue(), lines.NewQueue()
	finishShown, finishLogged := shown.Serve(), logged.Serve()
	finish = func() {
		finishShown(lastWords)
		finishLogged(lastWords)
	}
	s = newScreen(stdout)
	s.to = shown.To(stdout)
	if s.terminal && isTerminal(stderr) { // the same one, very likely
		return s, &above{screen: s, w: shown.To(stderr)}, finish
	}
	return s, logged.To(stderr), finish
}

// lastWords is how long a process that ends waits for the reader of its output.
const lastWords = 2 * time.Second

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
		fmt.Fprintln(s.to, line)
		return
	}
	s.line = s.fit(line)
	fmt.Fprint(s.to, clearLine+s.line)
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
	s.aboveLocked(s.to, fmt.Appendf(nil, format+"\n", args...))
}

func (s *screen) aboveLocked(w io.Writer, text []byte) {
	if s.line != "" {
		fmt.Fprint(s.to, clearLine)
	}
	_, _ = w.Write(text) // there is nobody left to tell
	if s.line != "" {
		fmt.Fprint(s.to, s.line)
	}
}

// finish leaves the bottom line where it is and goes on below it.
func (s *screen) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.line != "" {
		fmt.Fprintln(s.to)
		s.line = ""
	}
}

// above writes to w above the bottom line.
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
