package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// router is a mux that knows its patterns.
type router struct {
	*http.ServeMux

	patterns []string
}

// Handle takes a pattern.
func (r *router) Handle(pattern string, h http.Handler) {
	r.patterns = append(r.patterns, pattern)
	r.ServeMux.Handle(pattern, h)
}

// HandleFunc takes a pattern.
func (r *router) HandleFunc(pattern string, h func(http.ResponseWriter, *http.Request)) {
	r.Handle(pattern, http.HandlerFunc(h))
}

func (s *Server) routes() *router {
	mux := &router{ServeMux: http.NewServeMux()}
	mux.HandleFunc("GET /api/v1/status", s.status)
	mux.HandleFunc("GET /api/v1/topics", s.onLeader(s.topics))
	mux.HandleFunc("GET /api/v1/topics/{topic}", s.onLeader(s.topic))
	mux.HandleFunc("GET /api/v1/partitions", s.onLeader(s.partitions))
	mux.HandleFunc("GET /api/v1/excluded-topics", s.onLeader(s.excluded))
	mux.HandleFunc("GET /api/v1/events", s.events)
	mux.HandleFunc("GET /api/v1/history", s.onLeader(s.pastOf))
	mux.HandleFunc("GET /api/v1/wait", s.onLeader(s.wait))
	mux.HandleFunc("GET /api/v1/openapi.yaml", openAPI)
	if s.deps.Translator != nil {
		mux.HandleFunc("GET /api/v1/offsets/translate", s.translate)
	}
	if s.deps.Leadership != nil {
		s.fleetRoutes(mux)
	}
	if s.deps.Leadership != nil || s.deps.Operator != nil {
		s.operatorRoutes(mux)
	}
	mux.HandleFunc("GET /healthz", healthz)
	mux.HandleFunc("GET /readyz", s.readyz)
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.deps.Registry, promhttp.HandlerOpts{}))
	mux.Handle("GET /{$}", http.RedirectHandler("/ui/", http.StatusFound))
	mux.Handle("GET /ui/", ui())
	return mux
}

func (s *Server) status(w http.ResponseWriter, r *http.Request) {
	id := s.deps.Identity
	out := Status{
		Role: id.Role, Version: id.Version, Leader: id.Worker, Workers: 1,
		Route:         totalsOfRoute(id.Route.String(), s.deps.Mirror.Snapshot()),
		UptimeSeconds: time.Since(id.Started).Seconds(),
	}
	if s.deps.Leadership != nil {
		out.Leader, out.LeaderAddress = s.deps.Leadership.Leader(r.Context())
		out.Workers = 0
		if fleet, ok := s.deps.Leadership.Fleet(); ok {
			out.LeaderAddress = ""
			for _, worker := range fleet.Workers() {
				if worker.Live {
					out.Workers++
				}
			}
		}
	}
	answer(w, http.StatusOK, out)
}

func (s *Server) topics(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	trend := q.Get("trend")
	metric, err := metricOf("trend", trend)
	if trend != "" && err != nil {
		fail(w, http.StatusUnprocessableEntity, "invalid", err.Error())
		return
	}
	out, ok := pageOf(w, r, topicLister(), totalsOfTopics(s.partitionsOf(q.Get("topic"))))
	if !ok {
		return
	}
	for i := range out.Items {
		if trend != "" {
			out.Items[i].Trend = s.history.trend(out.Items[i].Topic, metric)
		}
	}
	answer(w, http.StatusOK, out)
}

func (s *Server) topic(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("topic")
	mirror := s.deps.Mirror.Snapshot()
	parts := partitionsOf(mirror.Partitions, name)
	if len(parts) == 0 {
		s.failUnknown(w, name, mirror)
		return
	}
	t := totalsOfTopics(parts)[0]
	t.Partitions = parts
	answer(w, http.StatusOK, t)
}

func (s *Server) partitions(w http.ResponseWriter, r *http.Request) {
	answerList(w, r, partitionLister(), s.partitionsOf(r.URL.Query().Get("topic")))
}

func (s *Server) excluded(w http.ResponseWriter, r *http.Request) {
	answerList(w, r, excludedLister(), s.deps.Mirror.Excluded())
}

