package native

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/causeway-mirror/causeway/cluster"
	"github.com/causeway-mirror/causeway/handler"
	"github.com/causeway-mirror/causeway/internal/conf"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/spill"
)

// File is everything that the programs can be told.
type File struct {
	Route        Route        `yaml:"route"`
	Worker       Worker       `yaml:"worker"`
	Coordination Coordination `yaml:"coordination"`
	Offsets      Offsets      `yaml:"offsets"`
	Controller   Controller   `yaml:"controller"`
	Server       Server       `yaml:"server"`
	Log          Log          `yaml:"log"`
}

// Route is what is copied from where to where.
type Route struct {
	ID         string            `yaml:"id"`
	Source     cluster.Config    `yaml:"source"`
	Target     cluster.Config    `yaml:"target"`
	Topics     Topics            `yaml:"topics"`
	Start      string            `yaml:"start"`
	Isolation  string            `yaml:"isolation"`
	Delivery   string            `yaml:"delivery"`
	On         map[string]string `yaml:"on"`
	DeadLetter DeadLetter        `yaml:"dead_letter"`
	Loops      string            `yaml:"loops"`
	Limits     Limits            `yaml:"limits"`
}

// DeadLetter is where records go that the target refuses, if route.on says so.
type DeadLetter struct {
	Topic string `yaml:"topic"` // {topic} stands for the source topic
}

// Limits are what each worker takes from the source at most; 0 = no limit.
type Limits struct {
	RecordsPerSecond float64    `yaml:"records_per_second"`
	BytesPerSecond   conf.Bytes `yaml:"bytes_per_second"`
}

// Topics is which topics, under which names.
type Topics struct {
	Include          []string      `yaml:"include"`
	Exclude          []string      `yaml:"exclude"`
	Create           bool          `yaml:"create"`
	DiscoverInterval conf.Duration `yaml:"discover_interval"`

	handler.Config `yaml:",inline"`
}

// Worker is how one process copies.
type Worker struct {
	ID              string        `yaml:"id"`
	Streams         int           `yaml:"streams"`
	Fetchers        int           `yaml:"fetchers"`
	Memory          conf.Bytes    `yaml:"memory"`
	Spill           Spill         `yaml:"spill"`
	InFlight        string        `yaml:"in_flight"`
	AckWindow       int           `yaml:"ack_window"`
	CommitInterval  conf.Duration `yaml:"commit_interval"`
	ShutdownTimeout conf.Duration `yaml:"shutdown_timeout"`
}

// Spill is what may go to disk while a target takes nothing, and when it does.
type Spill struct {
	Dir      string     `yaml:"dir"`       // empty: spill below offsets.dir, where that keeps the positions
	MaxBytes conf.Bytes `yaml:"max_bytes"` // of all files; 0 = nothing goes to disk

	MemoryCapacity                int           `yaml:"memory_capacity"` // batches of a partition
	ByteCapacity                  conf.Bytes    `yaml:"byte_capacity"`   // bytes of a partition; 0 = as worker.memory allows
	ByteCapacityBufferPercentage  int           `yaml:"byte_capacity_buffer_percentage"`
	AvgItemSize                   conf.Bytes    `yaml:"avg_item_size"`
	OverflowCapacity              int64         `yaml:"overflow_capacity"` // batches of a partition on disk
	OverflowTimeout               conf.Duration `yaml:"overflow_timeout"`
	OverflowDeactivationThreshold int           `yaml:"overflow_deactivation_threshold"`
}

// Coordination is where workers and controllers meet.
type Coordination struct {
	ZooKeeper      string        `yaml:"zookeeper"` // HOST:PORT,…/chroot
	Cluster        string        `yaml:"cluster"`   // the Helix cluster
	SessionTimeout conf.Duration `yaml:"session_timeout"`
}

// Offsets is where positions are kept.
type Offsets struct {
	Store     string `yaml:"store"`     // zookeeper or file
	ZooKeeper string `yaml:"zookeeper"` // of the offsets, if not that of the coordination
	Group     string `yaml:"group"`
	Dir       string `yaml:"dir"` // of the file
}

