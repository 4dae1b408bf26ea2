package helix

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"
)

// viewsPerTransaction bounds the external views in a transaction; their size does, too.
const viewsPerTransaction = 50

// neverDue is the wait when nothing is to be written.
const neverDue = time.Hour

// viewWriter writes external views, each at most once an interval. It belongs to its term's run.
type viewWriter struct {
	t       *Term
	written map[string]*Record  // what is in ZooKeeper
	due     map[string]struct{} // resources whose view may have changed
	last    time.Time           // of the last write
}

// viewChange is a view that is to be written, or removed if record is nil.
type viewChange struct {
	resource string
	record   *Record
	data     []byte
}

func (w *viewWriter) add(resources []string) {
	for _, resource := range resources {
		w.due[resource] = struct{}{}
	}
}

// wait is how long the next write is away.
func (w *viewWriter) wait() time.Duration {
	if len(w.due) == 0 {
		return neverDue
	}
	return max(0, w.t.c.cfg.ViewInterval-time.Since(w.last))
}

// write writes the views that are due and different from what is there, unless the last write was a moment ago.
func (w *viewWriter) write(ctx context.Context) error {
	if w.wait() > 0 {
		return nil
	}
	var changes []viewChange
	for _, resource := range slices.Sorted(maps.Keys(w.due)) {
		before := w.written[resource]
		change := viewChange{resource: resource, record: w.t.snap.view(resource, before)}
		if change.record == before || change.record != nil && before != nil && change.record.Equal(before) {
			continue
		}
		if change.record != nil {
			var err error
			if change.data, err = change.record.Encode(); err != nil {
				w.t.log.Error("external view can't be written", "resource", resource, "err", err)
				continue
			}
		}
		changes = append(changes, change)
	}
	clear(w.due)
	w.last = time.Now()
	ops := make([]Op, len(changes))
	for i, change := range changes {
		ops[i] = w.op(change, w.written[change.resource] != nil)
	}
	for _, chunk := range Chunks(ops, viewsPerTransaction) {
		if err := w.writeChunk(ctx, changes[:len(chunk)], chunk); err != nil {
			return err
		}
		changes = changes[len(chunk):]
	}
	return nil
}

func (w *viewWriter) op(change viewChange, there bool) Op {
	path := w.t.cluster().externalView(change.resource)
	switch {
	case change.record == nil:
		return DeleteOp(path, AnyVersion)
	case there:
		return SetOp(path, change.data, AnyVersion)
	}
	return CreateOp(path, change.data)
}

func (w *viewWriter) writeChunk(ctx context.Context, changes []viewChange, ops []Op) error {
	err := w.t.admin.transact(ctx, ops...)
	if spoils(err) { // somebody interfered with one of them
		for _, change := range changes {
			if err = w.writeOne(ctx, change); err != nil {
				break
			}
		}
	}
	switch {
	case errors.Is(err, ErrLost): // it is looked at again; whatever was written is written over
		for _, change := range changes {
			w.due[change.resource] = struct{}{}
		}
		return nil
	case err != nil:
		return err
	}
	for _, change := range changes {
		w.t.c.metrics.views.Inc()
		if change.record == nil {
			delete(w.written, change.resource)
		} else {
			w.written[change.resource] = change.record
		}
	}
	return nil
}

// writeOne brings one view about, whatever is there.
func (w *viewWriter) writeOne(ctx context.Context, change viewChange) error {
	var last error
	for _, there := range []bool{true, false, true} {
		err := w.t.admin.transact(ctx, w.op(change, there))
		if err == nil || change.record == nil && errors.Is(err, ErrNotFound) {
			return nil
		}
		if !spoils(err) {
			return err
		}
		last = err
	}
	w.t.log.Warn("external view can't be written", "resource", change.resource, "err", last)
	return nil
}
