package graphite

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
)

// Sample is one figure.
type Sample struct {
	Name  string // without the prefix
	Value float64
}

// Config says where figures go, and how often.
type Config struct {
	Address  string // HOST:PORT
	Prefix   string // before every name, with a dot between
	Interval time.Duration
}

// Reporter sends figures.
type Reporter struct {
	cfg  Config
	log  hclog.Logger
	read func() []Sample
	now  func() time.Time
}

// New makes a Reporter; read gives the figures as they are now.
func New(cfg Config, log hclog.Logger, read func() []Sample) *Reporter {
	return &Reporter{cfg: cfg, log: log, read: read, now: time.Now}
}

// sendTimeout bounds one report.
const sendTimeout = 10 * time.Second

// Run reports until ctx ends.
func (r *Reporter) Run(ctx context.Context) {
	tick := time.NewTicker(r.cfg.Interval)
	defer tick.Stop()
	failing := false
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		err := r.send(ctx)
		if err != nil && !failing && ctx.Err() == nil { // the same is not logged at each interval
			r.log.Warn("figures can't be sent to graphite", "address", r.cfg.Address, "err", err)
		}
		failing = err != nil
	}
}

// send makes one report over a connection of its own.
func (r *Reporter) send(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", r.cfg.Address)
	if err != nil {
		return err
	}
	deadline, _ := ctx.Deadline()
	if err = conn.SetDeadline(deadline); err == nil {
		_, err = conn.Write([]byte(r.text()))
	}
	if closing := conn.Close(); err == nil {
		err = closing
	}
	return err
}

// text is one line a figure: name, value, seconds since 1970.
func (r *Reporter) text() string {
	at := strconv.FormatInt(r.now().Unix(), 10)
	var b strings.Builder
	for _, s := range r.read() {
		fmt.Fprintf(&b, "%s.%s %s %s\n", r.cfg.Prefix, clean(s.Name), strconv.FormatFloat(s.Value, 'f', -1, 64), at)
	}
	return b.String()
}

// clean replaces what would end a name.
func clean(name string) string {
	return strings.Map(func(c rune) rune {
		if c <= ' ' {
			return '-'
		}
		return c
	}, name)
}
