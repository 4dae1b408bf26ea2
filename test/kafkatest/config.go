package kafkatest

import (
	"bytes"
	_ "embed"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

//go:embed log4j.properties
var log4j []byte

// javaArgs is the command line of a server of a Kafka release whose logs go into dir. CAUSEWAY_KAFKA_LOG sets the log level,
// by default WARN.
func javaArgs(version, dir, heap, main string, args ...string) ([]string, error) {
	program, err := JDK("java")
	if err != nil {
		return nil, fmt.Errorf("find java: %w", err)
	}
	libs, err := Libs(version)
	if err != nil {
		return nil, err
	}
	conf := filepath.Join(dir, "log4j.properties")
	if err := os.WriteFile(conf, log4j, 0o600); err != nil {
		return nil, fmt.Errorf("write log configuration: %w", err)
	}
	level := os.Getenv("CAUSEWAY_KAFKA_LOG")
	if level == "" {
		level = "WARN"
	}
	// The serial collector and a small initial heap keep several servers on two cores and little memory bearable.
	return append([]string{
		program, "-Xmx" + heap, "-Xms64m", "-XX:+UseSerialGC", "-Xshare:auto", "-XX:-UsePerfData",
		"-Dlog4j.configuration=file:" + conf, "-Dcauseway.log.level=" + level, "-Dcauseway.log.file=" + filepath.Join(dir, "server.log"),
		"-cp", filepath.Join(libs, "*"), main,
	}, args...), nil
}

// config is the broker's server.properties: small, quick to notice a death, and with the options of the test on top.
func (b *Broker) config() map[string]string {
	c := b.cluster
	replicas := strconv.Itoa(c.replicas())
	minISR := strconv.Itoa(max(1, c.replicas()-1))
	conf := map[string]string{
		"log.dirs":                         filepath.Join(b.dir, "data"),
		"auto.create.topics.enable":        "false",
		"default.replication.factor":       replicas,
		"inter.broker.listener.name":       "PLAINTEXT",
		"replica.lag.time.max.ms":          "3000",
		"controlled.shutdown.enable":       "true",
		"group.initial.rebalance.delay.ms": "0",
		"group.min.session.timeout.ms":     "500",
		// Leaders move only when a broker dies or a test asks for it.
		"auto.leader.rebalance.enable":   "false",
		"unclean.leader.election.enable": "false",
		// Internal topics: as safe as the cluster allows, few partitions because each costs files and time.
		"offsets.topic.replication.factor":                            replicas,
		"offsets.topic.num.partitions":                                "3",
		"transaction.state.log.replication.factor":                    replicas,
		"transaction.state.log.min.isr":                               minISR,
		"transaction.state.log.num.partitions":                        "3",
		"transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
		// Threads and buffers for a test, not for a server. The cleaner would take 128 MiB at once.
		"num.network.threads":            "2",
		"num.io.threads":                 "4",
		"background.threads":             "2",
		"log.cleaner.dedupe.buffer.size": "8388608",
		"log.cleaner.io.buffer.size":     "524288",
	}
	listeners := []string{"PLAINTEXT://" + b.Addr()}
	advertised := slices.Clone(listeners)
	protocols := []string{"PLAINTEXT:PLAINTEXT"}
	if b.proxy != nil {
		listeners = append(listeners, "PROXIED://"+loopback(b.proxiedPort))
		advertised = append(advertised, "PROXIED://"+b.proxy.Addr())
		protocols = append(protocols, "PROXIED:PLAINTEXT")
	}
	if c.opts.Secure {
		listeners = append(listeners, "SECURE://"+loopback(b.securePort))
		advertised = append(advertised, "SECURE://"+loopback(b.securePort))
		protocols = append(protocols, "SECURE:SASL_SSL")
		maps.Copy(conf, c.secureConfig())
	}
	if c.useZooKeeper() {
		maps.Copy(conf, map[string]string{
			"broker.id":                       strconv.Itoa(b.id),
			"zookeeper.connect":               c.zk.Addr(),
			"zookeeper.session.timeout.ms":    "4000",
			"zookeeper.connection.timeout.ms": "60000",
		})
	} else {
		listeners = append(listeners, "CONTROLLER://"+loopback(b.controllerPort))
		protocols = append(protocols, "CONTROLLER:PLAINTEXT")
		maps.Copy(conf, map[string]string{
			"process.roles":                                    "broker,controller",
			"node.id":                                          strconv.Itoa(b.id),
			"controller.listener.names":                        "CONTROLLER",
			"controller.quorum.voters":                         c.voters(),
			"broker.session.timeout.ms":                        "4000",
			"broker.heartbeat.interval.ms":                     "500",
			"share.coordinator.state.topic.replication.factor": replicas,
			"share.coordinator.state.topic.min.isr":            minISR,
			"share.coordinator.state.topic.num.partitions":     "3",
		})
	}
	conf["listeners"] = strings.Join(listeners, ",")
	conf["advertised.listeners"] = strings.Join(advertised, ",")
	conf["listener.security.protocol.map"] = strings.Join(protocols, ",")
	maps.Copy(conf, c.opts.Config)
	return conf
}

// voters is the list of the cluster's controllers as Kafka's controller.quorum.voters takes it.
func (c *Cluster) voters() string {
	var list []string
	for _, b := range c.brokers {
		list = append(list, fmt.Sprintf("%d@%s", b.id, loopback(b.controllerPort)))
	}
	return strings.Join(list, ",")
}

// render writes a properties file, sorted for the reader of a failed test's leftovers.
func render(conf map[string]string) []byte {
	var b bytes.Buffer
	for _, k := range slices.Sorted(maps.Keys(conf)) {
		fmt.Fprintf(&b, "%s=%s\n", k, conf[k])
	}
	return b.Bytes()
}
