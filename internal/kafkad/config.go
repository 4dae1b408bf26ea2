package kafkad

import "strconv"

// Small is what server.properties holds of a broker that shares a machine with others: few threads and buffers, small internal topics with so
// many replicas, no topics that nobody asked for. log is the folder of its data.
func Small(log string, replicas int) map[string]string {
	n, minISR := strconv.Itoa(replicas), strconv.Itoa(max(1, replicas-1))
	return map[string]string{
		"log.dirs":                         log,
		"auto.create.topics.enable":        "false",
		"default.replication.factor":       n,
		"group.initial.rebalance.delay.ms": "0",
		// Internal topics: as safe as the cluster allows, few partitions because each costs files and time.
		"offsets.topic.replication.factor":         n,
		"offsets.topic.num.partitions":             "3",
		"transaction.state.log.replication.factor": n,
		"transaction.state.log.min.isr":            minISR,
		"transaction.state.log.num.partitions":     "3",
		// The cleaner would take 128 MiB at once.
		"num.network.threads":            "2",
		"num.io.threads":                 "4",
		"background.threads":             "2",
		"log.cleaner.dedupe.buffer.size": "8388608",
		"log.cleaner.io.buffer.size":     "524288",
	}
}

// KRaft is what it holds besides of a node that is broker and controller. voters are all controllers, id@host:port with commas between.
// Listeners are the caller's; the controller's is named CONTROLLER.
func KRaft(id int, voters string, replicas int) map[string]string {
	return map[string]string{
		"process.roles":             "broker,controller",
		"node.id":                   strconv.Itoa(id),
		"controller.listener.names": "CONTROLLER",
		"controller.quorum.voters":  voters,
		"share.coordinator.state.topic.replication.factor": strconv.Itoa(replicas),
		"share.coordinator.state.topic.min.isr":            strconv.Itoa(max(1, replicas-1)),
		"share.coordinator.state.topic.num.partitions":     "3",
	}
}
