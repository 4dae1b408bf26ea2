package native

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/causeway-mirror/causeway/handler"
	"github.com/causeway-mirror/causeway/internal/conf"
	"github.com/causeway-mirror/causeway/route"
)

// MinMemory is what a worker needs before it can hold a single large batch on its way.
const MinMemory = 64 << 20

// Bounds of the connector, which refuses what lies beyond them.
const (
	mostAckWindow       = 10_000
	leastCommitInterval = conf.Duration(10 * time.Millisecond)
)

// defaultPolicies says what happens when the source or the target is not as the checkpoint left it.
func defaultPolicies() map[string]string {
	words := map[string]string{}
	for trouble, known := range route.Policies() {
		words[trouble] = known[0]
	}
	return words
}

// ValidateRoute judges clusters, topics and policies. Where a flag sets the same, its name is told beside the key.
func (f *File) ValidateRoute() error {
	r := &f.Route
	faults := []error{
		Prefixed(r.Source.Validate(), "route.source (--source): "),
		Prefixed(r.Target.Validate(), "route.target (--target): "),
		TopicFaults(r.Topics.Validate()),
		f.ValidateModes(),
	}
	for _, name := range []struct{ key, value string }{
		{"route.source.name (--source-name)", r.Source.Name}, {"route.target.name (--target-name)", r.Target.Name}, {"route.id", r.ID},
	} {
		if name.value == "" || strings.ContainsAny(name.value, "@/ ") {
			faults = append(faults, Fault(name.key, name.value, "must not be empty or hold @, / or spaces"))
		}
	}
	if SameCluster(r.Source.Bootstrap, r.Target.Bootstrap) && cmp.Or(r.Topics.Rename, "{topic}") == "{topic}" && len(r.Topics.Mapping) == 0 && r.Topics.MappingFile == "" {
		faults = append(faults, Fault("route.target (--target)", strings.Join(r.Target.Bootstrap, ","), "is the source too, and topics keep their names: each would be copied onto itself"))
	}
	_, filterErr := f.Filter()
	faults = append(faults, Positive("route.topics.discover_interval", r.Topics.DiscoverInterval), validatePolicies(r.On), validateDeadLetter(r.DeadLetter.Topic), filterErr)
	return errors.Join(faults...)
}

// ValidateMapping judges what the route's names are made of: the mapping file, and the clusters' names in the rename pattern.
func (f *File) ValidateMapping() error {
	return TopicFaults(f.Route.Topics.ValidateNames(f.Route.Source.Name, f.Route.Target.Name))
}

// TopicFaults gives faults of a handler's configuration the names that they have in the file, and the flag's.
func TopicFaults(err error) error {
	return each(err, func(err error) error {
		if fault, ok := errors.AsType[*handler.ConfigError](err); ok && fault.Key == "rename" {
			return Fault("route.topics.rename (--rename)", fault.Value, fault.Reason)
		}
		return fmt.Errorf("route.topics.%w", err)
	})
}

// ValidateModes judges the words of the route that have a default.
func (f *File) ValidateModes() error {
	return errors.Join(
		OneOf("route.isolation (--isolation)", f.Route.Isolation, "read_committed", "read_uncommitted"),
		validateDelivery(f.Route.Delivery),
		f.validateLoops(),
		validateStart(f.Route.Start),
		validateRate("route.limits.records_per_second", f.Route.Limits.RecordsPerSecond),
	)
}

// deliveryExactlyOnce is the only promise of this version (docs/adr/014).
const deliveryExactlyOnce = "exactly-once"

// validateDelivery refuses the weaker promise: what would make a difference is not there yet.
func validateDelivery(text string) error {
	switch text {
	case deliveryExactlyOnce:
		return nil
	case "at-least-once":
		return Fault("route.delivery (--delivery)", text, "this version can only "+deliveryExactlyOnce+"; a partition whose target can't do that halts")
	}
	return Fault("route.delivery (--delivery)", text, "must be "+deliveryExactlyOnce)
}

// LoopsDrop lets two routes mirror a topic there and back again under one name: each leaves out what the other one brought.
const LoopsDrop = "drop"

// validateLoops judges what becomes of loops, and what else must hold where they are let run.
func (f *File) validateLoops() error {
	const key = "route.loops"
	if f.Route.Loops != LoopsDrop {
		return OneOf(key, f.Route.Loops, "refuse", LoopsDrop)
	}
	if f.Route.On["foreign_writer"] == "halt" {
		return Fault(key, LoopsDrop, "can't be with route.on.foreign_writer: halt: others write to both clusters")
	}
	return nil
}

