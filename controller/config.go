package controller

import (
	"errors"
	"fmt"
	"time"

	"github.com/causeway-mirror/causeway/controller/assign"
)

// Config is how a route's cluster is led. Begin with DefaultConfig.
type Config struct {
	Discovery Discovery
	Rebalance Rebalance
	Lag       Lag
	Stuck     Stuck
	Backup    Backup
	// Replicas is how many workers mirror each partition of a topic at once, 1 or 2; nil: one.
	Replicas func(topic string) int
	// WeighInterval is how often loads are measured.
	WeighInterval time.Duration
	// ValidateInterval is how often ideal states, external views and the source are compared.
	ValidateInterval time.Duration
}

// Discovery says how topics come to be mirrored without being asked for.
type Discovery struct {
	Interval time.Duration // 0 = never
	First    time.Duration // until the first run of a term
	// Refuse says why a topic of the source is not mirrored; empty when it shall be. Without Refuse nothing is found by name.
	Refuse func(topic string) (reason string)
	// NeedTarget leaves out topics that the target does not have.
	NeedTarget bool
	// Expand lets a topic grow when the source's has.
	Expand bool
}

// Rebalance says when partitions move.
type Rebalance struct {
	// Delay is how long a worker may be gone before its partitions move, and how long a new one waits for its share.
	Delay time.Duration
	// Period is how often the balance of load is looked at; 0 = only when workers come and go.
	Period time.Duration
	// MinInterval is the least time between two moves for the balance of load.
	MinInterval time.Duration
	Threshold   float64 // see assign.Options
	// Standbys hold nothing while as many others work; MaxActive bounds the workers that hold something, 0 = no bound.
	Standbys, MaxActive int
}

// Lag says how lag is measured and what counts as lagging.
type Lag struct {
	Interval time.Duration // 0 = never
	First    time.Duration // until the first run of a term
	// A partition lags when it is further behind than both.
	MinRecords int64
	MinTime    time.Duration
	// Valid is how old a sample may be to decide anything.
	Valid time.Duration
}

// Stuck says when a partition without progress tries another worker.
type Stuck struct {
	After    time.Duration // 0 = never
	MaxMoves int           // 0 = never
}

// Backup says where the assignment is written.
type Backup struct {
	Dir  string // "" = nowhere
	Name string // part of the file names
	Git  string // a repository that Dir is a clone of and that is pushed to; "" = none
	// Interval is the least time between two backups; one is made when something has changed.
	Interval time.Duration
}

// DefaultConfig leads quickly: what uReplicator waits minutes for happens in seconds.
func DefaultConfig() Config {
	return Config{
		Discovery:        Discovery{Interval: 30 * time.Second, Expand: true},
		Rebalance:        Rebalance{Period: time.Minute, MinInterval: 10 * time.Second, Threshold: assign.DefaultThreshold},
		Lag:              Lag{Interval: 10 * time.Second, MinRecords: 100_000, MinTime: 15 * time.Minute, Valid: 30 * time.Minute},
		Stuck:            Stuck{After: 20 * time.Minute, MaxMoves: 3},
		Backup:           Backup{Interval: time.Minute},
		WeighInterval:    10 * time.Second,
		ValidateInterval: time.Minute,
	}
}

// Validate reports all faults at once.
func (c Config) Validate() error {
	var faults []error
	bad := func(key string, value any, reason string) {
		faults = append(faults, fmt.Errorf("%s: %v: %s", key, value, reason))
	}
	for _, d := range []struct {
		key   string
		value time.Duration
	}{
		{"discovery.interval", c.Discovery.Interval},
		{"discovery.first", c.Discovery.First},
		{"rebalance.delay", c.Rebalance.Delay},
		{"rebalance.period", c.Rebalance.Period},
		{"rebalance.min_interval", c.Rebalance.MinInterval},
		{"lag.interval", c.Lag.Interval},
		{"lag.first", c.Lag.First},
		{"lag.min_time", c.Lag.MinTime},
		{"lag.valid", c.Lag.Valid},
		{"stuck.after", c.Stuck.After},
		{"backup.interval", c.Backup.Interval},
	} {
		if d.value < 0 {
			bad(d.key, d.value, "must not be negative")
		}
	}
	if c.WeighInterval <= 0 {
		bad("weigh_interval", c.WeighInterval, "must be more than 0")
	}
	if c.ValidateInterval <= 0 {
		bad("validate_interval", c.ValidateInterval, "must be more than 0")
	}
	if c.Rebalance.Threshold < 1 {
		bad("rebalance.threshold", c.Rebalance.Threshold, "must be at least 1: how many times its share a worker may carry")
	}
	for key, n := range map[string]int{
		"rebalance.standbys": c.Rebalance.Standbys, "rebalance.max_active": c.Rebalance.MaxActive, "stuck.max_moves": c.Stuck.MaxMoves,
	} {
		if n < 0 {
			bad(key, n, "must not be negative")
		}
	}
	if c.Lag.MinRecords < 0 {
		bad("lag.min_records", c.Lag.MinRecords, "must not be negative")
	}
	if c.Backup.Git != "" && c.Backup.Dir == "" {
		bad("backup.dir", "", "must name the folder of the clone when backup.git is given")
	}
	return errors.Join(faults...)
}
