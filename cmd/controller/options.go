package main

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/causeway-mirror/causeway/api"
	"github.com/causeway-mirror/causeway/cluster"
	"github.com/causeway-mirror/causeway/cmd/internal/program"
	"github.com/causeway-mirror/causeway/controller"
	"github.com/causeway-mirror/causeway/helix"
	"github.com/causeway-mirror/causeway/internal/classic"
	"github.com/causeway-mirror/causeway/internal/graphite"
	"github.com/causeway-mirror/causeway/internal/native"
	"github.com/causeway-mirror/causeway/offsets/zk"
	"github.com/causeway-mirror/causeway/route"
)

// Defaults of uReplicator that are no single number.
const (
	defaultBackupDir = "/var/log/kafka-mirror-maker-controller"
	offsetsTopic     = "__consumer_offsets"
	exampleCluster   = "testMirrorMaker"
)

// options are those of uReplicator's controller, with their keys in its properties file, and two of ours for clusters without ZooKeeper.
func options() []classic.Option {
	return []classic.Option{
		{Name: "config", Key: "", Usage: "native YAML file, or properties that hold where no option is given"},
		{Name: "helixClusterName", Key: "controller.helix.cluster.name", Usage: "Helix cluster; required"},
		{Name: "zookeeper", Key: "controller.zk.str", Usage: "ZooKeeper of the Helix cluster, HOST:PORT,.../chroot; required"},
		{Name: "port", Key: "controller.port", Usage: "where the REST is served; required"},
		{Name: "instanceId", Key: "controller.instance.id", Usage: "name of this controller; default: the host's"},
		{Name: "hostname", Key: "controller.hostname", Usage: "under which others reach this controller; default: the host's"},
		{Name: "env", Key: "controller.environment", Default: "env", Usage: "<dc>.<name>, part of the names of metrics and backups"},
		{Name: "mode", Key: "controller.mode", Default: "auto", Usage: "has no effect"},
		{Name: "enableFederated", Key: "federated.enabled", Default: "false", Usage: "is not possible yet"},
		{Name: "deploymentName", Key: "federated.deployment.name", Usage: "of federated mode"},
		{Name: "srcClusters", Key: "kafka.source.clusters", Usage: "of federated mode"},
		{Name: "destClusters", Key: "kafka.destination.clusters", Usage: "of federated mode"},
		{Name: "srcKafkaZkPath", Key: "controller.srckafka.zkStr", Usage: "ZooKeeper of the source cluster"},
		{Name: "destKafkaZkPath", Key: "controller.destkafka.zkStr", Usage: "ZooKeeper of the target cluster"},
		{Name: "srcBootstrapServers", Key: "controller.srckafka.bootstrap.servers", Usage: "brokers of the source cluster, where it has no ZooKeeper"},
		{Name: "destBootstrapServers", Key: "controller.destkafka.bootstrap.servers", Usage: "brokers of the target cluster, where it has no ZooKeeper"},
		{Name: "consumerCommitZkPath", Key: "controller.consumerCommit.zkStr", Usage: "ZooKeeper of the committed offsets; default: that of the source"},
		{Name: "groupId", Key: "controller.group.id", Usage: "group of the committed offsets; without it lag is not measured"},
		{Name: "enableAutoWhitelist", Key: "controller.enable.auto.whitelist", Default: "false", Usage: "mirror what both clusters have"},
		{Name: "enableAutoTopicExpansion", Key: "controller.enable.auto.topic.expansion", Default: "false", Usage: "let topics grow with the source"},
		{Name: "patternToExcludeTopics", Key: "controller.pattern.exclude.topics", Default: offsetsTopic, Usage: "topics that are not found by themselves"},
		{Name: "enableSrcKafkaValidation", Key: "controller.enable.src.kafka.validation", Default: "false", Usage: "compare with the source"},
		{Name: "maxWorkingInstances", Key: "controller.max.working.instances", Default: "0", Usage: "workers that work at most; 0 = all"},
		{Name: "autoRebalanceDelayInSeconds", Key: "controller.auto.rebalance.delay.in.seconds", Default: "120", Usage: "after a worker came or went"},
		{Name: "refreshTimeInSeconds", Key: "controller.refresh.time.in.seconds", Default: "600", Usage: "between two looks for topics"},
		{Name: "initWaitTimeInSeconds", Key: "controller.init.wait.time.in.seconds", Default: "120", Usage: "before the first look for topics"},
		{Name: "autoRebalancePeriodInSeconds", Key: "controller.auto.rebalance.period.in.seconds", Default: "0", Usage: "between two looks at the load; 0 = never"},
		{Name: "autoRebalanceMinIntervalInSeconds", Key: "controller.auto.rebalance.min.interval.in.seconds", Default: "600", Usage: "between two rebalances for load"},
		{Name: "autoRebalanceMinLagTimeInSeconds", Key: "controller.auto.rebalance.min.lag.in.seconds", Default: "900", Usage: "from which a partition lags"},
		{Name: "autoRebalanceMinLagOffset", Key: "controller.auto.rebalance.min.lag.offset", Default: "100000", Usage: "from which a partition lags"},
		{Name: "autoRebalanceMaxOffsetInfoValidInSeconds", Key: "controller.auto.rebalance.max.offset.valid.in.seconds", Default: "1800", Usage: "age of a lag that decides"},
		{Name: "autoRebalanceWorkloadRatioThreshold", Key: "controller.auto.rebalance.workload.ratio.threshold", Default: "1.2", Usage: "overload against the average"},
		{Name: "workloadRefreshPeriodInSeconds", Key: "controller.workload.refresh.period.in.seconds", Default: "600", Usage: "between two measurements of load"},
		{Name: "maxDedicatedLaggingInstancesRatio", Key: "controller.auto.rebalance.max.dedicated.ratio", Default: "0.5", Usage: "part of the workers for what lags"},
		{Name: "maxStuckPartitionMovements", Key: "controller.max.stuck.partition.movements", Default: "3", Usage: "moves of a stuck partition; 0 = none"},
		{Name: "moveStuckPartitionAfterMinutes", Key: "controller.move.stuck.partition.after.minutes", Default: "20", Usage: "from which a partition is stuck"},
		{Name: "numOffsetThread", Key: "controller.num.offset.thread", Default: "10", Usage: "has no effect"},
		{Name: "blockingQueueSize", Key: "controller.blocking.queue.size", Default: "30000", Usage: "has no effect"},
		{Name: "offsetRefreshIntervalInSec", Key: "controller.offset.refresh.interval.in.sec", Default: "300", Usage: "between two measurements of lag; 0 = never"},
		{Name: "backUpToGit", Key: "controller.backup.to.git", Usage: "true: back up into a git repository; false: into a folder"},
		{Name: "remoteBackupRepo", Key: "controller.remote.backup.git", Usage: "git repository for backups"},
		{Name: "localGitRepoClonePath", Key: "controller.local.git.repo", Usage: "its clone"},
		{Name: "localBackupFilePath", Key: "controller.local.backup.file.path", Default: defaultBackupDir, Usage: "folder for backups"},
		{Name: "maxWorkloadPerWorkerByteWithinRegion", Key: "controller.max.workload.per.worker.byte.within.region", Default: "8388608", Usage: "bytes a second, where both clusters' names begin with the same three characters"},
		{Name: "maxWorkloadPerWorkerByteCrossRegion", Key: "controller.max.workload.per.worker.byte.cross.region", Default: "8388608", Usage: "bytes a second"},
		{Name: "c3Host", Key: "controller.c3.host", Default: "localhost", Usage: "service that measures topics"},
		{Name: "c3Port", Key: "controller.c3.port", Default: "0", Usage: "its port; 0 = the workers measure"},
		{Name: "graphiteHost", Key: "controller.graphite.host", Usage: "Graphite"},
		{Name: "graphitePort", Key: "controller.graphite.port", Default: "0", Usage: "its port; 0 = none"},
		{Name: "graphiteReportFreqInSec", Key: "controller.graphite.report.freq.in.sec", Default: "60", Usage: "between two reports"},
		{Name: "metricsPrefix", Key: "controller.metrics.prefix", Default: "kafka-mirror-maker-controller", Usage: "part of the names of metrics"},
		{Name: "enableJmxReport", Key: "controller.enable.jmx.report", Default: "true", Usage: "has no effect"},
		{Name: "enableGraphiteReport", Key: "controller.enable.graphite.report", Default: "true", Usage: "report to Graphite"},
	}
}

