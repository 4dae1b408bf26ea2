package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/causeway-mirror/causeway/api"
)

const (
	defaultAPI = "http://127.0.0.1:8080"
	pageSize   = "1000"
	// maxAnswer bounds what a wrong address can make us read.
	maxAnswer = 256 << 20
)

// client asks a running mirror over its native API.
type client struct {
	base   string
	config string // file that says where the mirror listens
	level  string
	form   string
	given  func(flag string) bool
	stderr func() io.Writer
	http   http.Client
}

// apiError is an answer of the API that says no.
type apiError struct {
	status int
	api.Failure
}

func (e *apiError) Error() string {
	return fmt.Sprintf("%s (%s, http %d)", e.Message, e.Code, e.status)
}

func (c *client) flag(cmd *cobra.Command) {
	def := os.Getenv("CAUSEWAY_API")
	if def == "" {
		def = defaultAPI
	}
	d := defaultSettings()
	c.given, c.stderr = cmd.Flags().Changed, cmd.ErrOrStderr
	cmd.Flags().StringVar(&c.base, "api", def, "`URL` of the running mirror's API (or CAUSEWAY_API)")
	cmd.Flag("api").DefValue = defaultAPI // help is the same whatever the environment says
	cmd.Flags().StringVar(&c.config, "config", "", "the mirror's native YAML `FILE`: its server.listen is asked, unless --api is given")
	cmd.Flags().StringVar(&c.level, "log-level", d.Log.Level, "`LEVEL`: trace, debug, info, warn, error or off; debug shows the requests")
	cmd.Flags().StringVar(&c.form, "log-format", d.Log.Format, "`FORM`: text or json")
	logChoices(cmd)
}

// get asks for path and reads the JSON answer into v.
func (c *client) get(ctx context.Context, path string, q url.Values, v any) error {
	base, err := c.address()
	if err != nil {
		return err
	}
	target := base + path
	if len(q) > 0 {
		target += "?" + q.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, target, http.NoBody)
	if err != nil {
		return fmt.Errorf("ask %s: %w", target, err)
	}
	log, err := c.logger()
	if err != nil {
		return err
	}
	log.Debug("ask", "url", target)
	resp, err := c.http.Do(r)
	if err != nil {
		return fmt.Errorf("ask the mirror at --api %s: %w", base, unwrapURL(err))
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("read answer of %s: %w", target, err)
	}
	if resp.StatusCode != http.StatusOK {
		fault := &apiError{status: resp.StatusCode}
		if json.Unmarshal(body, &fault.Failure) != nil || fault.Code == "" {
			fault.Failure = api.Failure{Code: "unexpected", Message: "unexpected answer of " + target}
		}
		return fault
	}
	if err = json.Unmarshal(body, v); err != nil {
		return fmt.Errorf("read answer of %s: %w", target, err)
	}
	return nil
}

// logger writes to stderr; answers go to stdout.
func (c *client) logger() (hclog.Logger, error) {
	s := defaultSettings()
	s.Log.Level, s.Log.Format = c.level, c.form
	if err := s.ValidateLog(); err != nil {
		return nil, err
	}
	return newLogger(&s, c.stderr()), nil
}

func (c *client) address() (string, error) {
	if c.config != "" && !c.given("api") {
		s := defaultSettings()
		if err := s.loadFile(c.config); err != nil {
			return "", err
		}
		return s.localAPI()
	}
	base := strings.TrimRight(c.base, "/")
	if !strings.Contains(base, "://") {
		base = "http://" + base
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return "", fmt.Errorf("--api %q: must be an address such as %s", c.base, defaultAPI)
	}
	return base, nil
}

// getAll reads every page of a list.
func getAll[T any](ctx context.Context, c *client, path string, q url.Values) ([]T, error) {
	if q == nil {
		q = url.Values{}
	}
	q.Set("limit", pageSize)
	all := []T{}
	for {
		var page api.List[T]
		if err := c.get(ctx, path, q, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if page.Next == "" {
			return all, nil
		}
		q.Set("after", page.Next)
	}
}

// unwrapURL drops the method and address that net/http puts before a cause; our messages name the address already.
func unwrapURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// pause waits for d or until ctx ends, and says whether the time passed.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
