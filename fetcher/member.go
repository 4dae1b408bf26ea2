package fetcher

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/causeway-mirror/causeway/batch"
	"github.com/causeway-mirror/causeway/internal/slab"
	"github.com/causeway-mirror/causeway/route"
)

// member is one partition from Add to Remove. At any time at most one loop owns it, which alone fetches it; while there is none, the router
// looks for its place or it is parked.
//
// A member changes hands without a gap: the one who wants it to move names the loop that may have it (offer), and the owner goes on until
// that loop takes it, right before a request of its own.
type member struct {
	p    route.Partition
	lane Lane

	owner    atomic.Pointer[loop]  // changed only under call
	place    atomic.Pointer[place] // where the router wants it; changed only under call
	refusals atomic.Int32          // answers in a row that sent it back to the router
	trouble  atomic.Pointer[Trouble]

	call    sync.Mutex // held while the lane is called, so that Remove can wait for it
	removed bool
	parked  bool           // the lane was told of a fault: nothing happens before Wake
	next    *loop          // who may take it over
	unsaid  route.Position // of whose epoch the leader knows nothing: it is fetched without
	proof   proof

	routing routing // the router's own
}

// place is what metadata says of a partition.
type place struct {
	pair   *pair
	leader int32
	epoch  int32 // -1 when not known
	id     route.TopicID
}

// Trouble says why a partition is not fetched at the moment although its lane was not told of a fault.
type Trouble struct {
	Code  string    // the protocol's error name
	Since time.Time // of the first such answer in a row
}

// offer names the loop that may take the member over, unless from has lost it or the router has a place elsewhere in mind.
func (m *member) offer(from, to *loop) bool {
	m.call.Lock()
	if m.removed || m.owner.Load() != from || m.place.Load().pair != from.pair || m.next == to {
		m.call.Unlock()
		return false
	}
	m.next = to
	m.call.Unlock()
	to.offered(m)
	return true
}

// keep takes an offer back.
func (m *member) keep(from, to *loop) {
	m.call.Lock()
	defer m.call.Unlock()
	if m.owner.Load() == from && m.next == to {
		m.next = nil
	}
}

// take makes l the owner if the member was offered to it.
func (m *member) take(l *loop) bool {
	m.call.Lock()
	if m.removed || m.next != l {
		m.call.Unlock()
		return false
	}
	old := m.owner.Swap(l)
	m.next = nil
	m.call.Unlock()
	if old != nil && old != l {
		old.left(m)
	}
	return true
}

// steal makes l, a hot loop, the owner of a member that was woken: it may be in the cold loop of the same pair. If it has moved on, the
// loop that has it is told.
func (m *member) steal(l *loop) bool {
	m.call.Lock()
	owner := m.owner.Load()
	mine := owner == l.pair.cold && m.place.Load().pair == l.pair
	if mine {
		m.owner.Store(l)
		m.next = nil
	}
	m.call.Unlock()
	switch {
	case mine:
		owner.left(m)
	case owner != nil && owner.pair != l.pair:
		owner.woke(m)
	case owner == nil:
		l.f.router.post(ask{kind: askWoken, m: m})
	}
	return mine
}

// release ends l's ownership without a successor. It is false if l has lost it already.
func (m *member) release(l *loop) bool {
	m.call.Lock()
	defer m.call.Unlock()
	return m.releaseLocked(l)
}

func (m *member) releaseLocked(l *loop) bool {
	if m.removed || m.owner.Load() != l {
		return false
	}
	m.owner.Store(nil)
	m.next = nil
	return true
}

// pull takes the member away from whoever owns it.
func (m *member) pull() {
	m.call.Lock()
	old := m.owner.Swap(nil)
	m.next = nil
	m.call.Unlock()
	if old != nil {
		old.left(m)
	}
}

// remove ends the member. When it returns the lane is not being called and never will be.
func (m *member) remove() {
	m.call.Lock()
	m.removed = true
	old := m.owner.Swap(nil)
	m.next = nil
	m.call.Unlock()
	if old != nil {
		old.left(m)
	}
}

// wish is what a lane wants.
type wish struct {
	at         route.Position
	generation uint32
	maxBytes   int32
}

// want asks the lane, if l owns it.
func (m *member) want(l *loop) (w wish, ok bool) {
	m.call.Lock()
	defer m.call.Unlock()
	if m.removed || m.owner.Load() != l {
		return wish{}, false
	}
	w.at, w.generation, w.maxBytes = m.lane.Want()
	if w.at.Offset <= 0 || w.at == m.unsaid {
		w.at.LeaderEpoch = -1
	}
	return w, true
}