// flags are options without a value.
func flags() []string { return []string{"help", "example1", "example2"} }

// fromOptions reads the old options and the properties file that they may name.
func fromOptions(args []string) (settings, error) {
	v, err := classic.Parse(args, options(), flags()...)
	if err != nil {
		return settings{}, fmt.Errorf("%w: %w", err, program.ErrUsage)
	}
	file := map[string]string{}
	if path := v.String("config"); path != "" {
		if ext := filepath.Ext(path); ext == ".yaml" || ext == ".yml" {
			return settings{}, fmt.Errorf("-config %s goes alone, without other options and arguments: %w", path, program.ErrUsage)
		}
		if file, err = cluster.LoadProperties(path); err != nil {
			return settings{}, fault("config", path, err.Error())
		}
	}
	v.SetFile(withExamples(v, file))
	if v.Bool("enableFederated") {
		return settings{}, fault("enableFederated", "true", "federation is not possible yet; start one controller a route without it")
	}
	return fromValues(v)
}

// withExamples lays the built-in settings under a file's.
func withExamples(v *classic.Values, file map[string]string) map[string]string {
	example := map[string]string{}
	if v.Given("example1") || v.Given("example2") {
		example = map[string]string{
			"controller.port": "9000", "controller.zk.str": "localhost:2181", "controller.helix.cluster.name": exampleCluster,
			"controller.auto.rebalance.delay.in.seconds": "120",
		}
	}
	if v.Given("example2") {
		maps.Copy(example, map[string]string{
			"controller.enable.auto.whitelist": "true", "controller.enable.auto.topic.expansion": "true",
			"controller.srckafka.zkStr": "localhost:2181/cluster1", "controller.destkafka.zkStr": "localhost:2181/cluster2",
			"controller.init.wait.time.in.seconds": "10", "controller.refresh.time.in.seconds": "20",
		})
	}
	maps.Copy(example, file)
	return example
}

