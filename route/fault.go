package route

import "strings"

// FaultClass says what a failure means for a partition: who waits, who retries, who is told.
type FaultClass int8

// The classes, each with its consequence. One classify function per adapter maps error codes to them.
const (
	// Moved: another broker leads the partition. It waits for fresh metadata, then takes over again.
	Moved FaultClass = iota + 1
	// Ambiguous: what was sent may or may not be stored. Only a take-over tells.
	Ambiguous
	// Order: the target's broker refused a sequence or an epoch. Only a take-over tells why.
	Order
	// Busy: the broker can't now. Back off, never drop.
	Busy
	// Refused: this partition's data or rights are at fault; it halts with the reason and is tried again on a timer and on demand.
	Refused
	// SourceChanged: the source's log is not what the position was taken from: truncated, diverged, recreated, gone.
	SourceChanged
	// Corrupt: bytes do not match their checksum or their header contradicts itself; they are never forwarded.
	Corrupt
	// Unreachable: the cluster can't be reached or does not let us in; concerns the route.
	Unreachable
)

// Fault is a classified failure of one partition.
type Fault struct { //nolint:errname // a fault is what all rooms call it, and FaultError would say it twice
	Class FaultClass
	Code  string // the protocol's error name, or a word of ours where the protocol has none; stable, usable as a label
	Err   error
	// Extent is the log's extent where the failure told it (OFFSET_OUT_OF_RANGE), else all offsets are NoOffset.
	Extent Extent
}

// Error gives code and cause. A cause that names the code itself is enough.
func (f *Fault) Error() string {
	if f.Err == nil {
		return f.Code
	}
	cause := f.Err.Error()
	if cause == f.Code || strings.HasPrefix(cause, f.Code+":") {
		return cause
	}
	return f.Code + ": " + cause
}

// Unwrap gives the cause.
func (f *Fault) Unwrap() error { return f.Err }

// Extent is what a partition's log holds: records from Start up to, not including, End; LastStable is the end for those who read only
// committed transactions.
type Extent struct {
	Start, LastStable, End Offset
}

// Position is a place in a source's log: the next offset, and the leader epoch of what stands right before it, -1 when that is not known. By both
// together a leader can tell whether its log is still the one that was read up to there (KIP-320); an epoch that is only about right would be
// taken for another log.
type Position struct {
	Offset      Offset
	LeaderEpoch int32
}
