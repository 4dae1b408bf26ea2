package helix

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// What ZooKeeper may answer; compare with errors.Is.
var (
	ErrNotFound   = errors.New("znode does not exist")
	ErrExists     = errors.New("znode exists already")
	ErrBadVersion = errors.New("znode has another version")
	ErrNotEmpty   = errors.New("znode has children")
	ErrDenied     = errors.New("znode may not be accessed")
	// ErrLost: the connection was lost after the request was sent. It may or may not have been carried out; the session may go on.
	ErrLost = errors.New("connection lost, the outcome is unknown")
	// ErrExpired: ZooKeeper has forgotten the session, and with it its ephemeral nodes. Nothing is sent in it any more.
	ErrExpired = errors.New("session expired")
	// ErrClosed: the session was closed here.
	ErrClosed = errors.New("session closed")
)

// What the rules of Helix refuse; compare with errors.Is.
var (
	// ErrMalformed: a znode's bytes are no record. The error that wraps it names the fault.
	ErrMalformed = errors.New("malformed record")
	// ErrEmpty: a znode has no bytes where a record is expected.
	ErrEmpty = errors.New("empty record")
	// ErrTooLarge: a record does not fit into a znode, compressed neither.
	ErrTooLarge = errors.New("record too large")
	// ErrDeposed: another controller has been elected since the guard's epoch.
	ErrDeposed = errors.New("no longer the leader")
	// ErrRefused: the operation's precondition does not hold; nothing was changed.
	ErrRefused = errors.New("refused")
	// ErrNotSetUp: the cluster or the instance lacks nodes that every peer requires.
	ErrNotSetUp = errors.New("not set up")
)

// isUnreadable says that a znode is there and holds nothing that could be understood. It is somebody else's fault, and no reason to stop.
func isUnreadable(err error) bool {
	return errors.Is(err, ErrMalformed) || errors.Is(err, ErrEmpty) || errors.Is(err, ErrDenied)
}

// OpError is a failed request to ZooKeeper.
type OpError struct {
	Op   string // what was asked: "get", "create"…
	Path string // of a Multi, that of the operation that failed, or of the first
	Err  error  // one of the package's, or the library's own
}

func (e *OpError) Error() string { return fmt.Sprintf("%s %s: %v", e.Op, e.Path, e.Err) }

func (e *OpError) Unwrap() error { return e.Err }

// MultiError is a transaction that failed as a whole because of one operation.
type MultiError struct {
	Index int // of the operation that failed
	Err   error
}

func (e *MultiError) Error() string {
	return fmt.Sprintf("operation %d of a transaction: %v", e.Index, e.Err)
}

func (e *MultiError) Unwrap() error { return e.Err }

// MissingError says which nodes are missing. It is ErrNotSetUp.
type MissingError struct {
	What  string // "cluster mirrors", "instance worker-1"
	Paths []string
	Whole bool   // not a single one is there
	Root  string // the path below which the session lives, if not even that is there
}

func (e *MissingError) Error() string {
	if e.Root != "" {
		return fmt.Sprintf("%s is not set up: zookeeper has no path %s", e.What, e.Root)
	}
	return fmt.Sprintf("%s is not set up: missing %s", e.What, strings.Join(e.Paths, ", "))
}

// Is makes it ErrNotSetUp.
func (*MissingError) Is(target error) bool { return target == ErrNotSetUp }

// TakenError says that another process is alive under the instance's name.
type TakenError struct {
	Instance string
	Session  string        // of the other one
	Process  string        // as it says itself: <pid>@<host>; may be empty
	Waited   time.Duration // for its node to go
}

func (e *TakenError) Error() string {
	return fmt.Sprintf("instance %s is alive in another process (%s, session %s), also after %s: give each worker its own id",
		e.Instance, e.Process, e.Session, e.Waited)
}
