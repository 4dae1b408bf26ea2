package api

import (
	"context"
	"time"

	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/route"
)

// Mirror is what the API needs to know of the running mirror.
type Mirror interface {
	// Snapshot returns the route's state and every partition's as they are now. The caller owns the answer.
	Snapshot() Snapshot
	// Excluded lists the topics of the source that are not mirrored, each with the reason.
	Excluded() []Excluded
	// WaitCaughtUp returns once the acked positions of a topic ("" means all) lie within lag records of the source's ends as they were at the
	// call. When ctx ends first, ok is false and present is the lag that remained; an error says why that is not known.
	WaitCaughtUp(ctx context.Context, topic string, lag int64) (present int64, ok bool, err error)
}

// Events is the part of an event log that the API reads.
type Events interface {
	// Since returns the kept events with a greater id, oldest first.
	Since(id int64) []events.Event
	// Await returns true as soon as ready says so, which is asked at the call and at each event of a type ("" = of any); false if ctx ends first, or
	// after limit (0 = none).
	Await(ctx context.Context, limit time.Duration, of events.Type, ready func() bool) bool
}

// Snapshot is the state of a route at one moment.
type Snapshot struct {
	State      string // one of the State constants
	Reason     string // why, when State is not StateMirroring
	Partitions []Partition
}

// States of a route and of its partitions.
const (
	StateStarting  = "starting"
	StateMirroring = "mirroring"
	StatePaused    = "paused" // of partitions alone
	StateSuspended = "suspended"
	StateHalted    = "halted"
	StateDegraded  = "degraded"
	StateDraining  = "draining"
	StateStopped   = "stopped"
	StateStandby   = "standby" // of routes alone, on a controller that another one leads

	StateUnassigned = "unassigned" // in a cluster: no worker has it
)

// Partition is one source partition as the API shows it. Offsets are -1 where they are not known.
type Partition struct {
	Topic           string `json:"topic"`
	Partition       int32  `json:"partition"`
	TargetTopic     string `json:"target_topic"`
	TargetPartition int32  `json:"target_partition"`
	Worker          string `json:"worker"`
	State           string `json:"state"`
	Reason          string `json:"reason"`

	Extent

	Position         route.Offset `json:"position"`
	Acked            route.Offset `json:"acked"`
	Committed        route.Offset `json:"committed"`
	TargetEnd        route.Offset `json:"target_end"`
	LagRecords       int64        `json:"lag_records"`
	LagBytes         int64        `json:"lag_bytes"` // about
	LagSeconds       float64      `json:"lag_seconds"`
	RecordsPerSecond float64      `json:"records_per_second"`
	BytesPerSecond   float64      `json:"bytes_per_second"`
	SpilledBytes     int64        `json:"spilled_bytes"` // on its worker's disk
	Path             string       `json:"path"`          // raw or rewrite
	LastError        string       `json:"last_error"`
}

// Extent is what the source has of a partition.
type Extent struct {
	SourceStart      route.Offset `json:"source_start"`
	SourceEnd        route.Offset `json:"source_end"`
	SourceLastStable route.Offset `json:"source_last_stable"`
}

// Topic is the sum of a topic's partitions.
type Topic struct {
	Topic            string         `json:"topic"`
	TargetTopic      string         `json:"target_topic"`
	PartitionCount   int            `json:"partition_count"`
	States           map[string]int `json:"states"`
	LagRecords       int64          `json:"lag_records"` // of the partitions whose lag is known; -1 = of none
	LagSeconds       float64        `json:"lag_seconds"` // of the partition that is furthest behind
	RecordsPerSecond float64        `json:"records_per_second"`
	BytesPerSecond   float64        `json:"bytes_per_second"`
	Partitions       []Partition    `json:"partitions,omitempty"` // only when one topic is asked for
	Trend            []*float64     `json:"trend,omitempty"`      // only when asked for
}

// Status is the answer of GET /api/v1/status.
type Status struct {
	Role          string  `json:"role"`
	Version       string  `json:"version"`
	Leader        string  `json:"leader"`
	LeaderAddress string  `json:"leader_address"` // where another process answers for the route and its address is known
	Route         Route   `json:"route"`
	Workers       int     `json:"workers"`
	UptimeSeconds float64 `json:"uptime_seconds"`
}

// Route is a route with its totals.
type Route struct {
	Name             string         `json:"name"`
	State            string         `json:"state"`
	Reason           string         `json:"reason"`
	Partitions       map[string]int `json:"partitions"`  // by state
	LagRecords       int64          `json:"lag_records"` // of the partitions whose lag is known; -1 = of none
	RecordsPerSecond float64        `json:"records_per_second"`
	BytesPerSecond   float64        `json:"bytes_per_second"`
}

// Excluded is a topic of the source that is not mirrored.
type Excluded struct {
	Topic  string `json:"topic"`
	Reason string `json:"reason"`
}

// List is the answer of every list. Next is the value of `after` for the next page, empty on the last one.
type List[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next"`
}

// Failure is the body of every answer that is an error.
type Failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Waited is the answer of GET /api/v1/wait; with status 408 Code and Message are set too.
type Waited struct {
	Code       string `json:"code,omitempty"`
	Message    string `json:"message,omitempty"`
	Topic      string `json:"topic"`
	LagRecords int64  `json:"lag_records"`
}

// Readiness is the answer of GET /readyz.
type Readiness struct {
	Ready  bool     `json:"ready"`
	Reason string   `json:"reason"`
	Halted []string `json:"halted"` // partitions that are halted, also when the rest is fine
}

// Identity says who answers.
type Identity struct {
	Role     string // standalone, worker, controller
	Version  string
	Revision string // of the source, as git names it
	Worker   string
	Route    route.Route
	Started  time.Time
}