// fromValues makes settings of the old options; all faults at once.
func fromValues(v *classic.Values) (settings, error) {
	s := settings{
		hostname: v.String("hostname"), mapped: unnamed, server: native.Default().Server, deadLetter: route.DefaultDeadLetter, committed: true, coordination: helix.DefaultControllerConfig(),
		controller: controller.DefaultConfig(), positions: zk.DefaultConfig(), log: native.Default().Log,
	}
	s.coordination.ZooKeeper, s.coordination.Cluster = strings.TrimSuffix(v.String("zookeeper"), "/"), helix.Cluster(v.String("helixClusterName"))
	if s.coordination.Name = v.String("instanceId"); s.coordination.Name == "" {
		s.coordination.Name = hostName()
	}
	if s.hostname == "" {
		s.hostname = hostName()
	}
	var faults []error
	for _, name := range []string{"helixClusterName", "zookeeper", "port"} {
		if v.String(name) == "" {
			faults = append(faults, fault(name, "", "is required"))
		}
	}
	if port, err := strconv.ParseUint(v.String("port"), 10, 16); err != nil && v.String("port") != "" {
		faults = append(faults, fault("port", v.String("port"), "must be a port number"))
	} else {
		s.server.Listen = net.JoinHostPort("", strconv.FormatUint(port, 10))
	}
	if err := optionTimes(v, &s); err != nil {
		faults = append(faults, err)
	}
	faults = append(faults, optionClusters(v, &s), optionBackup(v, &s))
	s.compat = api.CompatConfig{
		Cluster: v.String("helixClusterName"), WorkerCapacity: optionCapacity(v, s.source, s.target), DedicatedRatio: v.Float("maxDedicatedLaggingInstancesRatio"),
	}
	if port := v.Int("c3Port"); port > 0 {
		s.chaperone = net.JoinHostPort(v.String("c3Host"), strconv.Itoa(port))
	}
	s.graphite = optionGraphite(v, s.hostname)
	for _, name := range []string{"mode", "numOffsetThread", "blockingQueueSize", "enableJmxReport"} {
		if v.Given(name) {
			v.Warn("-%s has no effect", name)
		}
	}
	for _, name := range []string{"deploymentName", "srcClusters", "destClusters"} {
		if v.Given(name) {
			v.Warn("-%s has no effect: it belongs to federated mode", name)
		}
	}
	s.warnings = v.Warnings()
	if err := errors.Join(faults...); err != nil {
		return settings{}, err
	}
	err := s.validate()
	return s, err
}

