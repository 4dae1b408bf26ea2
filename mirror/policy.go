package mirror

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/causeway-mirror/causeway/batch"
	"github.com/causeway-mirror/causeway/route"
)

// Policy is what becomes of a partition in one kind of trouble.
type Policy string

// The policies. Which of them answer which trouble, Policies tells.
const (
	Halt     Policy = "halt"     // it stands still until somebody has mended it, or has reset its position
	Continue Policy = "continue" // it goes on with what the source has
	Recopy   Policy = "recopy"   // it begins again with the source's first record
	Skip     Policy = "skip"     // it goes on without the record
	Raise    Policy = "raise"    // the target's limit is raised to what the record needs
	Resend   Policy = "resend"   // what is lost is copied again
	Stop     Policy = "stop"     // it stands still, and nothing is wrong with that
	// DeadLetter goes on without the record once it is on a topic for such.
	DeadLetter Policy = "dead-letter"
)

// Policies are what becomes of a partition whose source is not as it was left, or whose target refuses a record.
type Policies struct {
	// Truncated: the source deleted records before they were copied. Recopy comes to the same as Continue, since what is copied next is the
	// source's first record.
	Truncated Policy
	// Recreated: the source topic is another one of the same name. Continue begins with its first record, and so does Recopy.
	Recreated Policy
	// Diverged: the source lost records that were copied, in an unclean election. Continue goes on where its log parts from what was read.
	Diverged Policy
	// Deleted: the source topic is no more. With Stop it goes on by itself if the topic comes back, as with Halt.
	Deleted Policy
	// TargetLost: the target does not hold what it acknowledged, or is another topic of the same name. Continue leaves that as it is, Resend
	// copies again what it has lost, and of another topic all that the source has.
	TargetLost Policy
	// ForeignWriter: somebody else writes to the target partition.
	ForeignWriter Policy
	// Oversized: the target refuses a record for its size. Raise is the connector's work; the lane halts meanwhile.
	Oversized Policy
	// Refused: the target refuses a record for what it is, a timestamp or a missing key. A missing right always halts.
	Refused Policy
}

// refusal says which policy is for a target's refusal, by the protocol's name, and what to call that.
func (p Policies) refusal(code string) (Policy, string) {
	switch code {
	case codeTooLarge, codeBeyondSegment:
		return p.Oversized, "oversized"
	case "INVALID_TIMESTAMP", "INVALID_RECORD":
		return p.Refused, "refused"
	}
	return Halt, ""
}

// lost is how a partition goes on whose target has lost something; 0: it does not.
func (p Policies) lost() Cause {
	switch p.TargetLost {
	case Continue:
		return Lost
	case Resend:
		return Resent
	default:
		return 0
	}
}

// byKey are the policies by the trouble's key in route.Policies.
func (p *Policies) byKey() map[string]*Policy {
	return map[string]*Policy{
		"truncated": &p.Truncated, "recreated": &p.Recreated, "diverged": &p.Diverged, "deleted": &p.Deleted,
		"target_lost": &p.TargetLost, "foreign_writer": &p.ForeignWriter, "oversized": &p.Oversized, "refused": &p.Refused,
	}
}

// DefaultPolicies lose nothing silently.
func DefaultPolicies() Policies { return PoliciesOf(nil) }

// PoliciesOf are those that words name by trouble; where none is named the default holds. Whether a word is one, Validate tells.
func PoliciesOf(words map[string]string) Policies {
	var p Policies
	known := route.Policies()
	for key, policy := range p.byKey() {
		*policy = Policy(cmp.Or(words[key], known[key][0]))
	}
	return p
}

// Validate reports all faults at once.
func (p Policies) Validate() error {
	var faults []error
	known := route.Policies()
	all := p.byKey()
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if value := *all[key]; !slices.Contains(known[key], string(value)) {
			faults = append(faults, fmt.Errorf("on.%s: %q: must be one of %q", key, value, known[key]))
		}
	}
	return errors.Join(faults...)
}

// Cause is why a partition can't go on from its checkpoint.
type Cause int8

// The causes. The zero Cause is none.
const (
	Recreated Cause = iota + 1 // the source topic is not the one that it was started with
	Uncounted                  // what lies beyond the checkpoint can't be counted any more: it goes on from the checkpoint
	Parted                     // the source's log is another one from an offset on, where it goes on
	Again                      // the source's log is to be copied again from its first record
	LeftOut                    // the target refuses a record, and all before it is acknowledged: it goes on behind that
	Gone                       // the source deleted records before they were copied, and all before them is on the target: it goes on behind them
	Lost                       // the target does not hold what it acknowledged: it goes on from the checkpoint all the same
	Resent                     // so too: it goes on from the first record that the target lacks
)

