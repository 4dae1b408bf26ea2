package controller

import (
	"errors"
	"fmt"
)

var (
	// ErrNotLeader says that somebody else leads, or nobody does.
	ErrNotLeader = errors.New("not the leader")
	// ErrConflict says that another writer has changed what was to be changed.
	ErrConflict = errors.New("changed by another writer meanwhile")
	// ErrNoSource says that the controller was not told how to reach the source cluster.
	ErrNoSource = errors.New("the source cluster is not configured")
	// ErrNoPositions says that the controller was not told where positions are stored.
	ErrNoPositions = errors.New("where the workers store positions is not configured, so that lag is not known")
)

// ExistsError says that a topic is mirrored already.
type ExistsError struct{ Topic string }

func (e *ExistsError) Error() string { return fmt.Sprintf("topic %q is mirrored already", e.Topic) }

// NotFoundError says that something is not there.
type NotFoundError struct {
	What string // topic, partition, worker
	Name string
}

func (e *NotFoundError) Error() string { return fmt.Sprintf("%s %q is not known", e.What, e.Name) }

// AbsentError says that a topic does not exist in the source cluster.
type AbsentError struct{ Topic string }

func (e *AbsentError) Error() string {
	return fmt.Sprintf("topic %q does not exist in the source cluster", e.Topic)
}

// InvalidError says that a request can't be meant: nothing was changed.
type InvalidError struct {
	Key    string
	Value  any
	Reason string
}

func (e *InvalidError) Error() string { return fmt.Sprintf("%s: %v: %s", e.Key, e.Value, e.Reason) }

// AlreadyError says that a partition has the state that was asked for.
type AlreadyError struct{ State string }

func (e *AlreadyError) Error() string { return "already " + e.State }
