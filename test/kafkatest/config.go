package kafkatest

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/causeway-mirror/causeway/internal/kafkad"
)

// config is the broker's server.properties: small, quick to notice a death, and with the options of the test on top.
func (b *Broker) config() map[string]string {
	c := b.cluster
	conf := kafkad.Small(filepath.Join(b.Dir, "data"), c.replicas())
	maps.Copy(conf, map[string]string{
		"inter.broker.listener.name":   "PLAINTEXT",
		"replica.lag.time.max.ms":      "3000",
		"controlled.shutdown.enable":   "true",
		"group.min.session.timeout.ms": "500",
		"log.cleaner.backoff.ms":       "200", // else a compacted topic is looked at every 15 s
		// Leaders move only when a broker dies or a test asks for it.
		"auto.leader.rebalance.enable":                                "false",
		"unclean.leader.election.enable":                              "false",
		"transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
	})
	listeners := []string{"PLAINTEXT://" + b.Addr()}
	advertised := slices.Clone(listeners)
	protocols := []string{"PLAINTEXT:PLAINTEXT"}
	if b.proxy != nil {
		listeners = append(listeners, "PROXIED://"+kafkad.Loopback(b.proxiedPort))
		advertised = append(advertised, "PROXIED://"+b.proxy.Addr())
		protocols = append(protocols, "PROXIED:PLAINTEXT")
	}
	if c.opts.Secure {
		listeners = append(listeners, "SECURE://"+kafkad.Loopback(b.securePort))
		advertised = append(advertised, "SECURE://"+kafkad.Loopback(b.securePort))
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
		listeners = append(listeners, "CONTROLLER://"+kafkad.Loopback(b.controllerPort))
		protocols = append(protocols, "CONTROLLER:PLAINTEXT")
		maps.Copy(conf, kafkad.KRaft(b.id, c.voters(), c.replicas()))
		conf["broker.session.timeout.ms"], conf["broker.heartbeat.interval.ms"] = "4000", "500"
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
		list = append(list, fmt.Sprintf("%d@%s", b.id, kafkad.Loopback(b.controllerPort)))
	}
	return strings.Join(list, ",")
}
