package wire

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl"

	"github.com/causeway-mirror/causeway/cluster"
)

const triesPerKind = 3 // brokers of one kind that are asked before the bootstrap addresses

var (
	errUnknownBroker = errors.New("the cluster's metadata has no such broker")
	errNobody        = errors.New("every broker is known to be silent or was tried a moment ago")
)

// Client knows the brokers of one cluster. Its methods may be called from any goroutine.
type Client struct {
	cluster   cluster.Config
	mechanism sasl.Mechanism // nil without SASL
	cfg       Config
	log       hclog.Logger
	patience  atomic.Int64 // how long any broker may take to answer before the next one is asked; a time.Duration

	mu       sync.Mutex
	closed   bool
	id       string // of the cluster, from its first Metadata; stays
	brokers  map[int32]Broker
	order    []int32 // the keys of brokers, in the cluster's order
	controls map[string]*control
	turn     int // rotates who is asked first
}

// NewClient checks the configuration. It connects to nobody: each method does when it has to.
func NewClient(cfg cluster.Config, log hclog.Logger) (*Client, error) {
	return New(cfg, DefaultConfig(), log)
}

// New is NewClient with bounds of one's own.
func New(cl cluster.Config, cfg Config, log hclog.Logger) (*Client, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("check client: %w", err)
	}
	if err := cl.Validate(); err != nil {
		return nil, fmt.Errorf("check cluster: %w", err)
	}
	mechanism, err := cl.Mechanism()
	if err != nil {
		return nil, fmt.Errorf("check cluster: %w", err)
	}
	c := &Client{cluster: cl, mechanism: mechanism, cfg: cfg, log: log, controls: make(map[string]*control)}
	c.patience.Store(int64(cfg.ProbeTimeout))
	return c, nil
}

func (c *Client) clientID() string {
	if c.cluster.ClientID == "" {
		return cluster.DefaultClientID
	}
	return c.cluster.ClientID
}

// Close ends the client's own connections, and what waits on them fails. Connections from Dial are the callers' to close. Idempotent.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	all := make([]*control, 0, len(c.controls))
	for _, ctl := range c.controls {
		all = append(all, ctl)
	}
	c.mu.Unlock()
	for _, ctl := range all {
		ctl.close()
	}
}

// Dial makes a connection of the caller's own to a broker. The caller closes it. Nothing holds a
// caller back who dials a dead broker again and again.
func (c *Client) Dial(ctx context.Context, broker int32) (*Conn, error) {
	b, err := c.find(ctx, broker)
	if err != nil {
		return nil, err
	}
	return c.dial(ctx, broker, b.Addr, c.cfg.DialTimeout)
}

// Request asks one broker over the client's control connection to it, in the newest version that both speak. Broker -1 asks any: another
// one if the first can't be reached, so the request must be one that may be sent twice.
func (c *Client) Request(ctx context.Context, broker int32, req kmsg.Request) (kmsg.Response, error) {
	if broker < 0 {
		return c.askAny(ctx, req, func(kmsg.Response) error { return nil })
	}
	b, err := c.find(ctx, broker)
	if err != nil {
		return nil, err
	}
	conn, err := c.control(ctx, b, c.cfg.DialTimeout)
	if err != nil {
		return nil, err
	}
	return conn.Call(ctx, req)
}

// find gives a broker's address, from a fresh Metadata if it is not known.
func (c *Client) find(ctx context.Context, id int32) (Broker, error) {
	for try := range 2 {
		c.mu.Lock()
		b, ok := c.brokers[id]
		c.mu.Unlock()
		if ok {
			return b, nil
		}
		if try > 0 {
			break
		}
		if _, err := c.metadata(ctx, []string{}); err != nil {
			return Broker{}, fmt.Errorf("find broker %d: %w", id, err)
		}
	}
	return Broker{}, &LinkError{Op: "find broker", Broker: id, Addr: "unknown", Err: errUnknownBroker}
}