// Controller is how assignments are made.
type Controller struct {
	ID               string        `yaml:"id"`
	Rebalance        Rebalance     `yaml:"rebalance"`
	ValidateInterval conf.Duration `yaml:"validate_interval"`
	LagInterval      conf.Duration `yaml:"lag_interval"`
	StandbyWorkers   int           `yaml:"standby_workers"`
	Stuck            Stuck         `yaml:"stuck"`
	Backup           Backup        `yaml:"backup"`
}

// Rebalance is when partitions move.
type Rebalance struct {
	Delay       conf.Duration `yaml:"delay"`
	MinInterval conf.Duration `yaml:"min_interval"`
	Threshold   float64       `yaml:"threshold"`
	Handover    string        `yaml:"handover"`
}

// Stuck is what happens to partitions that do not advance.
type Stuck struct {
	After    conf.Duration `yaml:"after"`
	MaxMoves int           `yaml:"max_moves"`
}

// Backup is where assignments are copied to.
type Backup struct {
	Dir string `yaml:"dir"`
	Git string `yaml:"git"`
}

// Log is how much is logged, and in which form.
type Log struct {
	Level  string `yaml:"level"`
	Format string `yaml:"format"`
}

// Default is what holds where a file says nothing.
func Default() File {
	return File{
		Route: Route{
			ID:     "1",
			Source: cluster.Config{Name: "source"},
			Target: cluster.Config{Name: "target"},
			Topics: Topics{Create: true, DiscoverInterval: seconds(30), Config: handler.DefaultConfig()},
			Start:  "earliest", Isolation: "read_committed", Delivery: deliveryExactlyOnce, On: defaultPolicies(), DeadLetter: DeadLetter{Topic: route.DefaultDeadLetter}, Loops: "refuse",
		},
		Worker: Worker{
			Streams: 4, Fetchers: 4, Memory: 256 << 20, InFlight: "auto", AckWindow: 1,
			CommitInterval: seconds(5), ShutdownTimeout: seconds(30), Spill: defaultSpill(),
		},
		Coordination: Coordination{Cluster: "causeway", SessionTimeout: seconds(30)},
		Offsets:      Offsets{Store: StoreZooKeeper, Dir: "./causeway-state"},
		Controller: Controller{
			Rebalance:        Rebalance{MinInterval: seconds(10), Threshold: 1.2, Handover: "sequential"},
			ValidateInterval: seconds(60), LagInterval: seconds(10), Stuck: Stuck{After: seconds(20 * 60), MaxMoves: 3},
		},
		Server: defaultServer(),
		Log:    Log{Level: "info", Format: "text"},
	}
}

func defaultSpill() Spill {
	l := spill.DefaultConfig().Limits
	return Spill{
		MemoryCapacity: l.MemoryCapacity, ByteCapacity: conf.Bytes(l.ByteCapacity), ByteCapacityBufferPercentage: l.ByteCapacityBufferPercentage,
		AvgItemSize: conf.Bytes(l.AvgItemSize), OverflowCapacity: l.OverflowCapacity, OverflowTimeout: conf.Duration(l.OverflowTimeout),
		OverflowDeactivationThreshold: l.OverflowDeactivationThreshold,
	}
}

// HandoverOverlap is the value of controller.rebalance.handover that lets a new owner begin before the old one has ended.
const HandoverOverlap = "overlap"

// Replicas is how many workers mirror each partition of a topic at once.
func (f *File) Replicas(topic string) int { return max(1, f.Route.Topics.Overrides[topic].Replicas) }

