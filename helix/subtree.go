package helix

import (
	"context"
	"errors"
	"maps"
	"path"
	"strings"

	"github.com/hashicorp/go-hclog"
)

// Subtree are the records at a fixed depth below a node, kept up to date by watches: each is read again only when it has changed. It has no
// goroutine of its own and is for one caller at a time, who refreshes it whenever Changed has a value.
type Subtree struct {
	root    string
	depth   int
	follow  *follower
	records map[string]Versioned
}

// Versioned is a record with the version of its node, for compare-and-set.
type Versioned struct {
	Record  *Record // not to be changed
	Version int32
}

// NewSubtree gives a Subtree that knows nothing until Refresh. depth is how many names a record's path has below root: 1 or more. The root need
// not be there. The session stays the caller's.
func NewSubtree(s *Session, root string, depth int, log hclog.Logger) *Subtree {
	t := &Subtree{root: root, depth: depth, follow: newFollower(s, log), records: map[string]Versioned{}}
	t.follow.mark(point{root, true})
	return t
}

// Changed has a value when there is something to refresh.
func (t *Subtree) Changed() <-chan struct{} { return t.follow.woken }

// Refresh reads what has changed. After an error the Subtree is of no use any more.
func (t *Subtree) Refresh(ctx context.Context) error { return t.follow.refresh(ctx, t.apply) }

// Records are those that are there, by their path below the root. One that can't be read is as it was before, or not there.
func (t *Subtree) Records() map[string]Versioned { return maps.Clone(t.records) }

func (t *Subtree) apply(readings []reading) []point {
	var more []point
	for _, r := range readings {
		switch {
		case !r.folder && !r.exists:
			delete(t.records, t.below(r.path))
		case !r.folder && r.record != nil:
			t.records[t.below(r.path)] = Versioned{Record: r.record, Version: r.stat.Version}
		case r.folder:
			more = append(more, t.folder(r)...)
		}
	}
	return more
}

// folder takes news of a folder and says what is to be read of it.
func (t *Subtree) folder(r reading) []point {
	came, went := t.follow.fresh(r)
	leaves := strings.Count(strings.TrimPrefix(r.path, t.root), "/")+1 == t.depth
	more := make([]point, 0, len(came))
	for _, name := range came {
		more = append(more, point{r.path + "/" + name, !leaves})
	}
	for _, name := range went {
		if gone := r.path + "/" + name; leaves {
			delete(t.records, t.below(gone))
		} else {
			more = append(more, point{gone, true}) // it tells of its own children that they went
		}
	}
	return more
}

// below is a path without the root's.
func (t *Subtree) below(at string) string { return strings.TrimPrefix(at, t.root+"/") }

// DeleteUnchanged removes a node that still has the version, with what somebody has put below it, and its parent if that is empty then.
// ErrBadVersion if it was changed; that it is gone is no error.
func (s *Session) DeleteUnchanged(ctx context.Context, at string, version int32) error {
	err := s.Delete(ctx, at, version)
	if errors.Is(err, ErrNotEmpty) {
		err = s.deleteAround(ctx, at, version)
	}
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	if err := s.Delete(ctx, path.Dir(at), AnyVersion); err != nil && !errors.Is(err, ErrNotEmpty) && !errors.Is(err, ErrNotFound) {
		return err
	}
	return nil
}

// deleteAround removes a node that has the version and all below it, in one transaction.
func (s *Session) deleteAround(ctx context.Context, at string, version int32) error {
	all, err := s.forest(ctx, []string{at})
	if err != nil || len(all) == 0 {
		return err
	}
	ops := deletions(all)
	ops[len(ops)-1] = DeleteOp(at, version)
	return s.Multi(ctx, ops...)
}
