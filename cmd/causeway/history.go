package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/offsets/bolt"
)

// history is the event log of this process behind the errors of earlier ones, which the store has kept.
type history struct {
	log *events.Log
	old []events.Event // by id
}

func newHistory(ctx context.Context, log *events.Log, store *bolt.Store) (*history, error) {
	stored, err := store.Events(ctx)
	if err != nil {
		return nil, fmt.Errorf("load stored events: %w", err)
	}
	h := &history{log: log}
	for _, text := range stored {
		var e events.Event
		if err = json.Unmarshal(text, &e); err != nil {
			return nil, fmt.Errorf("load stored events: %w", err)
		}
		h.old = append(h.old, e)
	}
	slices.SortFunc(h.old, func(a, b events.Event) int { return cmp.Compare(a.ID, b.ID) })
	if n := len(h.old); n > 0 {
		log.After(h.old[n-1].ID)
	}
	log.Keep(store, offsets.MaxEvents)
	return h, nil
}

// Since gives stored and new events with a greater id, see api.Events.
func (h *history) Since(id int64) ([]events.Event, <-chan struct{}) {
	fresh, more := h.log.Since(id)
	var found []events.Event
	for i := range h.old {
		if h.old[i].ID > id {
			found = append(found, h.old[i])
		}
	}
	return append(found, fresh...), more
}

// keep stores errors as they come, until ctx ends, and then what is left: those that excuse no offset are followed by no commit, which would
// store them too. The first failure ends it: the store is then the mirror's trouble as well.
func (h *history) keep(ctx context.Context) error {
	last := context.WithoutCancel(ctx)
	for id := int64(0); ; {
		found, more := h.log.Since(id)
		if err := h.log.Flush(last); err != nil {
			return err
		}
		if len(found) > 0 {
			id = found[len(found)-1].ID
			continue
		}
		select {
		case <-more:
		case <-ctx.Done():
			return h.log.Flush(last) // both may have been ready
		}
	}
}