// optionCapacity is what a worker is taken to carry, in bytes a second. As ever, clusters whose names begin with the same three characters lie in
// one region.
func optionCapacity(v *classic.Values, source, target endpoint) float64 {
	const region = 3
	a, b := source.cluster.Name, target.cluster.Name
	if source.known() && target.known() && len(a) >= region && len(b) >= region && a[:region] == b[:region] {
		return v.Float("maxWorkloadPerWorkerByteWithinRegion")
	}
	return v.Float("maxWorkloadPerWorkerByteCrossRegion")
}

// optionGraphite reads where figures go. Their names need the environment; without it there are none, as there never were.
func optionGraphite(v *classic.Values, host string) graphite.Config {
	port := v.Int("graphitePort")
	if port == 0 || v.String("graphiteHost") == "" || !v.Bool("enableGraphiteReport") {
		return graphite.Config{}
	}
	dc, name, ok := strings.Cut(v.String("env"), ".")
	if !ok || strings.Contains(name, ".") {
		v.Warn("-env %q: is not <dc>.<name>, so that nothing is reported to Graphite", v.String("env"))
		return graphite.Config{}
	}
	return graphite.Config{
		Address: net.JoinHostPort(v.String("graphiteHost"), strconv.Itoa(port)), Interval: seconds(max(1, v.Int("graphiteReportFreqInSec"))),
		Prefix: "stats." + dc + ".counter." + v.String("metricsPrefix") + "." + name + "." + host,
	}
}

// optionTimes reads when what is done.
func optionTimes(v *classic.Values, s *settings) error {
	c := &s.controller
	c.Rebalance = controller.Rebalance{
		Delay: seconds(v.Int("autoRebalanceDelayInSeconds")), Period: seconds(v.Int("autoRebalancePeriodInSeconds")),
		MinInterval: seconds(v.Int("autoRebalanceMinIntervalInSeconds")), Threshold: v.Float("autoRebalanceWorkloadRatioThreshold"),
		MaxActive: v.Int("maxWorkingInstances"),
	}
	c.Lag.Interval, c.Lag.Valid = seconds(v.Int("offsetRefreshIntervalInSec")), seconds(v.Int("autoRebalanceMaxOffsetInfoValidInSeconds"))
	c.Lag.MinRecords, c.Lag.MinTime = int64(v.Int("autoRebalanceMinLagOffset")), seconds(v.Int("autoRebalanceMinLagTimeInSeconds"))
	c.Stuck.After, c.Stuck.MaxMoves = seconds(60*v.Int("moveStuckPartitionAfterMinutes")), v.Int("maxStuckPartitionMovements")
	c.WeighInterval = seconds(max(1, v.Int("workloadRefreshPeriodInSeconds")))
	d := &c.Discovery
	d.Interval = seconds(v.Int("refreshTimeInSeconds"))
	d.First = min(d.Interval, seconds(v.Int("initWaitTimeInSeconds")))
	d.NeedTarget, d.Expand = true, v.Bool("enableAutoTopicExpansion")
	if !v.Bool("enableAutoWhitelist") {
		return nil
	}
	text := v.String("patternToExcludeTopics")
	if !strings.Contains(text, offsetsTopic) {
		text += "|" + offsetsTopic
	}
	exclude, err := regexp.Compile("^(?:" + text + ")$")
	if err != nil {
		return fault("patternToExcludeTopics", text, "not a regular expression (RE2): "+err.Error())
	}
	d.Refuse = func(topic string) string {
		if exclude.MatchString(topic) {
			return "matches the exclude pattern " + text
		}
		return ""
	}
	return nil
}

