package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/causeway-mirror/causeway/route"
)

// Worker is a worker as the native API shows it. What nobody has measured is not counted in its rates.
type Worker struct {
	ID               string  `json:"id"`
	State            string  `json:"state"` // active, standby, draining, silent, gone
	Partitions       int     `json:"partitions"`
	RecordsPerSecond float64 `json:"records_per_second"`
	BytesPerSecond   float64 `json:"bytes_per_second"`
	Reason           string  `json:"reason"` // why it is silent
}

// States of workers.
const (
	WorkerActive   = "active"
	WorkerStandby  = "standby"
	WorkerDraining = "draining"
	WorkerSilent   = "silent" // it has a session, and does not answer
	WorkerGone     = "gone"
)

// workerOf shows a worker of the fleet.
func workerOf(w FleetWorker) Worker {
	out := Worker{ID: w.ID, State: WorkerActive, Partitions: len(w.Partitions)}
	switch {
	case !w.Live:
		out.State = WorkerGone
	case w.Draining:
		out.State = WorkerDraining
	case w.Silent > 0:
		out.State = WorkerSilent
	case w.Standby:
		out.State = WorkerStandby
	}
	if w.Silent > 0 {
		out.Reason = "it has not answered for " + w.Silent.String()
	}
	for _, rate := range w.Rates {
		out.RecordsPerSecond += rate.Messages
		out.BytesPerSecond += rate.Bytes
	}
	return out
}

func workerLister() lister[Worker] {
	return lister[Worker]{
		key:  func(w *Worker) string { return w.ID },
		text: func(w *Worker) []string { return []string{w.ID, w.State} },
		sorts: map[string]func(a, b *Worker) int{
			"id":                 func(a, b *Worker) int { return cmp.Compare(a.ID, b.ID) },
			"state":              func(a, b *Worker) int { return cmp.Compare(a.State, b.State) },
			"partitions":         func(a, b *Worker) int { return cmp.Compare(a.Partitions, b.Partitions) },
			"records_per_second": func(a, b *Worker) int { return cmp.Compare(a.RecordsPerSecond, b.RecordsPerSecond) },
			"bytes_per_second":   func(a, b *Worker) int { return cmp.Compare(a.BytesPerSecond, b.BytesPerSecond) },
		},
	}
}

// fleetRoutes are the calls that only the leader of a cluster can answer.
func (s *Server) fleetRoutes(mux *router) {
	for pattern, handle := range map[string]func(http.ResponseWriter, *http.Request, Fleet){
		"GET /api/v1/workers":                                     listWorkers,
		"POST /api/v1/workers/{id}/drain":                         drainWorker(true),
		"POST /api/v1/workers/{id}/enable":                        drainWorker(false),
		"POST /api/v1/rebalance":                                  rebalance,
		"POST /api/v1/topics":                                     addTopic,
		"DELETE /api/v1/topics/{topic}":                           removeTopic,
		"POST /api/v1/topics/{topic}/expand":                      expandTopic,
		"POST /api/v1/topics/{topic}/partitions/{partition}/move": movePartition,
		"GET /api/v1/backup":                                      backup,
		"POST /api/v1/restore":                                    restore,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			fleet, ok := s.deps.Leadership.Fleet()
			if !ok {
				s.toLeader(w, r)
				return
			}
			r.Body = http.MaxBytesReader(w, r.Body, mostBackup)
			handle(w, r, fleet)
		})
	}
}

// mostBackup bounds what a call may bring: a backup of a large cluster.
const mostBackup = 64 << 20

// onLeader lets the leader answer what this process does not know: reads are passed on.
func (s *Server) onLeader(handle http.HandlerFunc) http.HandlerFunc {
	if s.deps.Leadership == nil {
		return handle
	}
	return func(w http.ResponseWriter, r *http.Request) {
		if _, ok := s.deps.Leadership.Fleet(); ok {
			handle(w, r)
			return
		}
		s.toLeader(w, r)
	}
}

