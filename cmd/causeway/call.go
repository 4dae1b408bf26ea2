package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/causeway-mirror/causeway/api"
)

const (
	// maxAnswer bounds what a wrong address can make us read.
	maxAnswer = 256 << 20
	// answerTime is how long an answer may take that waits for nothing; servers give up sooner.
	answerTime = time.Minute
	// mostAsked is how many addresses one call may reach: a standby's, the leader's, and that of the next leader if it has just changed.
	mostAsked = 3
)

// call is one request to the API.
type call struct {
	method, path string
	query        url.Values
	body         []byte        // JSON; nil for none
	wait         time.Duration // for how long the other side may wait, on top of answerTime
}

// answer is what came back.
type answer struct {
	status  int
	kind    string // media type
	body    []byte
	leadsTo *url.URL // the leader's, of an answer that names it; otherwise nil
}

// apiError is an answer of the API that says no.
type apiError struct {
	status int
	api.Failure
}

func (e *apiError) Error() string {
	return fmt.Sprintf("%s (%s, http %d)", e.Message, e.Code, e.status)
}

// do gives the body of an answer that says yes; *apiError for one that says no. A standby that names the leader is followed, with the same
// method, body and token.
func (c *client) do(ctx context.Context, what call) ([]byte, error) {
	base, token, err := c.open()
	if err != nil {
		return nil, err
	}
	text := base + what.path
	if len(what.query) > 0 {
		text += "?" + what.query.Encode()
	}
	target, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", text, err)
	}
	whom := "the mirror at --api " + base
	for range mostAsked {
		got, err := c.exchange(ctx, what, target, token)
		if err != nil {
			return nil, unreached(whom, err)
		}
		next := got.leadsTo
		switch {
		case next == nil && got.status/100 == 2:
			return got.body, nil
		case next == nil:
			return nil, got.refusal(target, token)
		case token != "" && target.Scheme == "https" && next.Scheme != "https":
			return nil, fmt.Errorf("%s leads to %s: the token is not sent there unencrypted", origin(target), origin(next))
		}
		whom = fmt.Sprintf("the leader at %s, which %s names", origin(next), origin(target))
		target = next
	}
	return nil, fmt.Errorf("no leader answers: %s was the last of %d to name another one; try again", origin(target), mostAsked)
}

// unreached words why nobody answers, and what to look at where nobody is there.
func unreached(whom string, err error) error {
	dial, ok := errors.AsType[*net.OpError](err)
	if !ok || dial.Op != "dial" {
		return fmt.Errorf("ask %s: %w", whom, err)
	}
	err = dial.Err // the address stands in whom
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		err = errno
	}
	return fmt.Errorf("cannot reach %s: %w; is the controller, or the mirror, running there? try another --api URL", whom, err)
}

// exchange sends one request and reads its answer whole.
func (c *client) exchange(ctx context.Context, what call, target *url.URL, token string) (answer, error) {
	limit := answerTime + what.wait
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r, err := http.NewRequestWithContext(timed, what.method, target.String(), bytes.NewReader(what.body))
	if err != nil {
		return answer{}, err
	}
	if what.body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	c.log.Debug("ask", "method", what.method, "url", target.String())
	resp, err := c.http.Do(r)
	var body []byte
	if err == nil {
		body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
		err = errors.Join(err, resp.Body.Close())
	}
	switch {
	case err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		return answer{}, fmt.Errorf("no answer within %s: %w", limit, unwrapURL(err))
	case err != nil:
		return answer{}, unwrapURL(err)
	}
	kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	got := answer{status: resp.StatusCode, kind: kind, body: body}
	if got.status == http.StatusTemporaryRedirect || got.status == http.StatusPermanentRedirect {
		if got.leadsTo, err = resp.Location(); err != nil || got.leadsTo.Host == "" {
			return answer{}, fmt.Errorf("its answer %d leads nowhere: Location %q", got.status, resp.Header.Get("Location"))
		}
	}
	return got, nil
}

// refusal is an answer that says no, as an error.
func (a *answer) refusal(target *url.URL, token string) error {
	fault := &apiError{status: a.status}
	if json.Unmarshal(a.body, &fault.Failure) != nil || fault.Code == "" {
		fault.Failure = api.Failure{Code: "unexpected", Message: "unexpected answer of " + target.String()}
		if line, _, _ := strings.Cut(strings.TrimSpace(string(a.body)), "\n"); a.kind == "text/plain" && line != "" {
			fault.Message += ": " + shortened(line)
		}
	}
	if a.status == http.StatusUnauthorized && token == "" {
		fault.Message += "; name the file of the token by --token-file or CAUSEWAY_TOKEN_FILE"
	}
	return fault
}

// origin is the part of an address that says which process is asked.
func origin(u *url.URL) string { return u.Scheme + "://" + u.Host }

// unwrapURL drops the method and address that net/http puts before a cause; our messages name the address already.
func unwrapURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