// piece is what came of one partition in one answer.
type piece struct {
	generation uint32
	slab       *slab.Slab
	batches    []batch.Batch
	next       route.Position
	extent     route.Extent
}

// append hands over what l fetched, if l still owns the member.
func (m *member) append(l *loop, p piece) bool {
	m.call.Lock()
	defer m.call.Unlock()
	if m.removed || m.owner.Load() != l {
		return false
	}
	if len(p.batches) == 0 {
		p.slab, p.batches = nil, nil
	}
	m.lane.Append(p.generation, p.slab, p.batches, p.next, p.extent)
	return true
}

// extent reports new ends of the log, if l still owns the member.
func (m *member) extent(l *loop, x route.Extent) {
	m.call.Lock()
	defer m.call.Unlock()
	if !m.removed && m.owner.Load() == l {
		m.lane.Extent(x)
	}
}

// unsay has a position fetched without its epoch, since the leader can't tell anything by it.
func (m *member) unsay(at route.Position) {
	m.call.Lock()
	defer m.call.Unlock()
	m.unsaid = at
}

// outcome is what became of telling a lane of a fault.
type outcome int8

const (
	lost     outcome = iota + 1 // somebody else owns the member now
	outdated                    // the lane was rewound in the meantime; the fault was of its old position
	told
)

// fail parks the member and tells the lane, if l owns it. l is nil for one that was parked while the fault was looked into. The member is
// parked before the lane hears of it, since the lane may call Wake at once.
func (m *member) fail(l *loop, generation uint32, f *route.Fault) outcome {
	m.call.Lock()
	defer m.call.Unlock()
	if m.removed || m.owner.Load() != l || l == nil && !m.parked {
		return lost
	}
	_, current, _ := m.lane.Want()
	if generation != current {
		return outdated
	}
	m.failLocked(current, f)
	return told
}

// failUnowned is fail for the router, of a fault that does not depend on the position.
func (m *member) failUnowned(f *route.Fault) bool {
	m.call.Lock()
	defer m.call.Unlock()
	if m.removed || m.parked || m.owner.Load() != nil {
		return false
	}
	_, current, _ := m.lane.Want()
	m.failLocked(current, f)
	return true
}

func (m *member) failLocked(generation uint32, f *route.Fault) {
	m.owner.Store(nil)
	m.next = nil
	m.parked = true
	m.trouble.Store(nil)
	m.lane.Fail(generation, f)
}

// park takes the member from l until Wake or a retry of the router's.
func (m *member) park(l *loop) bool {
	m.call.Lock()
	defer m.call.Unlock()
	if !m.releaseLocked(l) {
		return false
	}
	m.parked = true
	return true
}

func (m *member) isParked() bool {
	m.call.Lock()
	defer m.call.Unlock()
	return m.parked
}

// move tells where the member belongs. Whoever fetches it elsewhere goes on until the new place takes it over.
func (m *member) move(to *place) bool {
	m.call.Lock()
	if m.removed || m.parked {
		m.call.Unlock()
		return false
	}
	old, owner := m.place.Load(), m.owner.Load()
	m.place.Store(to)
	offer := owner == nil || owner.pair != to.pair
	if offer {
		m.next = to.pair.hot
	} else if m.next != nil && m.next.pair != to.pair {
		m.next = nil
	}
	m.call.Unlock()
	switch {
	case offer:
		to.pair.hot.offered(m)
	case *old != *to:
		owner.woke(m)
	}
	return true
}

// unpark is true if the member was parked.
func (m *member) unpark() bool {
	m.call.Lock()
	defer m.call.Unlock()
	was := m.parked && !m.removed
	m.parked = false
	return was
}

// refused notes an answer that sends the member back to the router.
func (m *member) refused(code string) {
	m.refusals.Add(1)
	since := time.Now()
	if t := m.trouble.Load(); t != nil {
		since = t.Since
	}
	m.trouble.Store(&Trouble{Code: code, Since: since})
}

// served notes that the partition is fetched.
func (m *member) served() {
	if m.refusals.Load() != 0 {
		m.refusals.Store(0)
	}
	if m.trouble.Load() != nil {
		m.trouble.Store(nil)
	}
}
