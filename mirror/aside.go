package mirror

import (
	"bytes"

	"github.com/causeway-mirror/causeway/batch"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

// A record that the target refuses may be left out by policy. What it would have counted for is then another record's sequence, so behind it a new
// epoch begins: owners that know nothing of it can store nothing behind it in the old one, since what they would have to store first is refused. It
// is found in steps, and between two of them the lane is read again from its checkpoint:
//
//	a batch was refused      its records are sent one by one
//	a record was refused     the lane is read up to it, and no further
//	all before it is acked   the partition is started anew behind it, by whoever stores its checkpoints
//
// An owner that dies in between leaves nothing behind: the next one is refused the same record (docs/adr/013).

// aside is what the target has refused. The zero aside is nothing.
type aside struct {
	first, next route.Offset // source offsets that it covers
	alone       bool         // it is the record at first
	epoch       int32        // the source's leader epoch right before next
	kind        string       // as Policies.refusal calls it
	fault       *route.Fault
	record      batch.Batch // that it is alone in, where it is still needed: not charged to any budget, since it is one at a time
}

// barsAt says that nothing is read from an offset on.
func (a *aside) barsAt(at route.Offset) bool { return a.alone && at >= a.first }

// behind says that all of it lies before an offset.
func (a *aside) behind(at route.Offset) bool {
	return a.fault != nil && (a.alone && at > a.first || !a.alone && at >= a.next)
}

// bar is an offset, or the one from which on nothing is read.
func (a *aside) bar(at route.Offset) route.Offset {
	if a.barsAt(at) {
		return a.first
	}
	return at
}

// touches says that an entry can't be forwarded as it is: it reaches beyond the bar, or its records must go one by one.
func (a *aside) touches(e *entry) bool {
	if a.alone {
		return len(e.batch) > 0 && e.batch.NextOffset() > e.next
	}
	return e.first < a.next && e.next > a.first
}

// cut says how to forward an entry that is touched.
func (a *aside) cut(e *entry, o *batch.Options) {
	if !a.alone {
		o.MaxBytes = 1 // no two records fit
		return
	}
	keep, end := o.Map, e.next
	o.Map = func(r *batch.Record) (batch.Verdict, error) {
		switch {
		case r.Offset >= end:
			return batch.Drop, nil
		case keep != nil:
			return keep(r)
		}
		return batch.Keep, nil
	}
}

// setAsideLocked notes that the target has refused entry i, if it is to be left out.
func (l *Lane) setAsideLocked(i uint64, f *route.Fault) {
	o := &l.out
	policy, kind := l.plan.On.refusal(f.Code)
	if policy != Skip && policy != DeadLetter || o.phase == failing || i < o.queue.head {
		return
	}
	e := o.queue.at(i)
	if o.phase == certifying && offsets.Ahead(e.seq, o.walkTo) > 0 {
		return // the target has it, and refuses only to be told so again
	}
	l.in.aside = aside{first: e.first, next: e.next, alone: e.alone, epoch: e.epoch, kind: kind, fault: f}
	if policy == DeadLetter && e.alone {
		l.in.aside.record = bytes.Clone(e.batch)
	}
}

// leaveOutLocked has the partition started anew behind a refused record once all before it is acknowledged.
func (l *Lane) leaveOutLocked() {
	a, o, c := &l.in.aside, &l.out, &l.pos.checkpoint
	switch {
	case a.fault == nil || o.flying.len() > 0 || l.pos.anew.Cause != 0:
	case !a.alone:
		if a.behind(c.SourceOffset) { // the target has taken all of them
			*a = aside{}
		}
	case l.in.handled < a.first:
	case o.phase == walking && offsets.Ahead(o.ready, o.walkTo) > 0: // it was taken from another owner
		*a = aside{}
		l.resetLocked()
	case c.SourceOffset == a.first && o.queue.len() == 0 && l.evenLocked():
		l.anewLocked(Anew{Cause: LeftOut, At: a.first, LeaderEpoch: a.epoch, Kind: a.kind, Record: a.record, Why: a.fault.Error()})
	}
}