// optionClusters reads where the Kafka clusters and the committed offsets are.
func optionClusters(v *classic.Values, s *settings) error {
	read := func(role, brokers, zookeeper string) endpoint {
		e := endpoint{zookeeper: v.String(zookeeper), cluster: cluster.Config{Name: clusterName(v.String(zookeeper), role)}}
		for broker := range strings.SplitSeq(v.String(brokers), ",") {
			if broker = strings.TrimSpace(broker); broker != "" {
				e.cluster.Bootstrap = append(e.cluster.Bootstrap, broker)
			}
		}
		return e
	}
	s.source = read("source", "srcBootstrapServers", "srcKafkaZkPath")
	s.target = read("target", "destBootstrapServers", "destKafkaZkPath")
	s.route = route.Route{Source: s.source.cluster.Name, Target: s.target.cluster.Name, ID: "1"}
	s.compares = v.Bool("enableSrcKafkaValidation") || v.Bool("enableAutoWhitelist")
	var faults []error
	if s.compares && !s.source.known() {
		faults = append(faults, fault("srcKafkaZkPath", "", "is required to compare with the source or to find topics; srcBootstrapServers does as well"))
	}
	if v.Bool("enableAutoWhitelist") && !s.target.known() {
		faults = append(faults, fault("destKafkaZkPath", "", "is required to find topics; destBootstrapServers does as well"))
	}
	if group := v.String("groupId"); group != "" {
		s.positions.Group = group
		if s.positions.Address = v.String("consumerCommitZkPath"); s.positions.Address == "" {
			s.positions.Address = v.String("srcKafkaZkPath")
		}
		if s.positions.Address == "" {
			v.Warn("-groupId %s: without -consumerCommitZkPath or -srcKafkaZkPath it is not known where its offsets are, and lag is not measured", group)
		}
	}
	return errors.Join(faults...)
}

// clusterName is what a cluster is called when only its ZooKeeper is known: its chroot's last part.
func clusterName(zookeeper, otherwise string) string {
	_, chroot, _ := strings.Cut(strings.TrimSuffix(zookeeper, "/"), "/")
	if name := chroot[strings.LastIndex(chroot, "/")+1:]; name != "" {
		return name
	}
	return otherwise
}

// optionBackup reads where backups go.
func optionBackup(v *classic.Values, s *settings) error {
	b := &s.controller.Backup
	b.Name = v.String("env") + "-" + v.String("helixClusterName")
	b.Dir = v.String("localBackupFilePath")
	if !v.Bool("backUpToGit") {
		if v.Given("backUpToGit") && !v.Given("localBackupFilePath") {
			return fault("localBackupFilePath", "", "is required with -backUpToGit false")
		}
		return nil
	}
	b.Git, b.Dir = v.String("remoteBackupRepo"), v.String("localGitRepoClonePath")
	var faults []error
	for _, name := range []string{"remoteBackupRepo", "localGitRepoClonePath"} {
		if v.String(name) == "" {
			faults = append(faults, fault(name, "", "is required with -backUpToGit true"))
		}
	}
	return errors.Join(faults...)
}