func validateRate(key string, perSecond float64) error {
	if perSecond >= 0 && !math.IsInf(perSecond, 0) { // NaN is neither
		return nil
	}
	return Fault(key, strconv.FormatFloat(perSecond, 'g', -1, 64), "must be 0, which is none, or more")
}

// validateDeadLetter judges the name as it is with a topic that any name may have.
func validateDeadLetter(topic string) error {
	name := strings.ReplaceAll(topic, "{topic}", "t")
	if !plainName.MatchString(name) || name == "." || name == ".." || topic == "{topic}" {
		return Fault("route.dead_letter.topic", topic, "must be a topic's name, in which {topic} stands for the source topic, and another than that")
	}
	return nil
}

func validatePolicies(on map[string]string) error {
	known := route.Policies()
	var faults []error
	for _, key := range sortedKeys(on) {
		can, ok := known[key]
		switch {
		case !ok:
			faults = append(faults, Fault("route.on."+key, on[key], "unknown; known are "+strings.Join(sortedKeys(known), ", ")))
		case !slices.Contains(can, on[key]):
			faults = append(faults, Fault("route.on."+key, on[key], "this version can only "+strings.Join(can, ", ")))
		}
	}
	return errors.Join(faults...)
}

// Filter compiles the topic patterns.
func (f *File) Filter() (Filter, error) {
	var (
		filter Filter
		faults []error
	)
	compile := func(key, flag string, texts []string) (out []pattern) {
		for i, text := range texts {
			p, err := compilePattern(text)
			if err != nil {
				faults = append(faults, Fault(fmt.Sprintf("route.topics.%s[%d] (%s)", key, i, flag), text, err.Error()))
				continue
			}
			out = append(out, p)
		}
		return out
	}
	filter.include = compile("include", "--topics", f.Route.Topics.Include)
	filter.exclude = compile("exclude", "--exclude", f.Route.Topics.Exclude)
	return filter, errors.Join(faults...)
}

// ValidateWorker judges the section worker.
func (f *File) ValidateWorker() error {
	w := &f.Worker
	_, inFlightErr := f.InFlight()
	faults := []error{
		AtLeastOne("worker.streams (--streams)", w.Streams),
		AtLeastOne("worker.fetchers (--fetchers)", w.Fetchers),
		Positive("worker.shutdown_timeout", w.ShutdownTimeout),
	}
	if w.AckWindow < 1 || w.AckWindow > mostAckWindow {
		faults = append(faults, Fault("worker.ack_window", strconv.Itoa(w.AckWindow), "must be 1 to "+strconv.Itoa(mostAckWindow)+" batches"))
	}
	if w.CommitInterval < leastCommitInterval {
		faults = append(faults, Fault("worker.commit_interval (--commit-interval)", w.CommitInterval.String(), "must be at least "+leastCommitInterval.String()))
	}
	if w.Memory < MinMemory {
		faults = append(faults, Fault("worker.memory (--memory)", w.Memory.String(), "must be at least "+conf.Bytes(MinMemory).String()))
	}
	faults = append(faults, f.validateSpill())
	return errors.Join(append(faults, inFlightErr)...)
}

// leastSpill is the least space on disk that is worth its trouble: room for some of the largest batches.
const leastSpill = conf.Bytes(64 << 20)

// validateSpill judges what may go to disk; without space for it only that its numbers can be.
func (f *File) validateSpill() error {
	w, c := &f.Worker.Spill, f.Spill()
	var faults []error
	if err := c.Limits.Validate(); err != nil {
		faults = append(faults, Prefixed(err, "worker.spill."))
	}
	if w.MaxBytes != 0 && w.MaxBytes < leastSpill {
		faults = append(faults, Fault("worker.spill.max_bytes (--spill-max)", w.MaxBytes.String(), "must be 0 or at least "+leastSpill.String()))
	}
	if w.MaxBytes != 0 && c.Dir == "" {
		faults = append(faults, Fault("worker.spill.dir", w.Dir, "must name a folder where offsets.store is not "+StoreFile))
	}
	return errors.Join(faults...)
}

// leastSession is the shortest session timeout that leaves a busy machine time to answer.
const leastSession = conf.Duration(time.Second)

