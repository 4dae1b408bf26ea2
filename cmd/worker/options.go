package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/causeway-mirror/causeway/cmd/internal/program"
	"github.com/causeway-mirror/causeway/internal/classic"
	"github.com/causeway-mirror/causeway/internal/graphite"
	"github.com/causeway-mirror/causeway/internal/native"
)

// options are those of uReplicator's worker, and our file.
func options() []classic.Option {
	return []classic.Option{
		{Name: "config", Usage: "native YAML file, instead of all other options"},
		{Name: "federated_enabled", Default: "false", Usage: "is not possible yet"},
		{Name: "consumer_config", Default: "consumer.properties", Usage: "properties of the source: a Kafka client's, and the worker's own"},
		{Name: "producer_config", Default: "producer.properties", Usage: "properties of the target: a Kafka client's, and the worker's own"},
		{Name: "helix_config", Default: "helix.config", Usage: "properties zkServer, instanceId and helixClusterName"},
		{Name: "topic_mappings", Usage: "properties file: source topic = target topic"},
		{Name: "topic_partition_count_observer", Default: "false", Usage: "record of partition p goes to p modulo the target's count, which it does without, too"},
		{Name: "worker_port", Default: "0", Usage: "where the REST is served; 0 = nowhere"},
		{Name: "worker_hostname", Usage: "under which others reach this worker, and part of the names of metrics; default: the host's"},
		{Name: "abort_on_send_failure", Default: "true", Usage: "a partition that can't go on halts, and the process stays"},
		{Name: "region", Default: "global", Usage: "part of the names of metrics"},
		{Name: "metrics_prefix", Default: "ureplicator-worker", Usage: "part of the names of metrics"},
		{Name: "graphite_host", Usage: "Graphite"},
		{Name: "graphite_port", Default: "0", Usage: "its port; 0 = none"},
		{Name: "graphite_report_freq_in_sec", Default: "60", Usage: "between two reports"},
		{Name: "enable_graphite_report", Default: "true", Usage: "report to Graphite"},
		{Name: "enable_jmx_report", Default: "true", Usage: "has no effect"},
		{Name: "offset_commit_interval_ms", Default: "60000", Usage: "has no effect: offset.commit.interval.ms of the producer's file counts"},
		{Name: "enable_filter", Default: "false", Usage: "has no effect"},
		{Name: "secure_feature_enabled", Default: "false", Usage: "of federated mode"},
		{Name: "secure_clusters_set", Usage: "of federated mode"},
		{Name: "secure_config", Default: "secure.properties", Usage: "of federated mode"},
		{Name: "cluster_config", Usage: "of federated mode"},
	}
}

// withoutEffect are options that are taken, with a warning, and change nothing.
func withoutEffect() []string {
	return []string{
		"enable_jmx_report", "offset_commit_interval_ms", "enable_filter", "secure_feature_enabled", "secure_clusters_set", "secure_config", "cluster_config",
	}
}

// fromOptions makes settings of the old options and of the files that they name; all faults at once.
func fromOptions(args []string) (settings, error) {
	v, err := classic.Parse(args, options(), "help")
	if err != nil {
		return settings{}, fmt.Errorf("%w: %w", err, program.ErrUsage)
	}
	if v.Given("config") {
		return settings{}, fmt.Errorf("-config goes alone, without other options and arguments: %w", program.ErrUsage)
	}
	if v.Bool("federated_enabled") {
		return settings{}, fault("federated_enabled", "true", "federation is not possible yet; start the workers of each route without it")
	}
	s := settings{File: native.Default(), hostname: v.String("worker_hostname")}
	for _, name := range withoutEffect() {
		if v.Given(name) {
			v.Warn("-%s has no effect", name)
		}
	}
	if !v.Bool("abort_on_send_failure") {
		v.Warn("-abort_on_send_failure false: nothing is skipped; a partition that can't go on halts, the others go on")
	}
	s.Route.Topics.PartitionMismatch = "modulo"
	s.Route.Topics.MappingFile = v.String("topic_mappings")
	err = errors.Join(s.listenOn(v), s.reportTo(v), s.readHelix(v), s.readConsumer(v), s.readProducer(v))
	if err == nil {
		err = errors.Join(s.Route.Topics.Validate(), s.ValidateWorker(), s.ValidateCoordination(), s.ValidateOffsets(native.StoreZooKeeper))
	}
	s.warnings = v.Warnings()
	return s, err
}

// listenOn reads where HTTP is served.
func (s *settings) listenOn(v *classic.Values) error {
	port := v.Int("worker_port")
	if port < 0 || port > 65535 {
		return fault("worker_port", strconv.Itoa(port), "must be 0 to 65535")
	}
	s.mute = port == 0
	s.Server.Listen = net.JoinHostPort("", strconv.Itoa(port))
	return nil
}

// reportTo reads where metrics are sent to.
func (s *settings) reportTo(v *classic.Values) error {
	port := v.Int("graphite_port")
	if port < 0 || port > 65535 {
		return fault("graphite_port", strconv.Itoa(port), "must be 0 to 65535")
	}
	host := v.String("graphite_host")
	if port == 0 || host == "" || !v.Bool("enable_graphite_report") {
		return nil
	}
	name := s.hostname
	if name == "" {
		name = hostName()
	}
	s.graphite = graphite.Config{
		Address: net.JoinHostPort(host, strconv.Itoa(port)), Interval: time.Duration(max(1, v.Int("graphite_report_freq_in_sec"))) * time.Second,
		Prefix: strings.Join([]string{"stats", v.String("region"), "counter", v.String("metrics_prefix"), name}, "."),
	}
	return nil
}

// hostName is the machine's, or what uReplicator takes for lack of it.
func hostName() string {
	if name, err := os.Hostname(); err == nil {
		return name
	}
	return "localhost"
}

func millis(n int) time.Duration { return time.Duration(n) * time.Millisecond }
