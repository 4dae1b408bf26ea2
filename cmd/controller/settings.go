package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/causeway-mirror/causeway/api"
	"github.com/causeway-mirror/causeway/cluster"
	"github.com/causeway-mirror/causeway/controller"
	"github.com/causeway-mirror/causeway/helix"
	"github.com/causeway-mirror/causeway/internal/graphite"
	"github.com/causeway-mirror/causeway/internal/native"
	"github.com/causeway-mirror/causeway/offsets/zk"
	"github.com/causeway-mirror/causeway/route"
)

// settings are everything that the controller was told, by the native file or by the old options.
type settings struct {
	coordination   helix.ControllerConfig
	server         native.Server
	hostname       string // under which others reach this process; empty: what server.listen says
	route          route.Route
	source, target endpoint
	mapped         func(topic string) string // a topic's name on the target; empty if only the workers know it
	deadLetter     string                    // pattern of the dead-letter topics' names
	committed      bool                      // lag ends at the last stable offset
	controller     controller.Config
	positions      zk.Config // without an address lag is not measured
	compat         api.CompatConfig
	compares       bool // the old REST knows the source
	chaperone      string
	graphite       graphite.Config // without an address nothing is reported
	log            native.Log
	warnings       []string
}

// endpoint is a Kafka cluster: its brokers, or the ZooKeeper where they are registered; neither when it is not known.
type endpoint struct {
	cluster   cluster.Config
	zookeeper string
}

func (e endpoint) known() bool { return len(e.cluster.Bootstrap) > 0 || e.zookeeper != "" }

// read understands a command line: the native file, or the old options.
func read(args []string) (settings, error) {
	if path, ok := nativeFile(args); ok {
		return fromNative(path)
	}
	return fromOptions(args)
}

// nativeFile finds the file if the line names one in YAML and nothing else; the old option of the same name takes properties.
func nativeFile(args []string) (string, bool) {
	path := ""
	switch len(args) {
	case 1:
		name, value, _ := strings.Cut(strings.TrimLeft(args[0], "-"), "=")
		if name != "config" || !strings.HasPrefix(args[0], "-") {
			return "", false
		}
		path = value
	case 2:
		if args[0] != "-config" && args[0] != "--config" {
			return "", false
		}
		path = args[1]
	}
	return path, path != "" && !strings.HasSuffix(path, ".properties")
}

// fromNative reads the native file; all faults at once.
func fromNative(path string) (settings, error) {
	f := native.Default()
	fileErr := f.Load(path)
	judged := errors.Join(f.ValidateRoute(), f.ValidateCoordination(), f.ValidateOffsets(native.StoreZooKeeper), f.ValidateController(), f.ValidateServer(), f.ValidateLog())
	if err := native.Judged(path, fileErr, judged); err != nil {
		return settings{}, err
	}
	filter, err := f.Filter()
	if err != nil {
		return settings{}, err
	}
	c := controller.DefaultConfig()
	c.Discovery.Interval = f.Route.Topics.DiscoverInterval.Duration()
	c.Discovery.NeedTarget = !f.Route.Topics.Create
	if len(f.Route.Topics.Include) > 0 {
		c.Discovery.Refuse = func(topic string) string { return filter.Refusal(topic, false) }
	}
	r := f.Controller.Rebalance
	c.Rebalance.Delay, c.Rebalance.MinInterval = r.Delay.Duration(), r.MinInterval.Duration()
	c.Rebalance.Threshold, c.Rebalance.Standbys = r.Threshold, f.Controller.StandbyWorkers
	c.Lag.Interval, c.ValidateInterval = f.Controller.LagInterval.Duration(), f.Controller.ValidateInterval.Duration()
	c.Stuck = controller.Stuck{After: f.Controller.Stuck.After.Duration(), MaxMoves: f.Controller.Stuck.MaxMoves}
	c.Backup.Dir, c.Backup.Git, c.Backup.Name = f.Controller.Backup.Dir, f.Controller.Backup.Git, f.Coordination.Cluster
	s := settings{
		server: f.Server, route: f.RouteName(),
		source: endpoint{cluster: f.Route.Source}, target: endpoint{cluster: f.Route.Target},
		deadLetter: f.Route.DeadLetter.Topic, committed: f.Route.Isolation != "read_uncommitted", controller: c, positions: zk.DefaultConfig(), compares: true, log: f.Log,
		coordination: helix.DefaultControllerConfig(),
	}
	s.coordination.Name, s.coordination.ZooKeeper = f.ControllerID("controller"), f.Coordination.ZooKeeper
	s.coordination.Cluster, s.coordination.SessionTimeout = helix.Cluster(f.Coordination.Cluster), f.Coordination.SessionTimeout.Duration()
	s.controller.Replicas = f.Replicas // also where it is 1 for all: what was written before may have standbys
	s.coordination.Overlap = r.Handover == native.HandoverOverlap
	s.positions.Address, s.positions.Group = f.OffsetsZooKeeper(), f.Group()
	s.compat = api.CompatConfig{Cluster: f.Coordination.Cluster, WorkerCapacity: workerCapacity, DedicatedRatio: dedicatedRatio}
	return s, native.Prefixed(errors.Join(s.name(&f), s.validate()), path+": ")
}

// name finds out what topics are called on the target. A mapping file that only the workers have is theirs to tell of.
func (s *settings) name(f *native.File) error {
	mapped, err := f.TargetNames()
	if errors.Is(err, fs.ErrNotExist) && f.Route.Topics.Validate() == nil {
		s.mapped = unnamed
		s.warnings = append(s.warnings, fmt.Sprintf("route.topics.mapping_file: %v: target topics are shown when a worker has told them", err))
		return nil
	}
	if err != nil {
		return native.Prefixed(err, "route.topics.")
	}
	s.mapped = mapped
	return nil
}

// unnamed is for a controller that does not know what topics are called on the target.
func unnamed(string) string { return "" }

// What uReplicator takes for granted where nobody says otherwise.
const (
	workerCapacity = 8 << 20 // bytes a second
	dedicatedRatio = 0.5
)

// validate judges what the parts demand of their own configurations.
func (s *settings) validate() error {
	faults := []error{native.Prefixed(s.coordination.Validate(), "coordination."), native.Prefixed(s.controller.Validate(), "controller.")}
	if s.positions.Address != "" {
		faults = append(faults, native.Prefixed(s.positions.Validate(), "offsets."))
	}
	return errors.Join(faults...)
}

// logger writes to w.
func (s *settings) logger(w io.Writer) hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{
		Name: "causeway", Level: hclog.LevelFromString(s.log.Level), JSONFormat: s.log.Format == "json", Output: w,
	})
}

// hostName is the machine's, for lack of anything better.
func hostName() string {
	if name, err := os.Hostname(); err == nil {
		return name
	}
	return "localhost"
}

// seconds turns an old option's number into a time.
func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// fault is one thing wrong with an old option.
func fault(option, value, reason string) error {
	if value == "" {
		return fmt.Errorf("-%s: %s", option, reason)
	}
	return fmt.Errorf("-%s %q: %s", option, value, reason)
}
