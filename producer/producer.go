package producer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/wire"
)

var errNoAnswer = errors.New("the answer does not name the partition")

// Deps are what a Producer needs of others.
type Deps struct {
	Client     *wire.Client // of the target cluster
	Log        hclog.Logger
	Registerer prometheus.Registerer
	Route      string
}

// Producer sends to one target cluster.
type Producer struct {
	cfg     Config
	client  *wire.Client
	log     hclog.Logger
	metrics *metrics
	kick    chan struct{}
	links   sync.WaitGroup // senders and rounds of inquiries
	turn    time.Duration  // how long one log is read before others have their turn
	builds  atomic.Uint64  // requests built, so that each has a number

	mu       sync.Mutex // guards what follows; a leaf but for link.mu
	company  map[route.Partition]*atomic.Int32
	fresh    []*link // to be run by the control loop
	byBroker map[int32]*link
	private  map[int32][]*link
	asks     []*Slot
	spare    []*request
	down     error // why the target could not be asked the last time
	downAt   time.Time
	silent   error // which broker has stopped answering
	silentAt time.Time
}

// maxPrivate is how many connections of their own a broker's late partitions share.
const maxPrivate = 16

// New builds a producer. Run must be called once.
func New(cfg Config, deps Deps) *Producer {
	p := &Producer{
		cfg: cfg, client: deps.Client, log: deps.Log, metrics: newMetrics(deps.Registerer, deps.Route), kick: make(chan struct{}, 1),
		turn:    readTurn,
		company: map[route.Partition]*atomic.Int32{}, byBroker: map[int32]*link{}, private: map[int32][]*link{},
	}
	if deps.Registerer != nil {
		deps.Registerer.MustRegister(newInFlight(p, deps.Route))
	}
	return p
}

// Slot makes a place for a lane that writes to a target partition. There may be several of one, at any time. Attach begins.
func (p *Producer) Slot(target route.Partition) *Slot {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.company[target]
	if n == nil {
		n = &atomic.Int32{}
		p.company[target] = n
	}
	n.Add(1)
	return &Slot{producer: p, target: target, company: n}
}

// Attach gives the slot its lane and begins to serve it.
func (s *Slot) Attach(l Lane) {
	s.lane = l
	s.Wake()
}

// Detach ends the service. The lane must be closed and have nothing unanswered, or its answers still come.
func (s *Slot) Detach() {
	if s.gone.Swap(true) {
		return
	}
	s.producer.mu.Lock()
	defer s.producer.mu.Unlock()
	if s.company.Add(-1) == 0 {
		delete(s.producer.company, s.target)
	}
}

// Reachable is nil, or why the target cluster could not be asked the last time, and since when that is so.
func (p *Producer) Reachable() (since time.Time, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down == nil && p.silent != nil {
		return p.silentAt, p.silent
	}
	return p.downAt, p.down
}

// silentAfter is how long a broker may leave requests unanswered before the cluster counts as out of reach.
const silentAfter = 5 * time.Second

