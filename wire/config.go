package wire

import (
	"errors"
	"fmt"
	"time"
)

const (
	readBufferBytes = 64 << 10 // larger reads bypass it, straight into a slab
	keepBufferBytes = 1 << 20  // a request buffer that grew larger is not kept
	pieceBytes      = 1 << 20  // an answer's deadline is renewed for each piece that arrives: a slow link is not a dead one
)

// Config bounds what a client and its connections wait for. The defaults serve; tests shorten them.
type Config struct {
	RequestTimeout time.Duration // from when a request is the oldest unanswered one to its answer; a request's own waiting comes on top
	ProduceMargin  time.Duration // the same for a Produce, on top of its own Timeout
	DialTimeout    time.Duration // for a connection, with TLS, versions and authentication
	ProbeTimeout   time.Duration // the same, and the time for an answer at first, when any broker will do and the next may be tried instead
	WriteGrace     time.Duration // for a write to end after its own answer has come
	RenewalGap     time.Duration // least time between two authentications of a connection: brokers refuse more than one a second
	RedialBackoff  time.Duration // between two tries to reach the same address, at first; doubles up to RedialLimit
	RedialLimit    time.Duration
	MaxFrameBytes  int // largest answer
}

// DefaultConfig gives the values that are used everywhere but in tests.
func DefaultConfig() Config {
	return Config{
		RequestTimeout: 30 * time.Second,
		ProduceMargin:  5 * time.Second,
		DialTimeout:    10 * time.Second,
		ProbeTimeout:   3 * time.Second,
		WriteGrace:     5 * time.Second,
		RenewalGap:     1100 * time.Millisecond,
		RedialBackoff:  200 * time.Millisecond,
		RedialLimit:    10 * time.Second,
		MaxFrameBytes:  256 << 20,
	}
}

// Validate names every value that is out of bounds.
func (c Config) Validate() error {
	var faults []error
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"RequestTimeout", c.RequestTimeout},
		{"ProduceMargin", c.ProduceMargin},
		{"DialTimeout", c.DialTimeout},
		{"ProbeTimeout", c.ProbeTimeout},
		{"WriteGrace", c.WriteGrace},
		{"RenewalGap", c.RenewalGap},
		{"RedialBackoff", c.RedialBackoff},
	} {
		if d.value <= 0 {
			faults = append(faults, fmt.Errorf("%s %s: must be positive", d.name, d.value))
		}
	}
	if c.RedialLimit < c.RedialBackoff {
		faults = append(faults, fmt.Errorf("RedialLimit %s: must not be below RedialBackoff", c.RedialLimit))
	}
	if c.MaxFrameBytes < 1<<10 {
		faults = append(faults, fmt.Errorf("MaxFrameBytes %d: must be at least 1024", c.MaxFrameBytes))
	}
	return errors.Join(faults...)
}
