package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/causeway-mirror/causeway/controller"
	"github.com/causeway-mirror/causeway/internal/graphite"
)

// figures are what uReplicator's controller reported.
type figures struct {
	controller *controller.Controller
	meters     []*graphite.Meter
}

func newFigures(c *controller.Controller, now time.Time) *figures {
	count := func(name string, read func(controller.Tally) int64) *graphite.Meter {
		return graphite.NewMeter(name, now, func() float64 { return float64(read(c.Tally())) })
	}
	return &figures{controller: c, meters: []*graphite.Meter{
		count("worker.rebalance.rate", func(t controller.Tally) int64 { return t.Rebalances }),
		count("offsetMonitor.executed", func(t controller.Tally) int64 { return t.LagRuns }),
	}}
}

// list collects figures.
type list []graphite.Sample

func (l *list) add(name string, value int) {
	*l = append(*l, graphite.Sample{Name: name, Value: float64(value)})
}

// read gives them as they are now. What only a leader knows is 0 elsewhere, or left out where there is one for each topic or worker.
func (f *figures) read() []graphite.Sample {
	now := time.Now()
	var all list
	for _, m := range f.meters {
		all = append(all, m.Samples(now)...)
	}
	done := f.controller.Tally()
	const found = "AutoTopicWhitelistManager."
	all.add(found+"numOfAutoWhitelistingRuns", int(done.Discoveries))
	all.add(found+"numWhitelistedTopics", int(done.Adopted))
	all.add(found+"numAutoExpandedTopics", int(done.Expanded))
	all.add(found+"numErrorTopics", int(done.Failed))
	all.add("kafkaAndIdealstatesDiscrepancy.autoExpansion.topics", int(done.Expanded))
	t, err := f.controller.Term()
	if err != nil {
		all.add("leader.counter", 0)
		return all
	}
	all.add("leader.counter", 1)
	f.validation(&all, t)
	f.workers(&all, t)
	f.lag(&all, t)
	return all
}

func (*figures) validation(all *list, t *controller.Term) {
	v := t.Validate()
	all.add("topic.totalNumber", v.Topics)
	all.add("topic.errorNumber", v.ErrorTopics)
	all.add("topic.partitions.totalNumber", v.Partitions)
	all.add("topic.partitions.onlineNumber", v.Online)
	all.add("topic.partitions.offlineNumber", v.Offline)
	all.add("topic.partitions.errorNumber", v.Error)
	for worker, n := range v.Ideal {
		all.add("idealStates.topicPartitions."+worker+".totalNumber", n)
	}
	for worker, n := range v.External {
		all.add("externalView.topicPartitions."+worker+".totalNumber", n)
	}
	const differs = "kafkaAndIdealstatesDiscrepancy."
	d := t.Discrepancy()
	all.add(differs+"missing.topics", d.Missing)
	all.add(differs+"mismatched.topics", len(d.Mismatched))
	all.add(differs+"mismatched.topicPartitions", d.Partitions)
	for topic, diff := range d.Mismatched {
		all.add(differs+"mismatched.topic."+dotless(topic), int(diff))
	}
}

func (*figures) workers(all *list, t *controller.Term) {
	live, idle, draining := 0, 0, 0
	for _, l := range t.Loads() {
		if l.Worker.Live {
			live++
			if len(l.Partitions) == 0 {
				idle++
			}
		}
		if l.Worker.Draining {
			draining++
		}
	}
	all.add("worker.liveInstances", live)
	all.add("worker.idleInstances", idle)
	all.add("worker.blacklistedInstances", draining)
	all.add("worker.blacklistedTopicPartitions", len(t.Off()))
}

func (*figures) lag(all *list, t *controller.Term) {
	_, missed := t.LagRun()
	all.add("OffsetMonitorFailureCount", missed)
	all.add("NumNoProgressPartitions", len(t.Still()))
	for p, sample := range t.Lags() {
		all.add("OffsetMonitorLag."+dotless(p.Topic)+"."+strconv.Itoa(int(p.Partition)), int(max(0, sample.Records)))
	}
}

// dotless is a topic as a part of a name.
func dotless(topic string) string { return strings.ReplaceAll(topic, ".", "_") }
