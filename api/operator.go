package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/causeway-mirror/causeway/operator"
	"github.com/causeway-mirror/causeway/route"
)

// Operator does what people ask of topics and partitions. Each returns when it is noted so that it will be done; errors: ErrNotFound, ErrInvalid,
// ErrAlready, ErrImpossible, and whatever keeps it from being noted.
type Operator interface {
	// Reset sets a partition's position, anew and by decision.
	Reset(ctx context.Context, p route.Partition, to operator.Place) error
	// Retry has a partition that stands still tried at once.
	Retry(ctx context.Context, p route.Partition) error
	// LimitTopic and LimitPartition bound what is taken from the source.
	LimitTopic(ctx context.Context, topic string, l operator.Limits) error
	LimitPartition(ctx context.Context, p route.Partition, l operator.Limits) error
	// PauseTopic stops a topic as a whole or lets it go on; partitions that are paused by themselves stay so.
	PauseTopic(ctx context.Context, topic string, on bool) error
	// PausePartition stops one partition or lets it go on; repeating is no error.
	PausePartition(ctx context.Context, p route.Partition, on bool) error
	// RetryDeadLetters writes the dead letters of a source topic to where they were refused, and returns when that is done.
	RetryDeadLetters(ctx context.Context, topic string) (DeadLetters, error)
	// DeadLetters lists those of a source topic that were not put back.
	DeadLetters(ctx context.Context, topic string) ([]DeadLetter, error)
}

// operatorRoutes are the calls about topics and partitions that a mirror in one process answers as well as the leader of a cluster.
func (s *Server) operatorRoutes(mux *router) {
	const topic, partition = "/api/v1/topics/{topic}", "/api/v1/topics/{topic}/partitions/{partition}"
	for pattern, handle := range map[string]func(http.ResponseWriter, *http.Request, Operator){
		"POST " + topic + "/pause":                pauseTopic(true),
		"POST " + topic + "/resume":               pauseTopic(false),
		"PUT " + topic + "/limits":                limitTopic,
		"POST " + partition + "/pause":            onPartition(pausePartition(true)),
		"POST " + partition + "/resume":           onPartition(pausePartition(false)),
		"PUT " + partition + "/limits":            onPartition(limitPartition),
		"POST " + partition + "/retry":            onPartition(retryPartition),
		"POST " + partition + "/reset":            onPartition(s.resetPartition),
		"POST /api/v1/dead-letters/{topic}/retry": s.retryDeadLetters,
		"GET /api/v1/dead-letters/{topic}":        s.listDeadLetters,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			operator := s.deps.Operator
			if s.deps.Leadership != nil {
				fleet, ok := s.deps.Leadership.Fleet()
				if !ok {
					s.toLeader(w, r)
					return
				}
				operator = fleet
			}
			r.Body = http.MaxBytesReader(w, r.Body, mostBody)
			handle(w, r, operator)
		})
	}
}

// onPartition lets a call about a partition be answered with the partition's name read.
func onPartition(do func(*http.Request, Operator, route.Partition) error) func(http.ResponseWriter, *http.Request, Operator) {
	return func(w http.ResponseWriter, r *http.Request, o Operator) {
		p, err := partitionOf(r)
		if err == nil {
			err = do(r, o, p)
		}
		done(w, http.StatusAccepted, nil, err)
	}
}

func pauseTopic(on bool) func(http.ResponseWriter, *http.Request, Operator) {
	return func(w http.ResponseWriter, r *http.Request, o Operator) {
		done(w, http.StatusAccepted, nil, o.PauseTopic(r.Context(), r.PathValue("topic"), on))
	}
}

func pausePartition(on bool) func(*http.Request, Operator, route.Partition) error {
	return func(r *http.Request, o Operator, p route.Partition) error {
		return o.PausePartition(r.Context(), p, on)
	}
}

