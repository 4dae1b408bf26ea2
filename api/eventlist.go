package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/causeway-mirror/causeway/events"
)

// heartbeat keeps proxies from closing a quiet stream and tells us when the reader is gone.
const heartbeat = 15 * time.Second

// events answers GET /api/v1/events: a list of what is newer than `since`, oldest first (newest first with sort=-id), after waiting up to
// `wait` for the first one; or a stream, if the client accepts text/event-stream.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	ask, err := parsePage(q)
	since, err2 := parseNumber(q, "since", 0)
	after, err3 := parseNumber(q, "after", 0)
	wait, err4 := s.parseWait(q, "wait", 0)
	if ask.sort != "" && ask.sort != "id" {
		err = errors.Join(err, fmt.Errorf("sort %q: must be id or -id", ask.sort))
	}
	if err = errors.Join(err, err2, err3, err4, knownType(q.Get("type"))); err != nil {
		fail(w, http.StatusUnprocessableEntity, "invalid", err.Error())
		return
	}
	wanted := eventFilter{events.Type(q.Get("type")), ask.filter}
	if strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		if last, lastErr := strconv.ParseInt(r.Header.Get("Last-Event-ID"), 10, 64); lastErr == nil {
			since = last // a browser that reconnects says where it was
		}
		s.stream(w, r, since, wanted)
		return
	}
	s.extend(w, wait)
	found := s.await(r.Context(), max(since, after), wait, wanted)
	answer(w, http.StatusOK, pageOfEvents(found, ask))
}

// knownType refuses a type that no event will ever have: an empty list would read as "it did not happen".
func knownType(kind string) error {
	types := events.Types()
	if kind == "" || slices.Contains(types, events.Type(kind)) {
		return nil
	}
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = string(t)
	}
	slices.Sort(names)
	return fmt.Errorf("type %q: must be one of %s", kind, strings.Join(names, ", "))
}

// eventFilter is which events are asked for.
type eventFilter struct {
	kind events.Type // "" = all
	text string      // in lower case
}

func (f eventFilter) matches(e *events.Event) bool {
	if f.kind != "" && e.Type != f.kind {
		return false
	}
	text := strings.ToLower(string(e.Type) + " " + e.Topic + " " + e.Message + " " + e.Reason)
	return f.text == "" || strings.Contains(text, f.text)
}

// await returns the matching events newer than since; if there is none it waits for one.
func (s *Server) await(ctx context.Context, since int64, wait time.Duration, ask eventFilter) (found []events.Event) {
	ready := func() bool {
		found = slices.DeleteFunc(s.deps.Events.Since(since), func(e events.Event) bool { return !ask.matches(&e) })
		return len(found) > 0
	}
	if wait > 0 {
		s.deps.Events.Await(ctx, wait, ask.kind, ready)
	} else {
		ready()
	}
	return found
}

func pageOfEvents(found []events.Event, ask page) List[events.Event] {
	if ask.down {
		slices.Reverse(found)
	}
	out := List[events.Event]{Items: found[:min(ask.limit, len(found))]}
	if len(found) > ask.limit && !ask.down {
		out.Next = strconv.FormatInt(out.Items[ask.limit-1].ID, 10)
	}
	if out.Items == nil {
		out.Items = []events.Event{}
	}
	return out
}

// stream writes matching events as server-sent events until the client leaves or the server stops.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, since int64, wanted eventFilter) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	control := http.NewResponseController(w)
	var found []events.Event
	more := func() bool {
		found = s.deps.Events.Since(since)
		return len(found) > 0
	}
	for r.Context().Err() == nil {
		s.extend(w, heartbeat) // over HTTP/2 a deadline ends the answer, also while nothing is written
		if control.Flush() != nil {
			return
		}
		if !s.deps.Events.Await(r.Context(), heartbeat, wanted.kind, more) {
			if _, err := w.Write([]byte(": still here\n\n")); err != nil {
				return
			}
		}
		for i := range found {
			since = found[i].ID
			if wanted.matches(&found[i]) && writeEvent(w, &found[i]) != nil {
				return
			}
		}
	}
}

func writeEvent(w http.ResponseWriter, e *events.Event) error {
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "id: %d\nevent: %s\ndata: %s\n\n", e.ID, e.Type, data)
	return err
}
