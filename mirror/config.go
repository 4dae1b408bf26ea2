package mirror

import (
	"errors"
	"fmt"
	"time"
)

// Config is how lanes and streams behave.
type Config struct {
	// Streams is the number of mirror loops; partitions hash onto them.
	Streams int
	// LaneBytes is the most that one lane may hold, however long its round trips are.
	LaneBytes int64
	// LaneBatches is the most batches that one lane may hold; 0 = as many as fit LaneBytes.
	LaneBatches int
	// AckWindow is the number of batches of which only the last is sent with acks=all; 1 = each.
	AckWindow int
	// CommitInterval is the time between two commits of changed checkpoints.
	CommitInterval time.Duration
	// HoldFor is how long a lane keeps its data while its target can't be asked, before its memory goes to other lanes.
	HoldFor time.Duration
	// RetryInterval is the time after which a halted partition is tried again.
	RetryInterval time.Duration
	// ReadUncommitted says that records of open transactions are copied too, and lack while they are not.
	ReadUncommitted bool
}

// DefaultConfig is what is right without a reason to change it.
func DefaultConfig() Config {
	return Config{
		Streams: 4, LaneBytes: 32 << 20, AckWindow: 1, CommitInterval: 5 * time.Second, HoldFor: 2 * time.Second,
		RetryInterval: 10 * time.Second,
	}
}

// Validate reports all faults at once.
func (c Config) Validate() error {
	var faults []error
	if c.Streams < 1 {
		faults = append(faults, fmt.Errorf("streams: %d: must be at least 1", c.Streams))
	}
	if c.LaneBytes < leastLimit {
		faults = append(faults, fmt.Errorf("lane bytes: %d: must be at least %d, or a lane could not hold one fetch", c.LaneBytes, leastLimit))
	}
	if c.AckWindow < 1 {
		faults = append(faults, fmt.Errorf("ack_window: %d: must be at least 1", c.AckWindow))
	}
	if c.CommitInterval <= 0 {
		faults = append(faults, fmt.Errorf("commit_interval: %s: must be positive", c.CommitInterval))
	}
	if c.HoldFor <= 0 || c.RetryInterval <= 0 {
		faults = append(faults, fmt.Errorf("hold for %s, retry interval %s: must be positive", c.HoldFor, c.RetryInterval))
	}
	return errors.Join(faults...)
}

// longestPause is how long positions may stay unstored for the store's sake, where the commit interval is not longer.
const longestPause = 10 * time.Second

// commitPause is the time until the next commit after one that took so long. A store that needs long gets longer intervals, so that committing never
// becomes the load; but a commit may also have waited for a store that was away, which is no reason to come late for the next one.
func (c Config) commitPause(took time.Duration) time.Duration {
	return min(max(c.CommitInterval, 10*took), max(c.CommitInterval, longestPause))
}
