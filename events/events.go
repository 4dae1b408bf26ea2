package events

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/causeway-mirror/causeway/purgatory"
	"github.com/causeway-mirror/causeway/route"
)

// Type says what happened. The set is closed: scripts and alert rules match on it.
type Type string

// The types that the data path raises. docs/events.md says of each what it means and what to do.
const (
	TopicDiscovered    Type = "topic_discovered"
	PartitionsAdded    Type = "partitions_added"
	SourceTruncated    Type = "source_truncated"
	TopicRecreated     Type = "topic_recreated"
	SourceDiverged     Type = "source_diverged"
	RangeSkipped       Type = "range_skipped"
	PartitionHalted    Type = "partition_halted"
	PartitionRecovered Type = "partition_recovered"
	RouteDegraded      Type = "route_degraded"
	RouteRecovered     Type = "route_recovered"
	TargetChanged      Type = "target_changed"
	DuplicatesPossible Type = "duplicates_possible"
	ForeignWriter      Type = "foreign_writer"
	DrainIncomplete    Type = "drain_incomplete"
	DeliveryDegraded   Type = "delivery_degraded"
	DiskFull           Type = "disk_full"
	TopicDeleted       Type = "topic_deleted"
	CheckpointMissing  Type = "checkpoint_missing"
	LoopRefused        Type = "loop_refused"
	LoopsUnseen        Type = "loops_unseen"
)

// The types that spill, coordination and federation raise. A mirror in one process raises none of them.
const (
	LeaseLost            Type = "lease_lost"
	WorkerJoined         Type = "worker_joined"
	WorkerLost           Type = "worker_lost"
	RebalanceStarted     Type = "rebalance_started"
	RebalanceFinished    Type = "rebalance_finished"
	LeaderChanged        Type = "leader_changed"
	ConfigSynced         Type = "config_synced"
	ConfigConflict       Type = "config_conflict"
	ACLSynced            Type = "acl_synced"
	SpillStarted         Type = "spill_started"
	SpillDrained         Type = "spill_drained"
	SpillSetAside        Type = "spill_set_aside"
	SpillCorrupt         Type = "spill_corrupt"
	SpillFailed          Type = "spill_failed"
	CheckpointOverridden Type = "checkpoint_overridden"
	CertificateExpiring  Type = "certificate_expiring"
)

// Types lists every type, in the order of docs/events.md.
func Types() []Type {
	return []Type{
		TopicDiscovered, PartitionsAdded, TopicDeleted, RouteDegraded, RouteRecovered, DiskFull,
		SourceTruncated, RangeSkipped, TopicRecreated, SourceDiverged, CheckpointMissing,
		PartitionHalted, PartitionRecovered, TargetChanged, ForeignWriter, DuplicatesPossible, DeliveryDegraded, DrainIncomplete,
		LoopRefused, LoopsUnseen,
		LeaseLost, WorkerJoined, WorkerLost, RebalanceStarted, RebalanceFinished, LeaderChanged, ConfigSynced, ConfigConflict, ACLSynced,
		SpillStarted, SpillDrained, SpillSetAside, SpillCorrupt, SpillFailed, CheckpointOverridden, CertificateExpiring,
	}
}

// Severity ranks events for those who filter.
type Severity string

// The severities, least first.
const (
	Info    Severity = "info"
	Warning Severity = "warning"
	Error   Severity = "error"
)

// Event is one happening. Offsets are source offsets unless the message says otherwise; they are nil where none apply.
type Event struct {
	ID          int64         `json:"id"`
	Time        time.Time     `json:"time"`
	Type        Type          `json:"type"`
	Severity    Severity      `json:"severity"`
	Route       string        `json:"route"`
	Topic       string        `json:"topic,omitempty"`
	Partition   *int32        `json:"partition,omitempty"`
	Worker      string        `json:"worker,omitempty"`
	Message     string        `json:"message"`
	FirstOffset *route.Offset `json:"first_offset,omitempty"`
	LastOffset  *route.Offset `json:"last_offset,omitempty"`
	Reason      string        `json:"reason,omitempty"`
}

// Of starts an event about one partition.
func Of(p route.Partition, t Type, s Severity, message string) Event {
	n := p.Partition
	return Event{Type: t, Severity: s, Topic: p.Topic, Partition: &n, Message: message}
}

// Range adds the first and last source offset that the event is about.
func (e Event) Range(first, last route.Offset) Event {
	e.FirstOffset, e.LastOffset = &first, &last
	return e
}

// Because adds the reason in one line.
func (e Event) Because(reason string) Event {
	e.Reason = reason
	return e
}

// Store keeps events beyond the process; every offsets.Store is one.
type Store interface {
	// SaveEvent appends an event, one JSON object. It is durable on return.
	SaveEvent(ctx context.Context, event []byte) error
}

// Log keeps the newest events in memory, and in a store the errors among them.
type Log struct {
	route  string
	worker string
	keep   int
	log    hclog.Logger
	total  *prometheus.CounterVec
	waits  *purgatory.Purgatory[Type] // for events of a type, or of any ("")

	mu       sync.Mutex
	events   []Event
	nextID   int64
	store    Store   // nil: nothing is kept beyond the process
	most     int     // that the store keeps
	unstored []Event // errors, at most `most`

	storing sync.Mutex // one Flush at a time; taken before mu
}