// toLeader sends a write to the leader, with the same method and body, and passes a read on.
func (s *Server) toLeader(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		wait := s.waits(r)
		s.extend(w, wait+passTimeout)
		s.pass.pass(w, r, wait)
		return
	}
	target, ok := s.pass.leader(r)
	if !ok {
		refuseLeaderless(w)
		return
	}
	target.Path, target.RawQuery = r.URL.Path, r.URL.RawQuery
	w.Header().Set("Location", target.String())
	fail(w, http.StatusTemporaryRedirect, "not_leader", "the leader is at "+target.Host)
}

// refuseLeaderless answers where there is no leader to be reached.
func refuseLeaderless(w http.ResponseWriter) {
	fail(w, http.StatusServiceUnavailable, "no_leader", ErrNoLeader.Error())
}

// usualWait is how long a call waits that does not say.
const usualWait = 30 * time.Second

// waits is how long the answer of a call may take beyond what answers take. What is wrong with it the leader says.
func (s *Server) waits(r *http.Request) time.Duration {
	if r.URL.Path != "/api/v1/wait" {
		return 0
	}
	wait, err := s.parseWait(r.URL.Query(), "timeout", usualWait)
	if err != nil {
		return 0
	}
	return wait
}

// refuseWrite answers an error of the fleet. The code says of what kind it is, and the message what is the matter.
func refuseWrite(w http.ResponseWriter, err error) {
	for _, kind := range []struct {
		of   error
		code int
		name string
	}{
		{ErrNotFound, http.StatusNotFound, "not_found"},
		{ErrAbsent, http.StatusNotFound, "not_found"},
		{ErrExists, http.StatusConflict, "conflict"},
		{ErrAlready, http.StatusConflict, "conflict"},
		{ErrImpossible, http.StatusConflict, "conflict"},
		{ErrInvalid, http.StatusUnprocessableEntity, "invalid"},
		{ErrNoSource, http.StatusUnprocessableEntity, "invalid"},
		{ErrNoLeader, http.StatusServiceUnavailable, "no_leader"},
	} {
		if errors.Is(err, kind.of) {
			fail(w, kind.code, kind.name, strings.TrimPrefix(err.Error(), kind.of.Error()+": "))
			return
		}
	}
	fail(w, http.StatusServiceUnavailable, "unavailable", err.Error())
}

// done answers a write.
func done(w http.ResponseWriter, code int, body any, err error) {
	switch {
	case err != nil:
		refuseWrite(w, err)
	case body == nil:
		w.WriteHeader(code)
	default:
		answer(w, code, body)
	}
}

// read is decode for a call that answers by itself; false: what is wrong is told.
func read(w http.ResponseWriter, r *http.Request, into any) bool {
	err := decode(r, into)
	if err != nil {
		refuseWrite(w, err)
	}
	return err == nil
}

func listWorkers(w http.ResponseWriter, r *http.Request, fleet Fleet) {
	all := fleet.Workers()
	out := make([]Worker, 0, len(all))
	for _, one := range all {
		out = append(out, workerOf(one))
	}
	answerList(w, r, workerLister(), out)
}

func drainWorker(on bool) func(http.ResponseWriter, *http.Request, Fleet) {
	return func(w http.ResponseWriter, r *http.Request, fleet Fleet) {
		done(w, http.StatusAccepted, nil, fleet.Drain(r.Context(), r.PathValue("id"), on))
	}
}

func rebalance(w http.ResponseWriter, r *http.Request, fleet Fleet) {
	done(w, http.StatusAccepted, nil, fleet.Rebalance(r.Context()))
}

// newTopic is the body of POST /api/v1/topics. Without partitions it gets as many as the source has.
type newTopic struct {
	Topic      string `json:"topic"`
	Partitions int32  `json:"partitions,omitempty"`
}

