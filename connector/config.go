package connector

import (
	"errors"
	"fmt"
	"time"

	"github.com/causeway-mirror/causeway/loops"
	"github.com/causeway-mirror/causeway/mirror"
	"github.com/causeway-mirror/causeway/producer"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/spill"
)

// Values of the settings that are words.
const (
	ReadCommitted   = "read_committed"
	ReadUncommitted = "read_uncommitted"

	StartEarliest = "earliest"
	StartLatest   = "latest"
)

// Config is how a route runs on a worker.
type Config struct {
	Streams     int   // mirror loops
	Fetchers    int   // fetchers per source broker
	MemoryBytes int64 // of the whole process; buffers get 60 %
	// InFlightBytes bounds what is unanswered per target broker; 0 = measured.
	InFlightBytes   int64
	AckWindow       int // batches per acknowledgement window; 1 = off
	CommitInterval  time.Duration
	ShutdownTimeout time.Duration // for draining at the end
	Isolation       string        // read_committed or read_uncommitted
	// Start is where partitions of topics begin that the route's first discovery found: earliest, latest, or a time (RFC 3339).
	Start        string
	CreateTopics bool // on the target
	// On is what becomes of partitions in trouble.
	On mirror.Policies
	// DeadLetter is the topic on the target for records that it refuses; {topic} in it stands for the source topic.
	DeadLetter string
	// Merge lets small batches of partitions with replicas be merged while they stay behind.
	Merge bool
	// Share says that other workers run the partitions that this one does not.
	Share bool
	// Company says of a topic who else may run one of its partitions at the same time by intention; nil: nobody.
	Company func(topic string) mirror.Company
	// Selection is what the route takes of its source by name, for the markers that keep topics from being copied in a circle; without patterns topics
	// are told by others.
	Selection loops.Selection
	// DropLoops leaves out batches that another route has brought from where this one copies to, instead of refusing the topic. Then no other worker
	// shares the route.
	DropLoops bool
	// LoopInterval is how often the markers of both clusters are looked at.
	LoopInterval time.Duration
	// Limits are what all partitions of this worker together may take from the source.
	Limits mirror.Limits
	// Spill is what goes to disk while the target takes nothing; without MaxBytes nothing does.
	Spill spill.Config
}

// DefaultConfig is what is right without a reason to change it.
func DefaultConfig() Config {
	return Config{
		Streams: 4, Fetchers: 4, MemoryBytes: 256 << 20, AckWindow: 1, CommitInterval: 5 * time.Second, ShutdownTimeout: 30 * time.Second,
		Isolation: ReadCommitted, Start: StartEarliest, CreateTopics: true, On: mirror.DefaultPolicies(), DeadLetter: route.DefaultDeadLetter,
		Merge: true, LoopInterval: 30 * time.Second, Spill: spill.DefaultConfig(),
	}
}

const (
	leastMemory  = 64 << 20
	bufferShare  = 0.6
	idleShare    = 8 // of the buffers: what is kept for reuse
	mergeBytes   = 512 << 10
	mostAckBatch = 10_000
)

// Validate reports all faults at once.
func (c Config) Validate() error {
	var faults []error
	bad := func(key string, value any, reason string) {
		faults = append(faults, fmt.Errorf("%s: %v: %s", key, value, reason))
	}
	if c.Streams < 1 {
		bad("streams", c.Streams, "must be at least 1")
	}
	if c.Fetchers < 1 {
		bad("fetchers", c.Fetchers, "must be at least 1")
	}
	if c.MemoryBytes < leastMemory {
		bad("memory", c.MemoryBytes, "must be at least 64MiB: the process itself needs a part of it")
	}
	if c.InFlightBytes < 0 {
		bad("in_flight", c.InFlightBytes, "must be auto or a number of bytes")
	}
	if c.AckWindow < 1 || c.AckWindow > mostAckBatch {
		bad("ack_window", c.AckWindow, "must be 1 to 10000 batches")
	}
	if c.CommitInterval < 10*time.Millisecond {
		bad("commit_interval", c.CommitInterval, "must be at least 10ms")
	}
	if c.LoopInterval <= 0 {
		bad("loop_interval", c.LoopInterval, "must be positive")
	}
	if c.DropLoops && c.Share {
		bad("loops", "drop", "needs a process that mirrors alone: several workers can't agree on one marker")
	}
	if c.DropLoops && c.On.ForeignWriter == mirror.Halt {
		bad("on.foreign_writer", mirror.Halt, "can't be told where loops is drop: both clusters are written to by others")
	}
	if c.ShutdownTimeout <= 0 {
		bad("shutdown_timeout", c.ShutdownTimeout, "must be positive")
	}
	if c.Isolation != ReadCommitted && c.Isolation != ReadUncommitted {
		bad("isolation", c.Isolation, "must be read_committed or read_uncommitted")
	}
	if c.DeadLetter == "" {
		bad("dead_letter.topic", `""`, "must name a topic, in which {topic} stands for the source topic")
	}
	if _, err := ParseStart(c.Start); err != nil {
		bad("start", c.Start, err.Error())
	}
	if c.Limits.RecordsPerSecond < 0 || c.Limits.BytesPerSecond < 0 {
		bad("limits", c.Limits, "must not be negative; 0 = none")
	}
	if c.spills() {
		faults = append(faults, c.Spill.Validate())
	}
	return errors.Join(append(faults, c.On.Validate())...)
}

// errStart says what start may be.
var errStart = errors.New("must be earliest, latest, or a time such as 2006-01-02T15:04:05Z")

// ParseStart gives the timestamp that ListOffsets is asked for: -2 earliest, -1 latest, else milliseconds since 1970.
func ParseStart(start string) (int64, error) {
	switch start {
	case StartEarliest, "":
		return -2, nil
	case StartLatest:
		return -1, nil
	}
	t, err := time.Parse(time.RFC3339, start)
	if err != nil {
		return 0, errStart
	}
	return max(t.UnixMilli(), 0), nil // nothing is older, and what is below is no time to a broker
}

func (c Config) mirror() mirror.Config {
	m := mirror.DefaultConfig()
	m.Streams, m.AckWindow, m.CommitInterval = c.Streams, c.AckWindow, c.CommitInterval
	m.ReadUncommitted = c.Isolation == ReadUncommitted
	m.LaneBytes = min(m.LaneBytes, int64(float64(c.MemoryBytes)*bufferShare)/4)
	if c.spills() {
		m.LaneBytes, m.LaneBatches = c.laneLimits(m.LaneBytes)
	}
	return m
}

func (c Config) producer() producer.Config {
	p := producer.DefaultConfig()
	p.InFlightBytes = c.InFlightBytes
	return p
}
