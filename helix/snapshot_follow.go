package helix

import (
	"context"
	"errors"
	"path"
	"slices"
	"sync"

	"github.com/hashicorp/go-hclog"
)

// point is a znode that is followed: its record, or, as a folder, the names of its children.
type point struct {
	path   string
	folder bool
}

// parent is the folder that a record stands in.
func (p point) parent() point { return point{path.Dir(p.path), true} }

// child is a record in a folder.
func (p point) child(name string) point { return point{p.path + "/" + name, false} }

// reading is what was found at a point. Of a record that can't be read there is none, but it exists.
type reading struct {
	point
	exists bool
	names  []string // of a folder's children, in order
	record *Record
	stat   Stat
}

// follower keeps something up to date with znodes by watches: a znode is read again only when it has changed. Its owner calls refresh, one
// call at a time, whenever woken says that there is something to read.
type follower struct {
	session *Session
	log     hclog.Logger
	woken   chan struct{}
	// known are the children of folders that are followed.
	known map[point]map[string]bool
	// unwatched says that a point is read only when somebody asks.
	unwatched func(point) bool
	// awaited says that a record which is missing is watched until it comes. Others stand in folders that tell.
	awaited   func(point) bool
	malformed func()
	reads     func(n int)

	mu     sync.Mutex
	marked map[point]struct{} // guarded by mu; to be read
}

func newFollower(s *Session, log hclog.Logger) *follower {
	return &follower{
		session: s, log: log, woken: make(chan struct{}, 1), known: map[point]map[string]bool{}, marked: map[point]struct{}{},
		unwatched: never, awaited: never, malformed: func() {}, reads: func(int) {},
	}
}

func never(point) bool { return false }

// mark has points read at the next refresh.
func (f *follower) mark(points ...point) {
	f.mu.Lock()
	for _, p := range points {
		f.marked[p] = struct{}{}
	}
	f.mu.Unlock()
	select {
	case f.woken <- struct{}{}:
	default:
	}
}

func (f *follower) take() []point {
	f.mu.Lock()
	defer f.mu.Unlock()
	points := make([]point, 0, len(f.marked))
	for p := range f.marked {
		points = append(points, p)
	}
	clear(f.marked)
	return points
}

// refresh reads what is marked, and what apply asks for in turn, until nothing is left. apply gets all that was read in one round; a
// folder's children are compared with fresh. An error leaves the rest unread: the follower is of no use any more.
func (f *follower) refresh(ctx context.Context, apply func([]reading) []point) error {
	for points := f.take(); len(points) > 0; {
		readings := make([]reading, len(points))
		err := f.session.Each(ctx, len(points), func(ctx context.Context, i int) (err error) {
			readings[i], err = f.read(ctx, points[i])
			return err
		})
		if err != nil {
			return err
		}
		f.reads(len(points))
		for _, r := range readings {
			if !r.exists && !r.folder {
				delete(f.known[r.parent()], path.Base(r.path)) // if it comes back, it is new
			}
		}
		points = append(apply(readings), f.take()...)
	}
	return nil
}

// fresh compares a folder's children with those that are known, and knows the new ones from now on.
func (f *follower) fresh(r reading) (came, went []string) {
	known := f.known[r.point]
	now := make(map[string]bool, len(r.names))
	for _, name := range r.names {
		now[name] = true
		if !known[name] {
			came = append(came, name)
		}
	}
	for name := range known {
		if !now[name] {
			went = append(went, name)
		}
	}
	slices.Sort(went)
	f.known[r.point] = now
	return came, went
}

// forget follows a folder no longer.
func (f *follower) forget(folder point) { delete(f.known, folder) }

// learn makes a child known that was made here and needs not be read.
func (f *follower) learn(p point) {
	folder := p.parent()
	if f.known[folder] == nil {
		f.known[folder] = map[string]bool{}
	}
	f.known[folder][path.Base(p.path)] = true
}

// read reads a point and watches it.
func (f *follower) read(ctx context.Context, p point) (reading, error) {
	notify := Notify(func(Event) { f.mark(p) })
	if f.unwatched(p) {
		notify = nil
	}
	if p.folder {
		return f.readFolder(ctx, p, notify)
	}
	if f.awaited(p) {
		if there, _, err := f.session.Exists(ctx, p.path, notify); err != nil || !there {
			return reading{point: p}, err
		}
		notify = nil // an event would come twice
	}
	r := reading{point: p, exists: true}
	var err error
	r.record, r.stat, err = f.session.GetRecord(ctx, p.path, notify)
	switch {
	case errors.Is(err, ErrNotFound):
		return reading{point: p}, nil
	case isUnreadable(err):
		f.malformed()
		f.log.Warn("znode can't be read as a record and is skipped", "path", p.path, "err", err)
		return r, nil
	case err != nil:
		return reading{}, err
	}
	return r, nil
}

// readFolder lists a folder; one that is not there is watched until it comes.
func (f *follower) readFolder(ctx context.Context, p point, notify Notify) (reading, error) {
	for {
		names, err := f.session.Children(ctx, p.path, notify)
		if err == nil {
			return reading{point: p, exists: true, names: names}, nil
		}
		if !errors.Is(err, ErrNotFound) {
			return reading{}, err
		}
		if notify == nil {
			return reading{point: p}, nil
		}
		there, _, err := f.session.Exists(ctx, p.path, notify)
		if err != nil || !there {
			return reading{point: p}, err
		}
	}
}
