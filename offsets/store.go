package offsets

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/causeway-mirror/causeway/route"
)

// Store keeps checkpoints. Every method may be called from many goroutines; each returns the context's error if that has ended before the
// write began. An error that is neither a conflict nor a context's may have been stored or not: the caller loads again.
type Store interface {
	// Load reads the checkpoints of the given partitions. Those that have none are missing from the map.
	Load(ctx context.Context, parts []route.Partition) (map[route.Partition]Checkpoint, error)
	// Save moves positions forward by [Advance], all that may move in one atomic write. Those that may not are named by a *ConflictError,
	// and the others are stored all the same. A partition that was never begun is a conflict.
	Save(ctx context.Context, checkpoints []Checkpoint) error
	// Begin stores a partition's first checkpoint (old is nil), a new epoch or a reset, if what is stored is still old ([Replace]);
	// ErrConflict otherwise.
	Begin(ctx context.Context, old *Checkpoint, next Checkpoint) error
	// BeginAll is Begin for many, in few round trips. Those whose Old is not what is stored are named by a *ConflictError, and the others are
	// stored all the same.
	BeginAll(ctx context.Context, all []Beginning) error
	// Route reads what is known of the whole route; NoRoute before the first SaveRoute.
	Route(ctx context.Context) (Route, error)
	// SaveRoute stores it with the next version if Version is still the stored one ([ReplaceRoute]); ErrConflict otherwise.
	SaveRoute(ctx context.Context, r Route) error
	// SaveEvent appends an event, one JSON object. It is durable on return. The oldest go when there are more than MaxEvents.
	SaveEvent(ctx context.Context, event []byte) error
	// Close may be called again. What was saved before stays.
	Close() error
}

// Beginning is what one [Store.Begin] is told.
type Beginning struct {
	Old  *Checkpoint // nil: nothing is stored yet
	Next Checkpoint
}

// Lister is a store that can say which partitions it has checkpoints of, in order. Tools that show or export positions use it.
type Lister interface {
	Partitions(ctx context.Context) ([]route.Partition, error)
}

// EventReader is a store that gives its events back, oldest first.
type EventReader interface {
	Events(ctx context.Context) ([][]byte, error)
}

// MaxEvents is how many events a store keeps.
const MaxEvents = 1000

// ErrConflict says that what is stored is not what the caller took it for: somebody else wrote. The caller loads again and decides.
var ErrConflict = errors.New("stored state was changed by another writer")

// ErrCorrupt says that what is stored can't be read and is not merely absent. It is never taken for "nothing stored".
var ErrCorrupt = errors.New("stored state is corrupt")

// ErrMissing says that a checkpoint which was stored once is gone. The partition must not begin anew as if it had never been copied.
var ErrMissing = fmt.Errorf("%w: a checkpoint that was begun is missing", ErrCorrupt)

// ErrUnavailable says that the store can't be reached at the moment. Nothing is wrong with what it holds; a write may have been stored or
// not. The caller tries again later.
var ErrUnavailable = errors.New("the store can't be reached")

// Refused is one checkpoint that Save or BeginAll did not store.
type Refused struct {
	Checkpoint Checkpoint
	Reason     string
}

// ConflictError names the checkpoints that Save or BeginAll refused. All others of the same call were stored. It matches ErrConflict.
type ConflictError struct {
	Refused []Refused
}

// Error names every refused partition with its reason.
func (e *ConflictError) Error() string {
	parts := make([]string, len(e.Refused))
	for i, r := range e.Refused {
		parts[i] = r.Checkpoint.Partition.String() + ": " + r.Reason
	}
	return "save checkpoints: " + strings.Join(parts, "; ")
}

// Is makes errors.Is(err, ErrConflict) true.
func (*ConflictError) Is(target error) bool { return target == ErrConflict }

// StorageError says that the place where state is kept failed: full, read-only, locked by another process, corrupt. The process can't go on
// without it and stops cleanly.
type StorageError struct {
	Op   string // verb and noun, such as "save checkpoints"
	Path string // the file or folder
	Err  error
}

// Error names operation, path and cause.
func (e *StorageError) Error() string { return fmt.Sprintf("%s in %s: %v", e.Op, e.Path, e.Err) }

// Unwrap gives the cause, so that errors.Is finds syscall.ENOSPC and its kin.
func (e *StorageError) Unwrap() error { return e.Err }

// VersionError says that something was stored by a version of Causeway whose format this one does not know.
type VersionError struct{ Got, Known int }

// Error names both versions.
func (e *VersionError) Error() string {
	return fmt.Sprintf("format version is %d, this program knows %d only", e.Got, e.Known)
}

// Advance says what to store when next is saved over old (nil: nothing stored), or why it is refused. Within one producer id and epoch the
// source offset never goes backwards, an opened epoch stays opened, the time of the last acknowledgement stays the latest, and a checkpoint in
// use becomes clean by the word of its writer alone: two owners of a partition may both save, and each writes only what is true.
func Advance(old *Checkpoint, next Checkpoint) (Checkpoint, error) {
	switch {
	case old == nil:
		return Checkpoint{}, errors.New("no checkpoint was begun")
	case old.Foreign:
		return Checkpoint{}, fmt.Errorf("source offset %d was stored by another program", old.SourceOffset)
	case old.ProducerID != next.ProducerID || old.ProducerEpoch != next.ProducerEpoch:
		return Checkpoint{}, fmt.Errorf("stored producer id %d epoch %d (writer %q), saved id %d epoch %d",
			old.ProducerID, old.ProducerEpoch, old.Writer, next.ProducerID, next.ProducerEpoch)
	case next.SourceOffset < old.SourceOffset:
		return Checkpoint{}, fmt.Errorf("stored source offset %d (writer %q), saved %d", old.SourceOffset, old.Writer, next.SourceOffset)
	}
	next.Opened = next.Opened || old.Opened
	next.Clean = next.Clean && (old.Clean || old.Writer == next.Writer) // another one does not know what the writer has in flight
	if next.AckedAt.Before(old.AckedAt) {
		next.AckedAt = old.AckedAt
	}
	return next, nil
}

// Replace says whether next may be stored by Begin: if what is stored equals what the caller took it for, or is next already, which is
// the caller's own write whose answer was lost.
func Replace(now, old *Checkpoint, next Checkpoint) error {
	switch {
	case now != nil && now.Equal(next):
		return nil
	case now == nil && old == nil:
		return nil
	case now == nil || old == nil || !now.Equal(*old):
		return ErrConflict
	}
	return nil
}

// ReplaceRoute says what to store when next is saved over now. Content that is there already under the next version is the caller's own
// write whose answer was lost.
func ReplaceRoute(now, next Route) (Route, error) {
	if now.Version == next.Version+1 && now.sameContent(next) {
		return now, nil
	}
	if now.Version != next.Version {
		return Route{}, ErrConflict
	}
	next.Version++
	return next, nil
}
