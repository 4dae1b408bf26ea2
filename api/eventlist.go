package api

import (
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
	match := func(e *events.Event) bool { return eventMatches(e, q.Get("type"), ask.filter) }
	if strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		if last, lastErr := strconv.ParseInt(r.Header.Get("Last-Event-ID"), 10, 64); lastErr == nil {
			since = last // a browser that reconnects says where it was
		}
		s.stream(w, r, since, match)
		return
	}
	s.extend(w, wait)
	found := s.await(r, max(since, after), wait, match)
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

func eventMatches(e *events.Event, kind, filter string) bool {
	if kind != "" && string(e.Type) != kind {
		return false
	}
	text := strings.ToLower(string(e.Type) + " " + e.Topic + " " + e.Message + " " + e.Reason)
	return filter == "" || strings.Contains(text, filter)
}

// await returns the matching events newer than since; if there is none it waits for one.
func (s *Server) await(r *http.Request, since int64, wait time.Duration, match func(*events.Event) bool) []events.Event {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		found, fresh := s.deps.Events.Since(since)
		found = slices.DeleteFunc(found, func(e events.Event) bool { return !match(&e) })
		if len(found) > 0 || wait == 0 {
			return found
		}
		select {
		case <-fresh:
		case <-timer.C:
			return nil
		case <-r.Context().Done():
			return nil
		}
	}
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
func (s *Server) stream(w http.ResponseWriter, r *http.Request, since int64, match func(*events.Event) bool) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	control := http.NewResponseController(w)
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		found, fresh := s.deps.Events.Since(since)
		s.extend(w, heartbeat) // over HTTP/2 a deadline ends the answer, also while nothing is written
		for i := range found {
			since = found[i].ID
			if match(&found[i]) && writeEvent(w, &found[i]) != nil {
				return
			}
		}
		if control.Flush() != nil {
			return
		}
		select {
		case <-fresh:
		case <-beat.C:
			s.extend(w, heartbeat)
			if _, err := w.Write([]byte(": still here\n\n")); err != nil {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}

func writeEvent(w http.ResponseWriter, e *events.Event) error {
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "id: %d\nevent: %s\ndata: %s\n\n", e.ID, e.Type, data) //nolint:gosec // no browser reads an event stream as HTML
	return err
}
