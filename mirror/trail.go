package mirror

import (
	"time"

	"github.com/causeway-mirror/causeway/offsets"
)

// Two owners may have a partition at once by intention: a hot standby, or the old and the new one of a planned move (docs/adr/016). Both read, and
// the target decides whose batches are stored. As long as the two are abreast, each batch of the one is a repeat of the other's to the target, which
// acknowledges it. The one that falls further behind than a broker remembers is refused and trails from then on: it reads, drops what the target
// has, sends nothing, and asks again and again where the target stands. When that stands still, it certifies and goes on. Beside one that is to end
// when this one has begun it does so as soon as it is level, once: when that one ends, nothing has to be noticed.

// Company is who else may have a partition at the same time by intention.
type Company int

const (
	// Alone is nobody.
	Alone Company = iota
	// FormerOwner is the one that the partition moves from, which ends when this one has begun.
	FormerOwner
	// Standby is another one, for as long as this one.
	Standby
)

const (
	// trailEvery is how often a trailing lane asks where the target stands.
	trailEvery = 10 * time.Millisecond
	// trailFor is how long the target must have stood still before a trailing lane sends; to that comes twice what the question takes, because what
	// the other owner sends is as long on its way.
	trailFor = 10 * time.Millisecond
	// followEvery is how often a trailing lane has it read what the other owner has stored, where it would begin again.
	followEvery = 5 * time.Second
)

const whyTrailing = "another worker sends; this one is level with it, and sends when it stops"

// trail is how a lane stands to another owner of its partition.
type trail struct {
	on       bool      // another owner was ahead when the target was heard last
	joined   bool      // it has begun to send beside the other one
	at       int32     // the sequence that follows the target's last record of ours, as it was heard last
	since    time.Time // when that was heard first
	level    bool      // the lane has read as far as the target was one question ago
	followed time.Time // when it was last wanted to know what is stored
}

// overtakenLocked lets the lane trail behind another owner, whose batches the target has taken first.
func (l *Lane) overtakenLocked() {
	o := &l.out
	o.trail.on, o.trail.since = true, time.Time{}
	o.notBefore = l.stream.now().Add(trailEvery)
}

// trailsLocked says that the target moves without this lane, so that it had better not send. What is stored is dropped, and the target asked again.
func (l *Lane) trailsLocked() bool {
	o, t := &l.out, &l.out.trail
	if o.holed && offsets.Ahead(o.walkTo, l.headLocked()) > 0 {
		l.resetLocked() // the target has lost some that was dropped here
	}
	if !t.on {
		return false
	}
	now := l.stream.now()
	again := trailEvery / 2 // it may stand still
	if t.since.IsZero() || t.at != o.walkTo {
		again = trailEvery
		t.level = t.level || !t.since.IsZero() && offsets.Ahead(t.at, o.ready) >= 0
		t.at, t.since = o.walkTo, now
	}
	if o.askedAt.Sub(t.since) >= trailFor+2*now.Sub(o.askedAt) {
		if o.holed && o.repeated && o.bounds >= 0 && offsets.Ahead(o.bounds, l.headLocked()) > 0 {
			l.resetLocked() // to repeat the last batch as it was sent, its beginning is needed
		}
		return false
	}
	if l.joinsLocked() {
		return false
	}
	if last, found := l.storedLocked(); found {
		l.dropLocked(last)
		o.sent = max(o.sent, o.queue.head)
	}
	o.failures, o.fault, l.pos.lastError = 0, nil, "" // it is as it shall be
	if now.Sub(t.followed) > followEvery {
		t.followed, l.pos.doubted = now, true
	}
	o.notBefore = now.Add(again)
	return true
}

// joinsLocked lets the lane send beside the other owner, once: who is overtaken waits for the other one's end.
func (l *Lane) joinsLocked() bool {
	o := &l.out
	if l.plan.Company != FormerOwner || o.trail.joined || o.repeated || offsets.Ahead(o.walkTo, o.ready) < 0 {
		return false
	}
	o.trail.joined = true
	return true
}

// headLocked is the sequence of the first record that the lane holds, or that it would hold next.
func (l *Lane) headLocked() int32 {
	if q := &l.out.queue; q.len() > 0 {
		return q.at(q.head).seq
	}
	return l.out.ready
}

// storedLocked is the last entry that the target has wholly.
func (l *Lane) storedLocked() (last uint64, found bool) {
	q := &l.out.queue
	for i := q.head; i < q.tail; i++ {
		if e := q.at(i); e.records > 0 {
			if offsets.Ahead(e.end(), l.out.walkTo) < 0 {
				break
			}
			last, found = i, true
		}
	}
	return last, found
}

// Follow lets a trailing lane begin at what another owner has stored, should it have to begin again: what is stored was acknowledged with acks=all.
// Of any other lane it changes nothing.
func (l *Lane) Follow(stored offsets.Checkpoint) {
	l.lock()
	defer l.mu.Unlock()
	o, c := &l.out, &l.pos.checkpoint
	q := &o.queue
	ahead := offsets.Ahead(c.Sequence, stored.Sequence)
	if !o.trail.on || o.phase != asking || o.flying.len() > 0 || ahead <= 0 || stored.SourceOffset <= c.SourceOffset || !continues(c, &stored) {
		return
	}
	stored.Clean = false
	*c = stored
	l.pos.committed, l.pos.shifted, l.pos.unstored = stored.SourceOffset, true, time.Time{}
	for q.len() > 0 && q.at(q.head).next <= c.SourceOffset {
		l.releaseLocked(q.at(q.head))
		q.pop()
	}
	o.sent = max(o.sent, q.head)
	if l.in.handled < c.SourceOffset || q.len() > 0 && q.at(q.head).first < c.SourceOffset {
		l.resetLocked() // it was not read yet, or the other owner has other boundaries: nothing of what is stored may be sent
	}
	o.holed = offsets.Ahead(c.Sequence, l.headLocked()) > 0
	l.lagLocked(l.stream.now())
	l.stream.deps.Moved(l.plan.Source)
	l.roomLeftLocked(l.stream.now())
}

// continues says that one checkpoint is a later one of the same copy as another.
func continues(c, later *offsets.Checkpoint) bool {
	return !later.Foreign && later.Opened && later.ProducerID == c.ProducerID && later.ProducerEpoch == c.ProducerEpoch &&
		later.SourceTopicID == c.SourceTopicID && later.TargetTopicID == c.TargetTopicID && later.Fingerprint == c.Fingerprint
}
