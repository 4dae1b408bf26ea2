package spill

import (
	"errors"
	"fmt"
	"time"
)

// Config is what a worker's spill may use.
type Config struct {
	Dir          string        // of this process alone
	MaxBytes     int64         // of all files together, with those that are set aside; at least 1
	SegmentBytes int64         // of a file, after which the next one begins
	SyncInterval time.Duration // at most this long after a write it is on disk
	Limits       Limits        // of each queue
}

// Limits is how much of a queue stays in memory and when it goes to disk. They may be changed while the queue is in use.
type Limits struct {
	MemoryCapacity                int           // most items in memory; 0 = everything goes to disk
	ByteCapacity                  int64         // most bytes in memory, counted in slots of AvgItemSize; 0 = bounded by MemoryCapacity alone
	ByteCapacityBufferPercentage  int           // share of ByteCapacity that is kept free for what an item costs beside its bytes
	AvgItemSize                   int64         // bytes of a slot: an item of n bytes takes ceil(n / AvgItemSize) of them, at least one
	OverflowCapacity              int64         // most items on disk; 0 = nothing goes to disk
	OverflowTimeout               time.Duration // how long a put waits for room in memory; not at all while the queue overflows
	OverflowDeactivationThreshold int           // percent of memory that must be free before an overflow ends
}

// DefaultConfig returns the defaults; Dir and MaxBytes have none.
func DefaultConfig() Config {
	return Config{
		SegmentBytes: 64 << 20, SyncInterval: time.Second,
		Limits: Limits{
			MemoryCapacity: 10_000, ByteCapacityBufferPercentage: 20, AvgItemSize: 64 << 10,
			OverflowCapacity: 100_000_000, OverflowTimeout: 3 * time.Second, OverflowDeactivationThreshold: 5,
		},
	}
}

// Validate tells all faults at once.
func (c Config) Validate() error {
	faults := []error{c.Limits.Validate()}
	if c.Dir == "" {
		faults = append(faults, errors.New(`dir "": must name a folder`))
	}
	if c.MaxBytes < 1 {
		faults = append(faults, fmt.Errorf(`max_bytes "%d": must be at least 1`, c.MaxBytes))
	}
	if c.SegmentBytes < 1 {
		faults = append(faults, fmt.Errorf(`segment_bytes "%d": must be at least 1`, c.SegmentBytes))
	}
	if c.SyncInterval <= 0 {
		faults = append(faults, fmt.Errorf(`sync_interval "%s": must be positive`, c.SyncInterval))
	}
	return errors.Join(faults...)
}

// Validate tells all faults at once.
func (l Limits) Validate() error {
	var faults []error
	for _, n := range []struct {
		key  string
		got  int64
		most int64
	}{
		{"memory_capacity", int64(l.MemoryCapacity), 0},
		{"byte_capacity", l.ByteCapacity, 0},
		{"byte_capacity_buffer_percentage", int64(l.ByteCapacityBufferPercentage), 99},
		{"overflow_capacity", l.OverflowCapacity, 0},
		{"overflow_deactivation_threshold", int64(l.OverflowDeactivationThreshold), 100},
	} {
		switch {
		case n.got < 0:
			faults = append(faults, fmt.Errorf(`%s "%d": must not be negative`, n.key, n.got))
		case n.most > 0 && n.got > n.most:
			faults = append(faults, fmt.Errorf(`%s "%d": must be at most %d`, n.key, n.got, n.most))
		}
	}
	if l.AvgItemSize < 1 {
		faults = append(faults, fmt.Errorf(`avg_item_size "%d": must be at least 1`, l.AvgItemSize))
	}
	if l.OverflowTimeout < 0 {
		faults = append(faults, fmt.Errorf(`overflow_timeout "%s": must not be negative`, l.OverflowTimeout))
	}
	if l.MemoryCapacity == 0 && l.OverflowCapacity == 0 {
		faults = append(faults, errors.New(`memory_capacity "0": must be at least 1 where overflow_capacity is 0, or there is room for nothing`))
	}
	return errors.Join(faults...)
}

// slots is how many an item of n bytes takes.
func (l Limits) slots(n int) int64 { return max(1, (int64(n)+l.AvgItemSize-1)/l.AvgItemSize) }

// allSlots is how many there are, 0 if bytes are not counted.
func (l Limits) allSlots() int64 {
	if l.ByteCapacity == 0 {
		return 0
	}
	return max(1, l.ByteCapacity*int64(100-l.ByteCapacityBufferPercentage)/100/l.AvgItemSize)
}

// holds reports whether items and slots fit into memory beside nothing else.
func (l Limits) holds(items int, slots int64) bool {
	all := l.allSlots()
	return items <= l.MemoryCapacity && (all == 0 || slots <= all)
}

// relaxed reports whether enough is free beside items and slots for an overflow to end.
func (l Limits) relaxed(items int, slots int64) bool {
	free := func(used, all int64) bool {
		return used == 0 || (all-used)*100 >= all*int64(l.OverflowDeactivationThreshold) && used < all
	}
	all := l.allSlots()
	return free(int64(items), int64(l.MemoryCapacity)) && (all == 0 || free(slots, all))
}
