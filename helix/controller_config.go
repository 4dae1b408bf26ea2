package helix

import (
	"errors"
	"fmt"
	"time"
)

// ControllerConfig is how a controller leads its cluster.
type ControllerConfig struct {
	Config
	// Name is the controller's own, under which it is written into LEADER.
	Name string
	// Debounce is how long changes are collected before they are read and acted on.
	Debounce time.Duration
	// ViewInterval is the least time between two writes of external views.
	ViewInterval time.Duration
	// MaxOutstanding bounds the messages in one instance's queue: ZooKeeper answers a list of more than about 26,000 no more.
	MaxOutstanding int
	// StaleAfter is how long a message may wait that can't be carried out any more before it is removed.
	StaleAfter time.Duration
	// Overlap lets a new owner come ONLINE, and begin, while the old one still is. Only for participants that may have two owners at once.
	Overlap bool
	// Begun says whether an instance that is ONLINE with a partition does its work already, so that an old owner may go. It is asked again and again,
	// and must not wait. nil: whoever is ONLINE does.
	Begun func(resource, partition, instance string) bool
}

// DefaultControllerConfig lacks the address, the cluster and the name.
func DefaultControllerConfig() ControllerConfig {
	return ControllerConfig{
		Config: DefaultConfig(), Debounce: 20 * time.Millisecond, ViewInterval: 50 * time.Millisecond, MaxOutstanding: 2000,
		StaleAfter: time.Minute,
	}
}

const (
	mostDebounce    = 10 * time.Second
	mostOutstanding = 20_000
)

// Validate reports all faults at once.
func (c ControllerConfig) Validate() error {
	faults := []error{c.Config.Validate()}
	if err := checkName("controller", c.Name); err != nil {
		faults = append(faults, err)
	}
	for _, row := range []struct {
		key   string
		value time.Duration
	}{{"debounce", c.Debounce}, {"view_interval", c.ViewInterval}} {
		if row.value < 0 || row.value > mostDebounce {
			faults = append(faults, fmt.Errorf("%s: %s: must be 0s to 10s", row.key, row.value))
		}
	}
	if c.MaxOutstanding < 1 || c.MaxOutstanding > mostOutstanding {
		faults = append(faults, fmt.Errorf("max_outstanding: %d: must be 1 to %d, or a queue could not be listed", c.MaxOutstanding, mostOutstanding))
	}
	if c.StaleAfter < time.Second {
		faults = append(faults, fmt.Errorf("stale_after: %s: must be at least 1s: a participant needs time to remove it itself", c.StaleAfter))
	}
	return errors.Join(faults...)
}