func (s *Server) wait(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	topic := q.Get("topic")
	lag, err := parseNumber(q, "lag", 0)
	timeout, err2 := s.parseWait(q, "timeout", usualWait)
	if err = errors.Join(repeated(q), err, err2); err != nil {
		fail(w, http.StatusUnprocessableEntity, "invalid", err.Error())
		return
	}
	if topic != "" {
		if mirror := s.deps.Mirror.Snapshot(); len(partitionsOf(mirror.Partitions, topic)) == 0 {
			s.failUnknown(w, topic, mirror)
			return
		}
	}
	s.extend(w, timeout)
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	present, ok, err := s.deps.Mirror.WaitCaughtUp(ctx, topic, lag)
	switch {
	case err != nil && ctx.Err() == nil:
		fail(w, http.StatusServiceUnavailable, "unavailable", err.Error())
	case ok:
		answer(w, http.StatusOK, Waited{Topic: topic, LagRecords: present})
	default:
		message := fmt.Sprintf("still %d records behind", present) + standstill(s.partitionsOf(topic))
		if err != nil && present == 0 { // time ran out before it was known how much lacks
			message, present = err.Error(), -1
		}
		answer(w, http.StatusRequestTimeout, Waited{Code: "timeout", Message: message, Topic: topic, LagRecords: present})
	}
}

// partitionsOf gives the partitions of a topic as they are now, in order of their numbers, or all of them if it is "".
func (s *Server) partitionsOf(topic string) []Partition {
	parts := s.deps.Mirror.Snapshot().Partitions
	if topic == "" {
		return parts
	}
	return partitionsOf(parts, topic)
}

// failUnknown answers a call about a topic of which the mirror has nothing: not yet, if it still starts.
func (s *Server) failUnknown(w http.ResponseWriter, topic string, mirror Snapshot) {
	message := fmt.Sprintf("topic %q is not mirrored", topic)
	excluded := s.deps.Mirror.Excluded()
	if i := slices.IndexFunc(excluded, func(e Excluded) bool { return e.Topic == topic }); i >= 0 {
		message += ": " + excluded[i].Reason
	}
	if mirror.State == StateStarting {
		message += "; the mirror is still starting: " + mirror.Reason
	}
	fail(w, http.StatusNotFound, "not_found", message)
}

func healthz(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string]string{"status": "alive"})
}

func (s *Server) readyz(w http.ResponseWriter, _ *http.Request) {
	r := readiness(s.deps.Mirror.Snapshot())
	code := http.StatusOK
	if !r.Ready {
		code = http.StatusServiceUnavailable
	}
	answer(w, code, r)
}

// extend gives an answer that waits its waiting time on top of the usual write deadline.
func (s *Server) extend(w http.ResponseWriter, wait time.Duration) {
	// Writers without deadlines (tests) say so; they need none.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(wait + s.cfg.WriteTimeout))
}

func (s *Server) parseWait(q url.Values, key string, missing time.Duration) (time.Duration, error) {
	text := q.Get(key)
	if text == "" {
		return missing, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > s.cfg.MaxWait {
		return 0, fmt.Errorf("%s %q: must be a duration from 0s to %s, such as 30s", key, text, s.cfg.MaxWait)
	}
	return d, nil
}

func parseNumber(q url.Values, key string, missing int64) (int64, error) {
	text := q.Get(key)
	if text == "" {
		return missing, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s %q: must be a whole number, 0 or more", key, text)
	}
	return n, nil
}

func answerList[T any](w http.ResponseWriter, r *http.Request, l lister[T], items []T) {
	if out, ok := pageOf(w, r, l, items); ok {
		answer(w, http.StatusOK, out)
	}
}

// pageOf gives the page that is asked for; if there is none, the request is answered.
func pageOf[T any](w http.ResponseWriter, r *http.Request, l lister[T], items []T) (List[T], bool) {
	p, err := parsePage(r.URL.Query())
	out, listErr := l.list(items, p)
	if err = errors.Join(err, listErr); err != nil {
		fail(w, http.StatusUnprocessableEntity, "invalid", err.Error())
		return out, false
	}
	return out, true
}

func answer(w http.ResponseWriter, code int, body any) {
	text, err := json.Marshal(body)
	if err != nil { // only our own types come here
		code, text = http.StatusInternalServerError, []byte(`{"code":"internal","message":"the answer cannot be written as JSON"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = w.Write(append(text, '\n'))
}

func fail(w http.ResponseWriter, code int, kind, message string) {
	answer(w, code, Failure{Code: kind, Message: message})
}
