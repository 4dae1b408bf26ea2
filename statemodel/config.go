package statemodel

import (
	"errors"
	"fmt"
	"time"
)

// Config is how partitions in ERROR are tried anew.
type Config struct {
	// RetryLeast is the pause after the first failure. It doubles with each one in a row, up to RetryMost.
	RetryLeast, RetryMost time.Duration
}

// DefaultConfig is what is right without a reason to change it.
func DefaultConfig() Config { return Config{RetryLeast: time.Second, RetryMost: time.Minute} }

// Validate reports all faults at once.
func (c Config) Validate() error {
	var faults []error
	if c.RetryLeast <= 0 {
		faults = append(faults, fmt.Errorf("retry_least: %s: must be more than 0s", c.RetryLeast))
	}
	if c.RetryMost < c.RetryLeast {
		faults = append(faults, fmt.Errorf("retry_most: %s: must be at least retry_least, which is %s", c.RetryMost, c.RetryLeast))
	}
	return errors.Join(faults...)
}

// pause is how long a partition stays in ERROR that was in it so many times before, in a row.
func (c Config) pause(before int) time.Duration {
	d := c.RetryLeast
	for range before {
		if d >= c.RetryMost/2 {
			return c.RetryMost
		}
		d *= 2
	}
	return d
}
