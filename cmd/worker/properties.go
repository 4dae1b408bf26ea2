package main

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/causeway-mirror/causeway/cluster"
	"github.com/causeway-mirror/causeway/connector"
	"github.com/causeway-mirror/causeway/internal/classic"
	"github.com/causeway-mirror/causeway/internal/conf"
)

// file is one of the properties files that options name.
type file struct {
	*classic.Values

	path string
	all  map[string]string
}

// open reads the file that an option names, with the keys that are the worker's own; the others are a Kafka client's.
func open(v *classic.Values, option string, own []classic.Option) (*file, error) {
	path := v.String(option)
	all, err := cluster.LoadProperties(path)
	if err != nil {
		return nil, fault(option, path, err.Error())
	}
	keys, err := classic.Parse(nil, own)
	if err != nil {
		return nil, err
	}
	keys.SetFile(all)
	return &file{Values: keys, path: path, all: all}, nil
}

// key is an option of a file only.
func key(name, otherwise string) classic.Option {
	return classic.Option{Name: name, Key: name, Default: otherwise}
}

// warnings passes on what was noted while values were read.
func (f *file) warnings(to *classic.Values) {
	for _, w := range f.Warnings() {
		to.Warn("%s: %s", f.path, strings.TrimPrefix(w, "-"))
	}
}

// cluster is the Kafka cluster that the file describes.
func (f *file) cluster(name string, own []classic.Option) (cluster.Config, error) {
	foreign := maps.Clone(f.all)
	for _, o := range own {
		delete(foreign, o.Name)
	}
	c, err := cluster.FromProperties(name, foreign)
	if err == nil {
		err = c.Validate()
	}
	return c, prefix(err, f.path)
}

func prefix(err error, path string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", path, err)
}

// readHelix reads where the cluster of workers is, and the worker's name in it.
func (s *settings) readHelix(v *classic.Values) error {
	f, err := open(v, "helix_config", []classic.Option{
		key("zkServer", ""), key("instanceId", "uReplicator-"+strconv.FormatInt(time.Now().UnixMilli(), 10)), key("helixClusterName", "testMirrorMaker"),
	})
	if err != nil {
		return err
	}
	s.Coordination.ZooKeeper = strings.TrimSuffix(f.String("zkServer"), "/")
	s.Coordination.Cluster = f.String("helixClusterName")
	s.id = f.String("instanceId")
	s.Worker.ID = s.id
	if s.Coordination.ZooKeeper == "" {
		return fmt.Errorf("%s: zkServer is required", f.path) //nolint:err113 // for people
	}
	return nil
}

// consumerKeys are those of the consumer's file that uReplicator's worker reads itself, or whose meaning is the worker's here.
func consumerKeys() []classic.Option {
	return []classic.Option{
		key("zookeeper.connect", ""), key("commit.zookeeper.connect", ""), key("group.id", "ureplicator"), key("auto.offset.reset", "latest"),
		key("isolation.level", connector.ReadUncommitted), key("num.consumer.fetchers", "3"), key("consumer.num.of.messages.rate", "0"),
		key("enable.auto.commit", "false"), key("queued.max.message.chunks", "5"), key("refresh.backoff.ms", "200"), key("poll.timeout.ms", "100"),
		key("fetcher.manager.refresh.ms", "100"), key("consumer.timeout.ms", "300"), key("offset.monitor.ms", "60000"),
	}
}

// readConsumer reads the source, and where positions are kept.
func (s *settings) readConsumer(v *classic.Values) error {
	own := consumerKeys()
	f, err := open(v, "consumer_config", own)
	if err != nil {
		return err
	}
	defer f.warnings(v)
	s.Route.Source, err = f.cluster("source", own)
	s.Offsets.Group = f.String("group.id")
	if s.Offsets.ZooKeeper = f.String("commit.zookeeper.connect"); s.Offsets.ZooKeeper == "" {
		s.Offsets.ZooKeeper = f.String("zookeeper.connect")
	}
	s.Offsets.ZooKeeper = strings.TrimSuffix(s.Offsets.ZooKeeper, "/")
	faults := []error{err}
	if s.Offsets.ZooKeeper == "" {
		faults = append(faults, fmt.Errorf("%s: commit.zookeeper.connect or zookeeper.connect is required: positions are kept there", f.path))
	}
	s.Worker.Fetchers = max(1, f.Int("num.consumer.fetchers"))
	s.Route.Limits.RecordsPerSecond = max(0, f.Float("consumer.num.of.messages.rate"))
	s.rateable = s.Route.Limits.RecordsPerSecond > 0 // as it always was: without a limiter there is nothing to set
	switch s.Route.Start = f.String("auto.offset.reset"); s.Route.Start {
	case connector.StartEarliest, connector.StartLatest:
	default:
		faults = append(faults, fmt.Errorf("%s: auto.offset.reset %q: must be earliest or latest", f.path, s.Route.Start))
	}
	switch s.Route.Isolation = f.String("isolation.level"); s.Route.Isolation {
	case connector.ReadCommitted, connector.ReadUncommitted:
	default:
		faults = append(faults, fmt.Errorf("%s: isolation.level %q: must be read_committed or read_uncommitted", f.path, s.Route.Isolation))
	}
	return errors.Join(faults...)
}

// producerKeys are those of the producer's file that uReplicator's worker reads itself, or that an idempotent producer decides.
func producerKeys() []classic.Option {
	return []classic.Option{
		key("num.of.producers", "2"), key("producer.type", "async"), key("offset.commit.interval.ms", "60000"), key("zookeeper.connect", ""),
		key("zkPath", "/brokers/topics"), key("acks", "all"), key("retries", ""), key("max.block.ms", ""), key("max.in.flight.requests.per.connection", ""),
		key("connection.timeout.ms", ""), key("session.timeout.ms", ""), key("refresh.interval.ms", ""), key("delivery.timeout.ms", ""),
	}
}

// readProducer reads the target, and how often positions are stored.
func (s *settings) readProducer(v *classic.Values) error {
	own := producerKeys()
	f, err := open(v, "producer_config", own)
	if err != nil {
		return err
	}
	defer f.warnings(v)
	s.Route.Target, err = f.cluster("target", own)
	s.Worker.Streams = max(1, f.Int("num.of.producers"))
	s.Worker.CommitInterval = conf.Duration(max(millis(f.Int("offset.commit.interval.ms")), 10*time.Millisecond))
	if acks := f.String("acks"); acks != "all" && acks != "-1" {
		v.Warn("%s: acks %q: records count as copied when all replicas in sync have them, whatever is set", f.path, acks)
	}
	if f.String("producer.type") == "sync" {
		v.Warn("%s: producer.type sync: order is kept without it, and requests are pipelined", f.path)
	}
	return err
}
