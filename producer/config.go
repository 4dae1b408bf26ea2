package producer

import (
	"errors"
	"fmt"
	"time"
)

// Config is how the producer sends.
type Config struct {
	// MaxRequestBytes is the size up to which batches of different partitions share a request.
	MaxRequestBytes int
	// InFlightBytes bounds what is unanswered on one connection; 0 = measured: twice bandwidth × round trip, at most 500 ms of queue.
	InFlightBytes int64
	// RequestTimeout is the broker's time to replicate, and part of ours to wait for the answer.
	RequestTimeout time.Duration
	// Linger is how long a request that would not hold every active lane waits for the others while the pipe is busy.
	Linger time.Duration
	// Late is the least time after which an answer that holds up others is called late.
	Late time.Duration
}

// DefaultConfig is what is right without a reason to change it.
func DefaultConfig() Config {
	return Config{
		MaxRequestBytes: 1 << 20, RequestTimeout: 30 * time.Second, Linger: time.Millisecond, Late: time.Second,
	}
}

// Validate reports all faults at once.
func (c Config) Validate() error {
	var faults []error
	if c.MaxRequestBytes < 1 || c.MaxRequestBytes > 64<<20 {
		faults = append(faults, fmt.Errorf("max request bytes: %d: must be 1 to 64 MiB, brokers refuse more than 100 MiB", c.MaxRequestBytes))
	}
	if c.InFlightBytes < 0 {
		faults = append(faults, fmt.Errorf("in_flight: %d: must not be negative", c.InFlightBytes))
	}
	if c.RequestTimeout <= 0 || c.Late <= 0 || c.Linger < 0 {
		faults = append(faults, fmt.Errorf("request timeout %s, late %s, linger %s: must be positive", c.RequestTimeout, c.Late, c.Linger))
	}
	return errors.Join(faults...)
}
