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

	roleStandalone = "standalone"
	roleWorker     = "worker"
)

// client asks a running mirror over its native API, and tells it what to do.
type client struct {
	login  credentials
	base   string
	config string // file that says where the mirror listens
	level  string
	form   string
	given  func(flag string) bool
	stderr func() io.Writer
	http   *http.Client // from the first call on
	log    hclog.Logger // from the first call on
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
	cmd.Flags().StringVar(&c.config, "config", "", "the mirror's native YAML `FILE`: its section server says what is asked and what is needed there; flags win")
	cmd.Flags().StringVar(&c.level, "log-level", d.Log.Level, "`LEVEL`: trace, debug, info, warn, error or off; debug shows the requests")
	cmd.Flags().StringVar(&c.form, "log-format", d.Log.Format, "`FORM`: text or json")
	logChoices(cmd)
	c.login.flag(cmd)
}

// get asks for path and reads the JSON answer into v.
func (c *client) get(ctx context.Context, path string, q url.Values, v any) error {
	body, err := c.do(ctx, call{method: http.MethodGet, path: path, query: q, wait: waits(q)})
	if err != nil {
		return err
	}
	return c.understand(body, path, v)
}

// send makes a change: what of JSON it brings is made of body, if that is not nil, and the answer's is read into v, if that is not nil.
func (c *client) send(ctx context.Context, method, path string, body, v any) error {
	what := call{method: method, path: path}
	var err error
	if body != nil {
		if what.body, err = json.Marshal(body); err != nil {
			return fmt.Errorf("write what %s takes: %w", path, err)
		}
	}
	answered, err := c.do(ctx, what)
	if err != nil {
		return c.whose(ctx, err)
	}
	if v == nil {
		return nil
	}
	return c.understand(answered, path, v)
}

func (*client) understand(body []byte, path string, v any) error {
	if err := json.Unmarshal(body, v); err != nil {
		return fmt.Errorf("read answer of %s: %w", path, err)
	}
	return nil
}

// waits is for how long a read asks the mirror to wait.
func waits(q url.Values) time.Duration {
	longest := time.Duration(0)
	for _, key := range []string{"wait", "timeout"} {
		if d, err := time.ParseDuration(q.Get(key)); err == nil {
			longest = max(longest, d)
		}
	}
	return longest
}

// whose explains a call that only a controller answers and that came to another process.
func (c *client) whose(ctx context.Context, err error) error {
	fault, ok := errors.AsType[*apiError](err)
	if !ok || (fault.status != http.StatusNotFound && fault.status != http.StatusMethodNotAllowed) {
		return err
	}
	var status api.Status
	if c.get(ctx, "/api/v1/status", nil, &status) != nil {
		return err
	}
	switch {
	case status.Role == roleWorker:
		return fmt.Errorf("this is a worker; ask the controller: %w", err)
	case status.Role == roleStandalone && (fault.status == http.StatusMethodNotAllowed || strings.HasPrefix(fault.Message, "nothing is at ")):
		return errors.New("this mirror is one process of its own (standalone); only the controller of a cluster can do that")
	}
	return err
}

// open gives where the API is and the token that it wants ("" for none), and makes what calls need.
func (c *client) open() (base, token string, err error) {
	base, login, err := c.mirror()
	if err != nil {
		return "", "", err
	}
	if token, err = login.token(); err != nil {
		return "", "", err
	}
	if c.http == nil {
		if c.log, err = c.logger(); err != nil {
			return "", "", err
		}
		if c.http, err = login.client(); err != nil {
			return "", "", err
		}
	}
	return base, token, nil
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

// mirror is where the API is and what is needed there. The mirror's own file knows both; flags win.
func (c *client) mirror() (base string, login credentials, err error) {
	if c.config == "" {
		base, err = c.address()
		return base, c.login, err
	}
	s, login := defaultSettings(), c.login
	if err = s.loadFile(c.config); err != nil {
		return "", login, err
	}
	if base, err = c.address(); !c.given("api") {
		base, err = s.localAPI()
	}
	if file := s.Server.Auth.TokenFile; file != "" && !c.given("token-file") {
		login.tokenFile = file
	}
	if file := s.Server.TLS.CAFile; file != "" && !c.given("api-ca") {
		login.caFile = file
	}
	return base, login, err
}

// address is where the flag says.
func (c *client) address() (string, error) {
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