// askAny asks brokers in turn until one answers what accept takes.
func (c *Client) askAny(ctx context.Context, req kmsg.Request, accept func(kmsg.Response) error) (kmsg.Response, error) {
	var faults []error
	for _, b := range c.candidates() {
		r, err := c.ask(ctx, b, req)
		if err == nil {
			if err = accept(r); err == nil {
				return r, nil
			}
			err = fmt.Errorf("refuse answer of %s: %w", b.Addr, err)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		faults = append(faults, err)
	}
	if len(faults) == 0 {
		return nil, &LinkError{Op: "ask any broker", Broker: -1, Addr: "all", Err: errNobody}
	}
	return nil, errors.Join(faults...)
}

// ask asks one of several who would do, so it does not wait long. How long is learnt: over a thin link the answer about many topics takes
// its time, and so do the ten round trips of a connection with TLS and SCRAM.
func (c *Client) ask(ctx context.Context, b Broker, req kmsg.Request) (kmsg.Response, error) {
	patience := time.Duration(c.patience.Load())
	conn, err := c.control(ctx, b, min(patience, c.cfg.DialTimeout))
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			c.setPatience(2 * patience)
		}
		return nil, err
	}
	short, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	started := time.Now()
	r, err := conn.Call(short, req)
	switch {
	case err == nil:
		patience = 4 * time.Since(started)
	case short.Err() != nil && ctx.Err() == nil:
		patience *= 2
		err = &LinkError{Op: "await answer to " + kmsg.NameForKey(req.Key()), Broker: b.ID, Addr: b.Addr, Err: err}
	}
	c.setPatience(patience)
	return r, err
}

func (c *Client) setPatience(d time.Duration) {
	c.patience.Store(int64(min(max(d, c.cfg.ProbeTimeout), c.cfg.RequestTimeout)))
}

// candidates lists whom to ask when any broker will do: those we are connected to, some others that we know, then the bootstrap
// addresses. Who lets us wait already is left out.
func (c *Client) candidates() []Broker {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turn++
	var live, idle []Broker
	seen := make(map[string]bool)
	sort := func(b Broker) {
		if seen[b.Addr] {
			return
		}
		seen[b.Addr] = true
		ctl := c.controls[b.Addr]
		conn := ctl.live()
		switch {
		case conn == nil:
			idle = append(idle, b)
		case conn.OldestWait() < time.Duration(c.patience.Load()):
			live = append(live, b)
		}
	}
	for i := range c.order {
		sort(c.brokers[c.order[(i+c.turn)%len(c.order)]])
	}
	out := slices.Concat(live[:min(len(live), triesPerKind)], idle[:min(len(idle), triesPerKind)])
	live, idle = nil, nil
	for i := range c.cluster.Bootstrap {
		sort(Broker{ID: -1, Addr: c.cluster.Bootstrap[(i+c.turn)%len(c.cluster.Bootstrap)]})
	}
	return slices.Concat(out, live, idle)
}

// belongs refuses an answer from another cluster than the first one: an address may have gone to a broker of a stranger, and what is
// forwarded must not end up there.
func (c *Client) belongs(id *string) error {
	if id == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.id != "" && c.id != *id {
		return &ClusterError{Want: c.id, Got: *id}
	}
	c.id = *id
	return nil
}

// learn takes over the brokers of a Metadata answer, and closes control connections to addresses that are no more.
func (c *Client) learn(order []int32, brokers map[int32]Broker) {
	wanted := make(map[string]bool, len(brokers))
	for _, b := range brokers {
		wanted[b.Addr] = true
	}
	for _, addr := range c.cluster.Bootstrap {
		wanted[addr] = true
	}
	var gone []*control
	c.mu.Lock()
	c.brokers, c.order = brokers, order
	for addr, ctl := range c.controls {
		if !wanted[addr] {
			gone = append(gone, ctl)
			delete(c.controls, addr)
		}
	}
	c.mu.Unlock()
	for _, ctl := range gone {
		ctl.close()
	}
}
