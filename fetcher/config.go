package fetcher

import (
	"errors"
	"fmt"
	"time"
)

// Config decides how partitions are fetched.
type Config struct {
	Fetchers       int           // fetchers per source broker
	ReadCommitted  bool          // leave out aborted transactions and what is not committed yet
	Rack           string        // where we are, so that the leader may send us to a nearer replica (KIP-392); "" = always the leader
	MaxBytes       int32         // largest hot fetch, in bytes
	ColdBytes      int32         // largest cold fetch, in bytes, for all partitions together
	HotWait        time.Duration // how long a hot fetch waits for data while some hot partition is withheld for lack of room
	HotIdleWait    time.Duration // the same while none is; also how long a partition with data may wait to become hot
	ColdWait       time.Duration // how long a cold fetch waits for data
	ColdAfter      time.Duration // a hot partition without data for so long becomes cold
	RequestTimeout time.Duration // for an answer, beyond the time that the broker may wait
	MetadataEvery  time.Duration // how often leaders are looked up without a reason
	MetadataMin    time.Duration // shortest time between two look-ups
	RetryMax       time.Duration // longest time between two tries of a broker or a partition
	GoneAfter      time.Duration // a topic is reported as gone once metadata has said so for this long
	RecreatedAfter time.Duration // and as recreated, once it has given another id for this long
	ReplicaFor     time.Duration // how long a preferred replica is used before the leader is asked again
}

// DefaultConfig returns what suits most routes.
func DefaultConfig() Config {
	return Config{
		Fetchers:       1,
		ReadCommitted:  true,
		MaxBytes:       16 << 20,
		ColdBytes:      256 << 10,
		HotWait:        5 * time.Millisecond,
		HotIdleWait:    50 * time.Millisecond,
		ColdWait:       500 * time.Millisecond,
		ColdAfter:      time.Second,
		RequestTimeout: 10 * time.Second,
		MetadataEvery:  time.Minute,
		MetadataMin:    100 * time.Millisecond,
		RetryMax:       5 * time.Second,
		GoneAfter:      30 * time.Second,
		RecreatedAfter: 3 * time.Second,
		ReplicaFor:     5 * time.Minute,
	}
}

// Validate reports every value that cannot work.
func (c Config) Validate() error {
	var faults []error
	if c.Fetchers < 1 {
		faults = append(faults, fmt.Errorf("fetchers %d: at least 1 is needed", c.Fetchers))
	}
	for _, v := range []struct {
		name  string
		bytes int32
	}{{"max_bytes", c.MaxBytes}, {"cold_bytes", c.ColdBytes}} {
		if v.bytes < 1<<10 {
			faults = append(faults, fmt.Errorf("%s %d: at least 1 KiB is needed to make progress", v.name, v.bytes))
		}
	}
	for _, v := range []struct {
		name string
		d    time.Duration
	}{
		{"hot_wait", c.HotWait},
		{"hot_idle_wait", c.HotIdleWait},
		{"cold_wait", c.ColdWait},
		{"cold_after", c.ColdAfter},
		{"request_timeout", c.RequestTimeout},
		{"metadata_every", c.MetadataEvery},
		{"metadata_min", c.MetadataMin},
		{"retry_max", c.RetryMax},
		{"gone_after", c.GoneAfter},
		{"recreated_after", c.RecreatedAfter},
		{"replica_for", c.ReplicaFor},
	} {
		if v.d < time.Millisecond {
			faults = append(faults, fmt.Errorf("%s %s: at least 1 ms, the protocol's unit, is needed", v.name, v.d))
		}
	}
	return errors.Join(faults...)
}