// ValidateCoordination judges the section coordination.
func (f *File) ValidateCoordination() error {
	c := &f.Coordination
	faults := []error{validateZooKeeper("coordination.zookeeper", c.ZooKeeper)}
	if f.Route.Loops == LoopsDrop {
		faults = append(faults, Fault("route.loops", LoopsDrop, "is for causeway standalone: the workers of a cluster would overwrite each other's markers"))
	}
	if c.Cluster == "" || strings.Contains(c.Cluster, "/") {
		faults = append(faults, Fault("coordination.cluster", c.Cluster, "must name a Helix cluster, without /"))
	}
	if c.SessionTimeout < leastSession {
		faults = append(faults, Fault("coordination.session_timeout", c.SessionTimeout.String(), "must be at least "+leastSession.String()))
	}
	return errors.Join(faults...)
}

// validateZooKeeper accepts HOST:PORT,… with or without a /chroot behind; a port that is left out is ZooKeeper's own.
func validateZooKeeper(key, text string) error {
	hosts, _, _ := strings.Cut(text, "/")
	for host := range strings.SplitSeq(hosts, ",") {
		host = strings.TrimSpace(host)
		if host != "" && !strings.Contains(host, ":") {
			continue
		}
		name, port, err := net.SplitHostPort(host)
		if err == nil {
			_, err = strconv.ParseUint(port, 10, 16)
		}
		if err != nil || name == "" {
			return Fault(key, text, "must be HOST:PORT,... with or without a /chroot behind")
		}
	}
	return nil
}

// ValidateOffsets judges the section offsets; stores are those that the program can use.
func (f *File) ValidateOffsets(stores ...string) error {
	faults := []error{OneOf("offsets.store", f.Offsets.Store, stores...)}
	if f.Offsets.Store == StoreFile && f.Offsets.Dir == "" {
		faults = append(faults, Fault("offsets.dir (--state)", "", "must name a folder"))
	}
	if f.Offsets.Store == StoreZooKeeper && f.Offsets.ZooKeeper != "" {
		faults = append(faults, validateZooKeeper("offsets.zookeeper", f.Offsets.ZooKeeper))
	}
	if group := f.Group(); strings.Contains(group, "/") {
		faults = append(faults, Fault("offsets.group", group, "must not hold /"))
	}
	return errors.Join(faults...)
}

// ValidateController judges the section controller.
func (f *File) ValidateController() error {
	c := &f.Controller
	faults := []error{
		notNegative("controller.rebalance.delay", c.Rebalance.Delay),
		notNegative("controller.rebalance.min_interval", c.Rebalance.MinInterval),
		OneOf("controller.rebalance.handover", c.Rebalance.Handover, "sequential", HandoverOverlap),
		Positive("controller.validate_interval", c.ValidateInterval),
		Positive("controller.lag_interval", c.LagInterval),
		notNegative("controller.stuck.after", c.Stuck.After),
	}
	if c.Rebalance.Threshold < 1 {
		faults = append(faults, Fault("controller.rebalance.threshold", strconv.FormatFloat(c.Rebalance.Threshold, 'g', -1, 64), "must be at least 1"))
	}
	if c.Backup.Git != "" && c.Backup.Dir == "" {
		faults = append(faults, Fault("controller.backup.dir", "", "must name the folder of the clone where controller.backup.git is given"))
	}
	for _, n := range []struct {
		key   string
		value int
	}{{"controller.standby_workers", c.StandbyWorkers}, {"controller.stuck.max_moves", c.Stuck.MaxMoves}} {
		if n.value < 0 {
			faults = append(faults, Fault(n.key, strconv.Itoa(n.value), "must be 0 or more"))
		}
	}
	return errors.Join(faults...)
}

// ValidateLog judges the section log.
func (f *File) ValidateLog() error {
	levelErr := error(nil)
	if hclog.LevelFromString(f.Log.Level) == hclog.NoLevel {
		levelErr = Fault("log.level (--log-level)", f.Log.Level, "must be trace, debug, info, warn, error or off")
	}
	return errors.Join(levelErr, OneOf("log.format (--log-format)", f.Log.Format, "text", "json"))
}

// validateStart accepts earliest, latest, a time or a duration back.
func validateStart(text string) error {
	if text == "earliest" || text == "latest" {
		return nil
	}
	if _, err := time.Parse(time.RFC3339, text); err == nil {
		return nil
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return nil
	}
	return Fault("route.start (--start)", text, "must be earliest, latest, a time (RFC 3339) or a duration back such as 24h")
}

// SameCluster says that two lists of brokers have an address in common.
func SameCluster(a, b []string) bool {
	return slices.ContainsFunc(a, func(address string) bool { return slices.Contains(b, address) })
}