// NewLog returns a log that keeps the newest `keep` events of a route as seen by one worker.
func NewLog(r route.Route, worker string, keep int, log hclog.Logger, reg prometheus.Registerer) *Log {
	l := &Log{
		route: r.String(), worker: worker, keep: keep, log: log,
		total: promauto.With(reg).NewCounterVec(prometheus.CounterOpts{
			Name: "causeway_events_total", Help: "Events by type.", ConstLabels: prometheus.Labels{"route": r.String()},
		}, []string{"type"}),
		waits:  purgatory.New[Type]("events", r.String(), reg),
		nextID: time.Now().UnixMicro(),
	}
	for _, t := range Types() {
		l.total.WithLabelValues(string(t)) // from 0 on: of a series that begins at 1 nobody sees that it grew
	}
	return l
}

// After lets ids begin behind those of an earlier process, also if the clock was set back since.
func (l *Log) After(id int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.nextID = max(l.nextID, id+1)
}

// Keep lets Flush store errors from now on. Of those that wait for it the newest `most` are enough: the store keeps no more.
func (l *Log) Keep(store Store, most int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.store, l.most = store, most
}

// Flush stores the errors that were emitted before the call and are not stored yet, oldest first. Who commits a position calls it first, so
// that what excuses an offset is never lost when the offset is not. What an error leaves unstored is tried again by the next Flush.
func (l *Log) Flush(ctx context.Context) error {
	l.storing.Lock()
	defer l.storing.Unlock()
	l.mu.Lock()
	waiting := slices.Clone(l.unstored)
	l.mu.Unlock()
	for i := range waiting {
		text, err := json.Marshal(&waiting[i])
		if err == nil {
			err = l.store.SaveEvent(ctx, text)
		}
		if err != nil {
			return fmt.Errorf("store event %d: %w", waiting[i].ID, err)
		}
		l.mu.Lock()
		l.unstored = slices.DeleteFunc(l.unstored, func(e Event) bool { return e.ID <= waiting[i].ID })
		l.mu.Unlock()
	}
	return nil
}

// Adopt keeps an event of another process, as it is but for its id, so that who asks for what is newer is told of it. It is that process's to
// count, to log and to store.
func (l *Log) Adopt(e Event) Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.keepLocked(e)
}

// keepLocked numbers an event, keeps it in memory and tells who waits for it.
func (l *Log) keepLocked(e Event) Event {
	e.ID = l.nextID
	l.nextID++
	l.events = append(l.events, e)
	if len(l.events) > l.keep {
		l.events = append(l.events[:0:0], l.events[len(l.events)-l.keep:]...)
	}
	l.waits.Signal(e.Type)
	l.waits.Signal(anyType)
	return e
}

// Emit numbers, stamps, counts, logs and keeps an event, and returns it as kept.
func (l *Log) Emit(e Event) Event {
	l.mu.Lock()
	e.Time, e.Route, e.Worker = time.Now(), l.route, l.worker
	e = l.keepLocked(e)
	if l.store != nil && e.Severity == Error {
		l.unstored = append(l.unstored, e)
		l.unstored = l.unstored[max(0, len(l.unstored)-l.most):]
	}
	l.mu.Unlock()
	l.total.WithLabelValues(string(e.Type)).Inc()
	l.write(e)
	return e
}

func (l *Log) write(e Event) {
	args := []any{"type", string(e.Type), "message", e.Message, "route", e.Route}
	if e.Topic != "" {
		args = append(args, "topic", e.Topic)
	}
	if e.Partition != nil {
		args = append(args, "partition", *e.Partition)
	}
	if e.FirstOffset != nil {
		args = append(args, "first_offset", *e.FirstOffset, "last_offset", *e.LastOffset)
	}
	if e.Reason != "" {
		args = append(args, "reason", e.Reason)
	}
	switch e.Severity {
	case Error:
		l.log.Error("event", args...)
	case Warning:
		l.log.Warn("event", args...)
	case Info:
		l.log.Info("event", args...)
	}
}

// Since returns the kept events with an id greater than id, oldest first.
func (l *Log) Since(id int64) []Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	first, _ := slices.BinarySearchFunc(l.events, id+1, func(e Event, id int64) int { return cmp.Compare(e.ID, id) })
	return slices.Clone(l.events[first:])
}

// anyType is what those wait for who don't say for which type.
const anyType Type = ""

// Await returns true as soon as ready says so, which is asked at the call and at each event of a type ("" = of any); false if ctx ends first, or
// after limit (0 = none), or when the log was closed. ready must not block; it may call Since.
func (l *Log) Await(ctx context.Context, limit time.Duration, of Type, ready func() bool) bool {
	return l.waits.Wait(ctx, limit, ready, of) == purgatory.Completed
}

// Close lets all who wait go. Events are kept, counted and logged as before.
func (l *Log) Close() { l.waits.Close() }