func limitTopic(w http.ResponseWriter, r *http.Request, o Operator) {
	limits, err := readLimits(r)
	if err == nil {
		err = o.LimitTopic(r.Context(), r.PathValue("topic"), limits)
	}
	done(w, http.StatusAccepted, nil, err)
}

func limitPartition(r *http.Request, o Operator, p route.Partition) error {
	limits, err := readLimits(r)
	if err != nil {
		return err
	}
	return o.LimitPartition(r.Context(), p, limits)
}

// readLimits reads limits in place of those that hold. One that is left out is none.
func readLimits(r *http.Request) (operator.Limits, error) {
	var body struct {
		Records *float64 `json:"records_per_second"`
		Bytes   *float64 `json:"bytes_per_second"`
	}
	var limits operator.Limits
	if err := decode(r, &body); err != nil {
		return limits, err
	}
	if body.Records == nil && body.Bytes == nil {
		return limits, fmt.Errorf("%w: records_per_second and bytes_per_second are missing; 0 = none", ErrInvalid)
	}
	if body.Records != nil {
		limits.RecordsPerSecond = *body.Records
	}
	if body.Bytes != nil {
		limits.BytesPerSecond = *body.Bytes
	}
	if err := limits.Validate(); err != nil {
		return limits, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return limits, nil
}

func retryPartition(r *http.Request, o Operator, p route.Partition) error {
	return o.Retry(r.Context(), p)
}

// resetPartition refuses at once what is known to be out of range: a log's beginning only ever moves on.
func (s *Server) resetPartition(r *http.Request, o Operator, p route.Partition) error {
	to, err := readPlace(r)
	if err != nil {
		return err
	}
	if at, ok := to.Offset(); ok {
		for _, one := range s.deps.Mirror.Snapshot().Partitions {
			if one.id() == p && at < one.SourceStart {
				return fmt.Errorf("%w: to: %d: the source begins at %d", ErrInvalid, at, one.SourceStart)
			}
		}
	}
	return o.Reset(r.Context(), p, to)
}

// readPlace reads where a position is to be set. An offset may be a number or text.
func readPlace(r *http.Request) (operator.Place, error) {
	var body struct {
		To json.RawMessage `json:"to"`
	}
	if err := decode(r, &body); err != nil {
		return operator.Place{}, err
	}
	if len(body.To) == 0 {
		return operator.Place{}, fmt.Errorf("%w: to is missing: must be earliest, latest, an offset, or a time such as 2006-01-02T15:04:05Z", ErrInvalid)
	}
	text := string(body.To)
	if text[0] == '"' {
		if err := json.Unmarshal(body.To, &text); err != nil {
			return operator.Place{}, fmt.Errorf("%w: to: %w", ErrInvalid, err)
		}
	}
	to, err := operator.ParsePlace(text)
	if err != nil {
		return operator.Place{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return to, nil
}

// decode reads a body in JSON; what it must not hold is a fault. An empty one leaves `into` as it is.
func decode(r *http.Request, into any) error {
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	var wrong *json.UnmarshalTypeError
	switch err := decoder.Decode(into); {
	case errors.Is(err, io.EOF):
		return nil
	case err == nil:
		return alone(decoder)
	case errors.As(err, &wrong) && wrong.Field != "":
		return fmt.Errorf("%w: %s: %s: must be a number", ErrInvalid, wrong.Field, wrong.Value)
	default:
		return fmt.Errorf("%w: %s", ErrInvalid, misread(err))
	}
}

// alone is a fault if something stands behind the value that was read.
func alone(decoder *json.Decoder) error {
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: something stands behind the JSON of the body", ErrInvalid)
	}
	return nil
}

// misread says what is wrong with a body that could not be read as it should be.
func misread(err error) string {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return "the body is not JSON: " + syntax.Error()
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok { // whose words are about Go's types
		return "the body is not what it should be: " + wrong.Value + " in place of an object"
	}
	return "the body is not what it should be: " + strings.TrimPrefix(err.Error(), "json: ")
}
