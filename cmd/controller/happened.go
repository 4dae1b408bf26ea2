package main

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/causeway-mirror/causeway/events"
)

// storedEvents is where workers keep their errors; zk.Store is one.
type storedEvents interface {
	// EventsAfter reads what was stored after a mark ("" means everything), oldest first, and gives the next mark.
	EventsAfter(ctx context.Context, mark string) (found [][]byte, next string, err error)
}

// happened is what this controller has told, with the errors of the route's workers, also of those that are gone.
type happened struct {
	own   *events.Log
	store storedEvents
	log   hclog.Logger

	mu  sync.Mutex
	old []events.Event // guarded by mu; what was stored when this process began, by id
}

// Since implements api.Events.
func (h *happened) Since(id int64) []events.Event {
	fresh := h.own.Since(id)
	h.mu.Lock()
	defer h.mu.Unlock()
	var found []events.Event
	for i := range h.old {
		if h.old[i].ID > id {
			found = append(found, h.old[i])
		}
	}
	return append(found, fresh...)
}

// Await implements api.Events.
func (h *happened) Await(ctx context.Context, limit time.Duration, of events.Type, ready func() bool) bool {
	return h.own.Await(ctx, limit, of, ready)
}

// follow reads what the workers store, until ctx ends. A store that does not answer is asked again.
func (h *happened) follow(ctx context.Context, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	mark, first, told := "", true, false
	for {
		texts, next, err := h.store.EventsAfter(ctx, mark)
		switch {
		case err == nil && first:
			h.begin(h.read(texts))
			mark, first = next, false
		case err == nil:
			for _, e := range h.read(texts) {
				h.own.Adopt(e)
			}
			mark = next
		case !told && ctx.Err() == nil:
			h.log.Warn("the errors that workers have stored can't be read yet", "err", err)
			told = true
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// begin keeps what was stored before. The ids of several workers do not grow together, so these are made of the times: mostly below this process's
// own, so that who followed an earlier process is told little twice.
func (h *happened) begin(stored []events.Event) {
	slices.SortStableFunc(stored, func(a, b events.Event) int { return a.Time.Compare(b.Time) })
	last := int64(0)
	for i := range stored {
		last = max(last+1, stored[i].Time.UnixMicro())
		stored[i].ID = last
	}
	h.own.After(last)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.old = stored
}

func (h *happened) read(texts [][]byte) []events.Event {
	out := make([]events.Event, 0, len(texts))
	for _, text := range texts {
		var e events.Event
		if err := json.Unmarshal(text, &e); err != nil {
			h.log.Warn("an event that a worker has stored can't be read", "err", err)
			continue
		}
		out = append(out, e)
	}
	return out
}
