package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/offsets"
)

// EventStore keeps errors over a restart; the stores of checkpoints satisfy it.
type EventStore interface {
	events.Store
	offsets.EventReader
}

// History is the event log of this process behind the errors of earlier ones, which the store has kept.
type History struct {
	log   *events.Log
	store EventStore
	warn  hclog.Logger

	mu  sync.Mutex
	old []events.Event // guarded by mu; by id
}

// NewHistory lets the log store errors from now on. What is wrong with stored ones is told to warn.
func NewHistory(log *events.Log, store EventStore, warn hclog.Logger) *History {
	log.Keep(store, offsets.MaxEvents)
	return &History{log: log, store: store, warn: warn}
}

// Load reads what earlier processes have stored, but for what can't be read. Until it has succeeded, Since gives new events alone.
func (h *History) Load(ctx context.Context) error {
	stored, err := h.store.Events(ctx)
	if err != nil {
		return fmt.Errorf("load stored events: %w", err)
	}
	var old []events.Event
	for _, text := range stored {
		var e events.Event
		if err = json.Unmarshal(text, &e); err != nil {
			h.warn.Warn("a stored event can't be read and is skipped", "error", err)
			continue
		}
		old = append(old, e)
	}
	slices.SortFunc(old, func(a, b events.Event) int { return cmp.Compare(a.ID, b.ID) })
	if n := len(old); n > 0 {
		h.log.After(old[n-1].ID)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.old = old
	return nil
}

// Since gives stored and new events with a greater id, see api.Events.
func (h *History) Since(id int64) []events.Event {
	fresh := h.log.Since(id)
	known := map[int64]bool{}
	for i := range fresh {
		known[fresh[i].ID] = true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var found []events.Event
	for i := range h.old {
		if h.old[i].ID > id && !known[h.old[i].ID] { // it was loaded after this process had stored some
			found = append(found, h.old[i])
		}
	}
	return append(found, fresh...)
}

// Await waits for new events, see api.Events.
func (h *History) Await(ctx context.Context, limit time.Duration, of events.Type, ready func() bool) bool {
	return h.log.Await(ctx, limit, of, ready)
}

// Close lets all who wait for events go.
func (h *History) Close() { h.log.Close() }

// storeAgain is the pause before a store that is out of reach is tried again.
const storeAgain = time.Second

// Keep stores errors as they come, until ctx ends, and then what is left: those that excuse no offset are followed by no commit, which would
// store them too. A store that fails ends it, since it is then the mirror's trouble as well; one that is out of reach is tried again.
func (h *History) Keep(ctx context.Context) error {
	last := context.WithoutCancel(ctx)
	for id := int64(0); ; {
		found := h.log.Since(id)
		err := h.log.Flush(last)
		switch {
		case errors.Is(err, offsets.ErrUnavailable) && ctx.Err() == nil:
			pause := time.NewTimer(storeAgain)
			select {
			case <-pause.C:
			case <-ctx.Done():
			}
			pause.Stop()
			continue
		case err != nil:
			return err
		case len(found) > 0:
			id = found[len(found)-1].ID
			continue
		}
		if !h.log.Await(ctx, 0, "", func() bool { return len(h.log.Since(id)) > 0 }) {
			return h.log.Flush(last)
		}
	}
}
