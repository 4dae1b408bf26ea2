package fetcher

import (
	"context"
	"sync"
	"time"

	"github.com/causeway-mirror/causeway/route"
)

// pair is one fetcher: the partitions of one broker that share an index, fetched by two loops.
type pair struct {
	f         *Fetchers
	broker    int32
	hot, cold *loop
	cancel    context.CancelFunc
	members   int // placed here; the router's own
}

func newPair(f *Fetchers, broker int32) *pair {
	p := &pair{f: f, broker: broker}
	p.hot, p.cold = newLoop(p, true), newLoop(p, false)
	return p
}

// start begins both loops, which end with ctx or with the pair. Run waits for them.
func (p *pair) start(ctx context.Context) {
	ctx, p.cancel = context.WithCancel(ctx)
	p.f.wg.Go(func() { p.hot.run(ctx) })
	p.f.wg.Go(func() { p.cold.run(ctx) })
}

// mailbox is how others reach a loop.
type mailbox struct {
	signal chan struct{}

	mu    sync.Mutex
	mails []mail
	spare []mail
}

type mailKind int8

const (
	mailOffer mailKind = iota + 1 // the member may be taken
	mailLeft                      // the member belongs to another now
	mailWoke                      // the member's lane wants something else: it is to be hot
)

type mail struct {
	kind mailKind
	m    *member
}

func (b *mailbox) put(kind mailKind, m *member) {
	b.mu.Lock()
	b.mails = append(b.mails, mail{kind, m})
	b.mu.Unlock()
	notify(b.signal)
}

// take gives what has come, in order. It is valid until the next take.
func (b *mailbox) take() []mail {
	b.mu.Lock()
	defer b.mu.Unlock()
	mails := b.mails
	clear(b.spare)
	b.mails, b.spare = b.spare[:0], mails
	return mails
}

func (l *loop) offered(m *member) { l.box.put(mailOffer, m) }
func (l *loop) left(m *member)    { l.box.put(mailLeft, m) }
func (l *loop) woke(m *member)    { l.pair.hot.box.put(mailWoke, m) }

// slot is what a loop knows of one partition. It outlives the member for as long as the broker's session holds the partition.
type slot struct {
	p        route.Partition
	m        *member // nil: left
	dirty    bool    // its lane is to be asked before the next fetch
	withheld bool    // its lane takes nothing now
	cooling  bool    // offered to the cold loop

	generation uint32
	want       entry // what the lane wants
	listed     bool  // the session holds it, as sent
	sent       entry

	extent   route.Extent
	lastData time.Time
	damage   route.Offset // where a corrupt batch was seen once, NoOffset if none
}

// entry is what a session holds of a partition.
type entry struct {
	at       route.Position
	maxBytes int32
	epoch    int32 // the leader's
	id       route.TopicID
}

// noExtent is an extent of which nothing is known.
//
//nolint:gochecknoglobals // a constant in all but the language
var noExtent = route.Extent{Start: route.NoOffset, LastStable: route.NoOffset, End: route.NoOffset}
