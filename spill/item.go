package spill

import (
	"errors"
	"fmt"

	"github.com/causeway-mirror/causeway/route"
)

// Item is bytes that stand for a range of positions. The ranges of a queue's items adjoin: who knows of positions that hold nothing gives them to
// the item behind.
type Item struct {
	First route.Offset
	Next  route.Offset // position after it; greater than First
	Data  []byte
	Hold  Holder // what Data lies in; nil if that needs no care
}

// Holder counts references to memory, as internal/slab does.
type Holder interface {
	Retain(n int)
	Release()
}

func (i Item) retain() {
	if i.Hold != nil {
		i.Hold.Retain(1)
	}
}

func (i Item) release() {
	if i.Hold != nil {
		i.Hold.Release()
	}
}

var (
	// ErrFull says that there is no room now, in memory or on disk. Nothing was stored; the same may be tried again.
	ErrFull = errors.New("no room")
	// ErrTooLarge says that a transaction fits neither memory, were that empty, nor disk.
	ErrTooLarge = errors.New("larger than the queue")
	// ErrEmpty says that there is nothing to take.
	ErrEmpty = errors.New("nothing to take")
	// ErrBusy says that a take is open already.
	ErrBusy = errors.New("another take is open")
	// ErrEnded says that a transaction was committed or rolled back before.
	ErrEnded = errors.New("the transaction has ended")
	// ErrClosed says that the queue was closed.
	ErrClosed = errors.New("the queue is closed")
	// ErrNotAdjoining says that an item doesn't begin where the one before it ends.
	ErrNotAdjoining = errors.New("positions do not adjoin")
)

// Corruption is a range of positions whose items are damaged on disk. What lies behind it can be taken.
type Corruption struct { //nolint:errname // what it is, as everywhere here
	Path        string // of the segment
	Bytes       int64  // where in it the damage begins
	First, Next route.Offset
	Reason      string

	items int64 // how many of those that are counted are lost
}

// Error names file, range and reason.
func (c *Corruption) Error() string {
	return fmt.Sprintf("%s: positions %d to %d are damaged at byte %d: %s", c.Path, c.First, c.Next-1, c.Bytes, c.Reason)
}

// Kind is what a notice is about.
type Kind string

// The kinds.
const (
	Started  Kind = "started"   // the queue writes to disk
	Drained  Kind = "drained"   // everything that it wrote was taken and committed
	SetAside Kind = "set_aside" // what lay there does not fit the position, or can't be read
	Corrupt  Kind = "corrupt"   // positions are damaged
)

// Notice is something that an operator must know.
type Notice struct {
	Kind        Kind
	Partition   route.Partition
	First, Next route.Offset // the positions concerned, Next excluded; route.NoOffset where not known
	Path        string       // of what is damaged or was set aside
	Reason      string
}
