package statemodel

import (
	"fmt"
	"time"
)

// Config bounds what would hold others up.
type Config struct {
	// ResetPatience is how long Reset goes on after the last partition that was drained. While it does, nobody mirrors those that were.
	ResetPatience time.Duration
}

// DefaultConfig is what is right without a reason to change it.
func DefaultConfig() Config { return Config{ResetPatience: 2 * time.Second} }

// Validate says what is wrong.
func (c Config) Validate() error {
	if c.ResetPatience <= 0 {
		return fmt.Errorf("reset_patience: %s: must be more than 0s", c.ResetPatience)
	}
	return nil
}
