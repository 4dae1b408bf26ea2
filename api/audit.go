package api

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/hashicorp/go-hclog"
)

// Bounds of what is logged of a write.
const (
	mostLoggedPath = 1000        // bytes
	mostLoggedBody = 256         // bytes; what asks for something fits, of a backup its beginning is enough
	refusalsEvery  = time.Second // between two lines of writes that were refused for lack of the token
)

// audit logs each write: who asked for what, and how it ended. Whoever tries without the token gets a line a second at most, so that nobody can fill
// the disk.
type audit struct {
	log hclog.Logger

	mu     sync.Mutex
	told   time.Time // when the last refusal was logged; guarded by mu
	untold int       // refusals since; guarded by mu
}

// watch returns what is to be called with the answer's status once r is answered. It lets r's body be read through.
func (a *audit) watch(r *http.Request) (answered func(status int)) {
	if !changes(r.Method) {
		return func(int) {}
	}
	body := &beginning{Reader: r.Body}
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = struct {
			io.Reader
			io.Closer
		}{body, r.Body}
	}
	uri := r.URL.RequestURI()
	return func(status int) {
		untold, ok := a.takes(status)
		if !ok {
			return
		}
		args := []any{"method", r.Method, "uri", uri[:min(len(uri), mostLoggedPath)], "status", status, "client", r.RemoteAddr}
		if by := r.Header.Get("X-Forwarded-For"); by != "" { // a standby passes on what it was asked; anybody may write it
			args = append(args, "for", printable(by[:min(len(by), mostLoggedPath)]))
		}
		if len(body.read) > 0 {
			args = append(args, "body", printable(string(body.read)))
		}
		if untold > 0 {
			args = append(args, "refused_before", untold)
		}
		a.log.Info("a write was asked for", args...)
	}
}

// printable keeps what others wrote to one line.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
}

// takes says whether a write that was answered so is logged, and how many refusals were not since the last that was.
func (a *audit) takes(status int) (untold int, ok bool) {
	if status != http.StatusUnauthorized && status != http.StatusForbidden {
		return 0, true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if now := time.Now(); now.Sub(a.told) >= refusalsEvery {
		untold, a.untold, a.told = a.untold, 0, now
		return untold, true
	}
	a.untold++
	return 0, false
}

// beginning keeps the first bytes of what is read through it.
type beginning struct {
	io.Reader

	read []byte
}

// Read reads on.
func (b *beginning) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.read = append(b.read, p[:min(n, mostLoggedBody-len(b.read))]...)
	return n, err
}