// Anew says that a partition is to be started anew, in a new epoch, and from where.
type Anew struct {
	Cause Cause
	At    route.Offset // Parted: the first offset at which the source's log is not the one that was read; LeftOut: the record's; Gone: the first that is gone
	To    route.Offset // Gone: the source's first offset
	End   route.Offset // Gone: the target offset behind all that it has of ours; 0: as the checkpoint says
	Lost  int64        // Gone: of how many of these offsets the target has nothing
	Kind  string       // LeftOut: oversized or refused
	// Record is LeftOut's, alone in a batch, if it is to become a dead letter.
	Record batch.Batch
	// LeaderEpoch is LeftOut's: the source's right behind the record.
	LeaderEpoch int32
	Why         string
	// ProducerID and ProducerEpoch are those in which the lane has found it out. Where the checkpoint is in others, somebody has seen to it already.
	ProducerID    int64
	ProducerEpoch int16
}

// note is what an operator should know of the partition that was started anew.
func (a Anew) note() string {
	switch a.Cause {
	case LeftOut:
		return fmt.Sprintf("the record at offset %d was left out: %s", a.At, a.Kind)
	case Gone:
		return a.Why
	case Recreated, Uncounted, Parted, Again, Lost, Resent:
	}
	return ""
}

// anewLocked notes the first reason to start the partition anew.
func (l *Lane) anewLocked(a Anew) {
	if c := &l.pos.checkpoint; l.pos.anew.Cause == 0 {
		a.ProducerID, a.ProducerEpoch = c.ProducerID, c.ProducerEpoch
		l.pos.anew = a
	}
}

// parting is an error that says which is the last of the leader epochs that were read that the source has too, and where that ends at the source.
type parting interface {
	error
	Parting() (epoch int32, end route.Offset)
}

// reign is a leader epoch of the source as the lane has read it.
type reign struct {
	epoch int32
	from  route.Offset // its first offset; NoOffset if that was read before the lane began
}

// mostReigns is how many of them a lane remembers.
const mostReigns = 8

// reignLocked notes that the source's leader epoch is another one from an offset on.
func (l *Lane) reignLocked(epoch int32, from route.Offset) {
	in := &l.in
	last := reign{l.pos.begun, route.NoOffset}
	if n := len(in.reigns); n > 0 {
		last = in.reigns[n-1]
	}
	if epoch <= last.epoch {
		return
	}
	if len(in.reigns) == 0 {
		in.reigns = append(in.reigns, last)
	}
	if last.epoch < 0 { // what came before may be of this one, too
		from = route.NoOffset
	}
	if in.reigns = append(in.reigns, reign{epoch, from}); len(in.reigns) > mostReigns {
		in.reigns = in.reigns[1:]
		in.reigns[0].from = route.NoOffset
	}
}

// partsAtLocked is the first offset at which the source's log may be another one than was read; false if that can't be told. The source knows where
// the last epoch that it has too ends with it; with what was read that may have ended before.
func (l *Lane) partsAtLocked(p parting) (at route.Offset, told bool) {
	epoch, end := p.Parting()
	if epoch == l.in.epoch {
		return end, true
	}
	for _, r := range l.in.reigns {
		if r.epoch > epoch {
			return min(end, r.from), r.from >= 0
		}
	}
	return 0, false
}

// partLocked decides what becomes of a lane whose source's log is not the one that was read, which f tells.
func (l *Lane) partLocked(f *route.Fault) *route.Fault {
	switch l.plan.On.Diverged {
	case Recopy:
		l.anewLocked(Anew{Cause: Again, Why: f.Error()})
	case Continue:
		p, told := errors.AsType[parting](f.Err)
		at := route.NoOffset
		if told {
			at, told = l.partsAtLocked(p)
		}
		if !told {
			unknown := *f
			unknown.Err = fmt.Errorf("%w; no offset is known up to which both are the same, so that nothing can be gone on from: reset the position", f.Err)
			return &unknown
		}
		l.anewLocked(Anew{Cause: Parted, At: at, Why: f.Error()})
	case Halt, Skip, DeadLetter, Raise, Stop, Resend: // the latter answer another trouble
	}
	return f
}

// supersededLocked decides what becomes of a lane whose target holds records beyond the checkpoint that the source no longer has, which f tells.
func (l *Lane) supersededLocked(f *route.Fault) {
	switch l.plan.On.Diverged {
	case Recopy:
		l.anewLocked(Anew{Cause: Again, Why: f.Error()})
	case Continue: // what of it the source still has nobody can say, so it is sent again
		l.anewLocked(Anew{Cause: Uncounted, Why: f.Error()})
	case Halt, Skip, DeadLetter, Raise, Stop, Resend: // the latter answer another trouble
	}
	l.haltLocked(f)
}
