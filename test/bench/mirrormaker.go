package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// mirrorMaker runs MirrorMaker 2 in its dedicated mode, tuned for volume as vendors advise. The source's alias is the run's name, which
// gives each run new positions and the target topic that name as a prefix.
func (l *lab) mirrorMaker() entrant {
	return entrant{name: "mm2", start: func(r turn) (*kafkatest.Program, error) {
		if l.mm2Jars == "" {
			return nil, errMissing
		}
		properties := filepath.Join(r.dir, "mm2.properties")
		if err := os.WriteFile(properties, []byte(mirrorMakerProperties(r)), 0o600); err != nil {
			return nil, fmt.Errorf("write properties: %w", err)
		}
		logging := filepath.Join(r.dir, "log4j.properties")
		if err := os.WriteFile(logging, []byte(mirrorMakerLogging(r.dir)), 0o600); err != nil {
			return nil, fmt.Errorf("write log configuration: %w", err)
		}
		return launch("mm2", r.dir, javaProgram(), "-Xmx2g", "-Xms1g", "-XX:+UseG1GC", "-Dlog4j.configuration=file:"+logging,
			"-cp", filepath.Join(l.mm2Jars, "*"), "org.apache.kafka.connect.mirror.MirrorMaker", properties)
	}}
}

func mirrorMakerProperties(r turn) string {
	text := `clusters = SOURCE, target
SOURCE.bootstrap.servers = FROM
target.bootstrap.servers = TO
SOURCE->target.enabled = true
target->SOURCE.enabled = false
SOURCE->target.topics = TOPIC
tasks.max = 4
replication.factor = REPLICAS
offset-syncs.topic.replication.factor = 1
checkpoints.topic.replication.factor = 1
heartbeats.topic.replication.factor = 1
config.storage.replication.factor = 1
offset.storage.replication.factor = 1
status.storage.replication.factor = 1
emit.heartbeats.enabled = false
emit.checkpoints.enabled = false
refresh.topics.interval.seconds = 5
sync.topic.acls.enabled = false
sync.topic.configs.enabled = false
SOURCE.consumer.auto.offset.reset = earliest
SOURCE.consumer.fetch.max.bytes = 52428800
SOURCE.consumer.max.partition.fetch.bytes = 1048576
SOURCE.consumer.max.poll.records = 5000
target.producer.compression.type = CODEC
target.producer.batch.size = 327680
target.producer.linger.ms = 20
target.producer.buffer.memory = 134217728
`
	return strings.NewReplacer("SOURCE", r.name, "FROM", strings.Join(r.from, ","), "TOPIC", r.topic, "TO", strings.Join(r.to, ","),
		"REPLICAS", strconv.Itoa(r.replicas), "CODEC", r.codec).Replace(text)
}

func mirrorMakerLogging(dir string) string {
	return "log4j.rootLogger=WARN, F\nlog4j.appender.F=org.apache.log4j.FileAppender\nlog4j.appender.F.File=" + filepath.Join(dir, "server.log") +
		"\nlog4j.appender.F.layout=org.apache.log4j.PatternLayout\nlog4j.appender.F.layout.ConversionPattern=%d %p %c: %m%n\n"
}
