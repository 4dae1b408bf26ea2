package api

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"

	"github.com/causeway-mirror/causeway/route"
)

// What uReplicator takes for the rate of a partition that nobody has measured.
const (
	unmeasuredBytes    = 1000.0
	unmeasuredMessages = 1.0
)

// compatRate is a partition's rate as the answers show it.
func compatRate(w FleetWorker, p route.Partition) FleetRate {
	if rate, ok := w.Rates[p]; ok {
		return rate
	}
	return FleetRate{Bytes: unmeasuredBytes, Messages: unmeasuredMessages}
}

// serving says that a worker is there for work.
func serving(w FleetWorker) bool { return w.Live && !w.Draining && !w.Standby }

func (*Compat) getInstances(w http.ResponseWriter, call compatCall) {
	only := call.arg(0)
	all, draining, instances := []string{}, []string{}, map[string][]string{}
	for _, worker := range call.fleet.Workers() {
		if worker.Live {
			all = append(all, worker.ID)
		}
		if worker.Draining {
			draining = append(draining, worker.ID)
		}
		if !serving(worker) || only != "" && only != worker.ID {
			continue
		}
		list := make([]string, 0, len(worker.Partitions)+1)
		total := 0.0
		for _, p := range worker.Partitions {
			rate := compatRate(worker, p)
			total += rate.Bytes
			list = append(list, fmt.Sprintf("%s.%d:%.0f", p.Topic, p.Partition, rate.Bytes))
		}
		instances[worker.ID] = append(list, fmt.Sprintf("TOTALWORKLOAD.%d:%.0f", len(worker.Partitions), total))
	}
	compatJSON(w, map[string]any{"instances": instances, "blacklisted": draining, "allInstances": all})
}

func (c *Compat) postInstance(w http.ResponseWriter, call compatCall) {
	worker := call.arg(0)
	if worker == "" {
		switch err := call.fleet.Rebalance(call.Context()); {
		case errors.Is(err, ErrNoLeader):
			noLeader(w)
			return
		case err != nil:
			c.log.Warn("a rebalance that was asked for failed", "error", err)
			compatText(w, http.StatusOK, "Skipped rebalancing cluster\n")
			return
		}
		compatText(w, http.StatusOK, "Cluster is rebalanced\n")
		return
	}
	if err := call.fleet.Drain(call.Context(), worker, false); err != nil {
		compatFailed(w, err, "Failed to whitelist instance %s, with exception: %s", worker, c.workerFault(worker, err))
		return
	}
	compatText(w, http.StatusOK, "Instance %s is whitelisted", worker)
}

func (c *Compat) deleteInstance(w http.ResponseWriter, call compatCall) {
	worker := call.arg(0)
	if worker == "" {
		compatText(w, http.StatusOK, "Instance name is required to blacklist")
		return
	}
	if err := call.fleet.Drain(call.Context(), worker, true); err != nil {
		compatFailed(w, err, "Failed to blacklist instance %s, with exception: %s", worker, c.workerFault(worker, err))
		return
	}
	compatText(w, http.StatusOK, "Instance %s is blacklisted", worker)
}

func (c *Compat) workerFault(worker string, err error) string {
	if errors.Is(err, ErrNotFound) {
		return fmt.Sprintf("cluster %s instance %s is not setup yet", c.cfg.Cluster, worker)
	}
	return err.Error()
}

// noOption answers what is no option of /admin.
func noOption(w http.ResponseWriter) { compatJSON(w, map[string]any{"opt": "No valid input!"}) }

func (c *Compat) getAdmin(w http.ResponseWriter, call compatCall) {
	switch strings.ToLower(call.arg(0)) {
	case "autobalancing_status":
		compatJSON(w, map[string]any{"auto_balancing": call.fleet.Balancing()})
	case "workloadinfo":
		compatJSON(w, c.workload(call.fleet))
	default:
		noOption(w)
	}
}

func (*Compat) postAdmin(w http.ResponseWriter, call compatCall) {
	opt := strings.ToLower(call.arg(0))
	on := opt == "enable_autobalancing"
	if !on && opt != "disable_autobalancing" {
		noOption(w)
		return
	}
	switch err := call.fleet.SetBalancing(call.Context(), on); {
	case errors.Is(err, ErrNoLeader):
		noLeader(w)
		return
	case err != nil:
		compatError(w, call.Request, http.StatusInternalServerError)
		return
	}
	compatJSON(w, map[string]any{"opt": opt, "auto_balancing": call.fleet.Balancing()})
}

// load is a sum of rates.
type load struct {
	bytes, messages float64
	partitions      int
}

func (l *load) add(r FleetRate) {
	l.bytes += r.Bytes
	l.messages += r.Messages
	l.partitions++
}

// body is a load as workloadinfo shows it.
func (l *load) body() map[string]any {
	perBytes, perMessages := unmeasuredBytes, unmeasuredMessages
	if l.partitions > 0 {
		perBytes, perMessages = l.bytes/float64(l.partitions), l.messages/float64(l.partitions)
	}
	return map[string]any{
		"bytesPerSecond": l.bytes, "bytesPerSecondPerPartition": perBytes, "msgsPerSecond": l.messages, "msgsPerSecondPerPartition": perMessages,
		"partitions": l.partitions, "lastUpdate": 0,
	}
}

// workload is the load by worker, and how many workers it would take.
func (c *Compat) workload(fleet Fleet) map[string]any {
	var total load
	workers := []map[string]any{}
	lagging := 0
	for _, worker := range fleet.Workers() {
		if !serving(worker) || len(worker.Partitions) == 0 {
			continue
		}
		var own load
		late := []map[string]any{}
		for _, p := range worker.Partitions {
			rate := compatRate(worker, p)
			own.add(rate)
			total.add(rate)
			if lag, ok := fleet.Lag(p); ok && lag.Lagging {
				one := lagBody(lag)
				one["topicName"], one["partitionId"] = p.Topic, p.Partition
				late = append(late, one)
			}
		}
		if len(late) > 0 {
			lagging++
		}
		workers = append(workers, map[string]any{
			"workerId": worker.ID, "numberOfTopicPartitions": len(worker.Partitions), "totalWorkload": own.body(), "laggingTopicPartition": late,
		})
	}
	expected := 1
	if c.cfg.WorkerCapacity > 0 {
		expected += int(math.Round(total.bytes / c.cfg.WorkerCapacity))
	}
	expected += max(0, lagging-int(float64(len(workers))*c.cfg.DedicatedRatio))
	return map[string]any{
		"autoBalancingEnabled": fleet.Balancing(), "numOfExpectedWorkers": expected, "numOfLaggingWorkers": lagging, "topicWorkload": total.body(),
		"workerInstances": workers,
	}
}