// Spill is where a worker spills to and when. Its folder is empty if none is named and none follows from where the positions are.
func (f *File) Spill() spill.Config {
	w := &f.Worker.Spill
	c := spill.DefaultConfig()
	c.Dir, c.MaxBytes = w.Dir, int64(w.MaxBytes)
	if c.Dir == "" && f.Offsets.Store == StoreFile {
		c.Dir = filepath.Join(f.Offsets.Dir, "spill")
	}
	c.Limits = spill.Limits{
		MemoryCapacity: w.MemoryCapacity, ByteCapacity: int64(w.ByteCapacity), ByteCapacityBufferPercentage: w.ByteCapacityBufferPercentage,
		AvgItemSize: int64(w.AvgItemSize), OverflowCapacity: w.OverflowCapacity, OverflowTimeout: w.OverflowTimeout.Duration(),
		OverflowDeactivationThreshold: w.OverflowDeactivationThreshold,
	}
	return c
}

// Values of offsets.store.
const (
	StoreZooKeeper = "zookeeper"
	StoreFile      = "file"
)

func seconds(n int) conf.Duration { return conf.Duration(time.Duration(n) * time.Second) }

// Load reads a YAML file over f; keys that it does not name stay as they are. Every line of the error names file and line.
func (f *File) Load(path string) error {
	return LoadInto(path, f)
}

// LoadInto reads a YAML file over a struct that holds a File.
func LoadInto(path string, into any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("--config %q: %w", path, err)
	}
	if err = conf.Decode(text, into, os.LookupEnv); err != nil {
		return Prefixed(err, path+": ")
	}
	return nil
}

// RouteName is the route as metrics and logs write it.
func (f *File) RouteName() route.Route {
	return route.Route{Source: f.Route.Source.Name, Target: f.Route.Target.Name, ID: f.Route.ID}
}

// Renamed is what a topic is called on the target, with {topic} for its own name; empty where that is not one pattern for all.
func (f *File) Renamed() string {
	t := &f.Route.Topics
	if len(t.Mapping) > 0 || t.MappingFile != "" {
		return ""
	}
	return strings.NewReplacer("{source}", f.Route.Source.Name, "{target}", f.Route.Target.Name).Replace(cmp.Or(t.Rename, "{topic}"))
}

// TargetNames gives what topics are called on the target; nothing for a topic that can't be mapped, of which its worker says why.
func (f *File) TargetNames() (func(topic string) string, error) {
	h, err := handler.New(f.Route.Topics.Config, f.Route.Source.Name, f.Route.Target.Name)
	if err != nil {
		return nil, err
	}
	return func(topic string) string {
		t, err := h.Topic(topic)
		if err != nil {
			return ""
		}
		return t.Target
	}, nil
}

// WorkerID is the name under which a worker appears: the host's if none is given, and otherwise if that is not known.
func (f *File) WorkerID(otherwise string) string { return named(f.Worker.ID, otherwise) }

// ControllerID is the same for a controller.
func (f *File) ControllerID(otherwise string) string { return named(f.Controller.ID, otherwise) }

func named(id, otherwise string) string {
	if id != "" {
		return id
	}
	if name, err := os.Hostname(); err == nil {
		return name
	}
	return otherwise
}

// Group is the consumer group under which positions are kept.
func (f *File) Group() string {
	if f.Offsets.Group != "" {
		return f.Offsets.Group
	}
	return "causeway-" + f.Route.Source.Name + "-" + f.Route.Target.Name
}

// OffsetsZooKeeper is the ZooKeeper that keeps positions.
func (f *File) OffsetsZooKeeper() string {
	if f.Offsets.ZooKeeper != "" {
		return f.Offsets.ZooKeeper
	}
	return f.Coordination.ZooKeeper
}

// InFlight is the bound of unanswered bytes per target broker; 0 lets the producer find it.
func (f *File) InFlight() (int64, error) {
	if f.Worker.InFlight == "auto" || f.Worker.InFlight == "" {
		return 0, nil
	}
	var b conf.Bytes
	if err := b.UnmarshalText([]byte(f.Worker.InFlight)); err != nil || b == 0 {
		return 0, Fault("worker.in_flight", f.Worker.InFlight, "must be auto or a size such as 8MiB")
	}
	return int64(b), nil
}

// Logger writes to w as the file says.
func (f *File) Logger(name string, w io.Writer) hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{
		Name: name, Level: hclog.LevelFromString(f.Log.Level), JSONFormat: f.Log.Format == "json", Output: w,
	})
}