func addTopic(w http.ResponseWriter, r *http.Request, fleet Fleet) {
	var body newTopic
	if !read(w, r, &body) {
		return
	}
	var err error
	switch {
	case body.Topic == "":
		err = fmt.Errorf("%w: topic is missing", ErrInvalid)
	case body.Partitions < 0:
		err = fmt.Errorf("%w: partitions: %d: must be at least 1", ErrInvalid, body.Partitions)
	case body.Partitions == 0:
		body.Partitions, err = fleet.AddFromSource(r.Context(), body.Topic)
	default:
		if err = beyondSource(r.Context(), fleet, body.Topic, body.Partitions); err == nil {
			err = fleet.Add(r.Context(), body.Topic, body.Partitions)
		}
	}
	done(w, http.StatusCreated, body, err)
}

// beyondSource refuses partitions that the source does not have, where that is known: they could not be mirrored, and topics do not shrink.
func beyondSource(ctx context.Context, fleet Fleet, topic string, partitions int32) error {
	n, err := fleet.InSource(ctx, topic)
	switch {
	case errors.Is(err, ErrNoSource), errors.Is(err, ErrAbsent):
		return nil
	case err != nil:
		return err
	case partitions > n:
		return fmt.Errorf("%w: partitions: %d: the source has %d", ErrInvalid, partitions, n)
	}
	return nil
}

func removeTopic(w http.ResponseWriter, r *http.Request, fleet Fleet) {
	done(w, http.StatusNoContent, nil, fleet.Delete(r.Context(), r.PathValue("topic")))
}

func expandTopic(w http.ResponseWriter, r *http.Request, fleet Fleet) {
	var body struct {
		Partitions int32 `json:"partitions"`
	}
	if !read(w, r, &body) {
		return
	}
	topic, ok := fleet.Topic(r.PathValue("topic"))
	var err error
	switch {
	case !ok:
		err = fmt.Errorf("%w: topic %q is not mirrored", ErrNotFound, r.PathValue("topic"))
	case body.Partitions < topic.Partitions:
		err = fmt.Errorf("%w: partitions: %d: it has %d, and topics do not shrink", ErrInvalid, body.Partitions, topic.Partitions)
	default:
		if err = beyondSource(r.Context(), fleet, r.PathValue("topic"), body.Partitions); err == nil {
			err = fleet.Expand(r.Context(), r.PathValue("topic"), body.Partitions)
		}
	}
	done(w, http.StatusAccepted, nil, err)
}

// partitionOf is the partition that a path names.
func partitionOf(r *http.Request) (route.Partition, error) {
	n, err := strconv.ParseInt(r.PathValue("partition"), 10, 32)
	if err != nil {
		return route.Partition{}, fmt.Errorf("%w: partition %q is no number", ErrInvalid, r.PathValue("partition"))
	}
	return route.Partition{Topic: r.PathValue("topic"), Partition: int32(n)}, nil
}

func movePartition(w http.ResponseWriter, r *http.Request, fleet Fleet) {
	var body struct {
		Worker *string `json:"worker"`
	}
	if !read(w, r, &body) {
		return
	}
	p, err := partitionOf(r)
	switch {
	case err != nil:
	case body.Worker == nil:
		err = fmt.Errorf("%w: worker is missing; an empty one frees the partition", ErrInvalid)
	default:
		err = fleet.Move(r.Context(), p, *body.Worker)
	}
	done(w, http.StatusAccepted, nil, err)
}

func backup(w http.ResponseWriter, _ *http.Request, fleet Fleet) {
	text, err := fleet.Backup()
	done(w, http.StatusOK, json.RawMessage(text), err)
}

func restore(w http.ResponseWriter, r *http.Request, fleet Fleet) {
	var body json.RawMessage
	if read(w, r, &body) {
		done(w, http.StatusAccepted, nil, fleet.Restore(r.Context(), body))
	}
}