// listen notes whether a broker has stopped answering.
func (p *Producer) listen(links []*link) {
	var silent error
	since := time.Now()
	for _, l := range links {
		if w := l.oldestWait(); w > silentAfter && time.Now().Add(-w).Before(since) {
			since = time.Now().Add(-w)
			silent = fmt.Errorf("broker %d has not answered a produce request since %s", l.broker, since.UTC().Format(time.RFC3339)) //nolint:err113 // only ever shown
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent, p.silentAt = silent, since
}

func (p *Producer) reached(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil && p.down == nil {
		p.downAt = time.Now()
	}
	p.down = err
}

// Run serves all slots until ctx ends; unanswered batches are then answered with a fault.
func (p *Producer) Run(ctx context.Context) error {
	p.control(ctx)
	p.links.Wait()
	return nil
}

// link returns the broker's common link.
func (p *Producer) link(broker int32) *link {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.byBroker[broker]
	if l == nil {
		l = p.startLocked(broker)
		p.byBroker[broker] = l
	}
	return l
}

// privateLink returns one of the broker's links for late partitions.
func (p *Producer) privateLink(broker int32, target route.Partition) *link {
	p.mu.Lock()
	defer p.mu.Unlock()
	links := p.private[broker]
	if len(links) < maxPrivate {
		l := p.startLocked(broker)
		p.private[broker] = append(links, l)
		return l
	}
	return links[int(target.Partition)%maxPrivate]
}

func (p *Producer) startLocked(broker int32) *link {
	l := newLink(p, broker)
	p.fresh = append(p.fresh, l)
	p.signal()
	return l
}

func (p *Producer) signal() {
	select {
	case p.kick <- struct{}{}:
	default:
	}
}

// ask puts a slot, whose queued flag is set, on the control loop's list.
func (p *Producer) ask(s *Slot) {
	p.mu.Lock()
	p.asks = append(p.asks, s)
	p.mu.Unlock()
	p.signal()
}

func (p *Producer) request(l *link) *request {
	p.mu.Lock()
	var r *request
	if n := len(p.spare); n > 0 {
		r = p.spare[n-1]
		p.spare = p.spare[:n-1]
	}
	p.mu.Unlock()
	if r == nil {
		r = &request{}
		r.done = r.answered
	}
	r.link = l
	return r
}

func (p *Producer) recycle(r *request) {
	clear(r.items)
	clear(r.wire.Batches)
	r.items, r.wire.Batches, r.size, r.all = r.items[:0], r.wire.Batches[:0], 0, false
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.spare) < 1024 {
		p.spare = append(p.spare, r)
	}
}

// unanswered counts the unanswered requests to each broker that there is a connection to.
func (p *Producer) unanswered() map[int32]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := map[int32]int{}
	count := func(l *link) {
		if n, connected := l.unanswered(); connected {
			out[l.broker] += n
		}
	}
	for _, l := range p.byBroker {
		count(l)
	}
	for _, links := range p.private {
		for _, l := range links {
			count(l)
		}
	}
	return out
}

// watchEvery is how often links are looked at for late answers.
const watchEvery = 100 * time.Millisecond

// control asks on behalf of lanes and watches for late answers.
func (p *Producer) control(ctx context.Context) {
	watch := time.NewTicker(watchEvery)
	defer watch.Stop()
	due := time.NewTimer(time.Hour)
	defer due.Stop()
	var waiting []*Slot
	for {
		select {
		case <-p.kick:
		case <-due.C:
		case <-watch.C:
			p.watch()
			continue
		case <-ctx.Done():
			return
		}
		p.mu.Lock()
		waiting = append(waiting, p.asks...)
		clear(p.asks)
		p.asks = p.asks[:0]
		for _, l := range p.fresh {
			p.links.Go(func() { l.run(ctx) })
		}
		p.fresh = nil
		p.mu.Unlock()
		var next time.Time
		waiting, next = p.askDue(ctx, waiting)
		if !next.IsZero() {
			due.Reset(max(time.Until(next), time.Millisecond))
		}
	}
}

// askDue begins a round for those whose time has come, and returns the others with the time of the first of them.
func (p *Producer) askDue(ctx context.Context, waiting []*Slot) (later []*Slot, next time.Time) {
	var now []inquiry
	later = waiting[:0]
	for _, s := range waiting {
		if s.gone.Load() {
			continue
		}
		q, due := s.lane.Inquiry()
		switch {
		case q.Question != 0:
			now = append(now, inquiry{slot: s, Inquiry: q})
		case !due.IsZero():
			later = append(later, s)
			if next.IsZero() || due.Before(next) {
				next = due
			}
		default:
			s.queued.Store(false)
			if s.lane.Next() != 0 {
				s.Wake() // a wake between the question and the flag would be lost
			}
		}
	}
	clear(waiting[len(later):])
	if len(now) > 0 {
		p.links.Go(func() { p.round(ctx, now) })
	}
	return later, next
}

func (p *Producer) watch() {
	p.mu.Lock()
	links := make([]*link, 0, len(p.byBroker))
	for _, l := range p.byBroker {
		links = append(links, l)
	}
	p.mu.Unlock()
	p.listen(links)
	for _, l := range links {
		slots, waited, conn := l.late()
		if len(slots) == 0 {
			continue
		}
		p.links.Go(conn.Cut) // beside: over TLS a peer that does not read may hold up the end of a connection for seconds
		p.metrics.private.Add(float64(len(slots)))
		// One line: they may be hundreds.
		p.log.Warn("target broker is slow to answer for some partitions; they go over a connection of their own until it is not, and hold up no others; "+
			"nothing is lost, look at the broker and its followers if this repeats",
			"broker", l.broker, "waited", waited.Round(time.Millisecond), "partitions", len(slots), "first", slots[0].target.String())
	}
}
