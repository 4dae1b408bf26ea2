package controller

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/causeway-mirror/causeway/helix"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/operator"
	"github.com/causeway-mirror/causeway/route"
)

// States of a partition in an ideal state or an external view, as ZooKeeper holds them.
const (
	Online  = string(helix.Online)
	Offline = string(helix.Offline)
	Failed  = string(helix.Error)
)

// Assignment says of each partition which workers have it in which state: partition → worker → state.
type Assignment map[int32]map[string]string

// Topic is one topic's ideal state. Those in a State are shared: clone before changing.
type Topic struct {
	Name       string
	Partitions int32
	// Assigned has no entry for a partition that nobody was found for. Offline in it means that the partition is taken off (blacklisted).
	Assigned Assignment
	First    map[int32]string // of partitions with a hot standby: which of the two is the owner
	Version  int32            // of the record, for compare-and-set
}

// Clone returns a copy that shares nothing.
func (t Topic) Clone() Topic {
	assigned := make(Assignment, len(t.Assigned))
	for p, workers := range t.Assigned {
		assigned[p] = maps.Clone(workers)
	}
	t.Assigned = assigned
	if t.First = maps.Clone(t.First); t.First == nil {
		t.First = map[int32]string{}
	}
	return t
}

// Owner is the worker that partition p is assigned to; empty when there is none. Of several it is the one that First names, else the first by name.
func (t Topic) Owner(p int32) string {
	if _, has := t.Assigned[p][t.First[p]]; has {
		return t.First[p]
	}
	if workers := t.Assigned[p]; len(workers) > 0 {
		return slices.Min(slices.Collect(maps.Keys(workers)))
	}
	return ""
}

// Standby is the worker that mirrors partition p beside its owner; empty when there is none.
func (t Topic) Standby(p int32) string {
	owner := t.Owner(p)
	for _, id := range sortedKeys(t.Assigned[p]) {
		if id != owner {
			return id
		}
	}
	return ""
}

// Off says whether partition p is taken off: it has a worker, but shall not be mirrored.
func (t Topic) Off(p int32) bool {
	for _, state := range t.Assigned[p] {
		if state != Offline {
			return false
		}
	}
	return len(t.Assigned[p]) > 0
}

// Worker is a participant of the cluster, live or not.
type Worker struct {
	ID       string
	Live     bool
	Draining bool // tagged "blacklisted": it gives away what it owns and gets nothing
	Disabled bool // HELIX_ENABLED is false
}

// usable says whether the worker can take partitions.
func (w Worker) usable() bool { return w.Live && !w.Draining && !w.Disabled }

// State is the cluster as last seen. It is never changed; a newer one replaces it.
type State struct {
	Topics map[string]Topic
	// Torn are topics whose ideal state can't be read. They are not among Topics: what is written of them would be made up.
	Torn    map[string]bool
	Workers map[string]Worker
	// Views are the external views: what the live workers say they do, by topic.
	Views map[string]Assignment
	// Balancing is false when an operator has turned the moving of partitions off.
	Balancing bool
	// Maintenance is true while somebody asks in Helix's way for assignments to stay as they are.
	Maintenance bool
	// Excluded topics were deleted by an operator: discovery leaves them alone.
	Excluded map[string]bool
	// Pins name the worker that a partition belongs on whenever that one can work.
	Pins map[route.Partition]string
	// Settings are what operators have set for topics, of those that differ from others. Not to be changed.
	Settings map[string]operator.Topic
}

// moves says whether partitions may move.
func (s *State) moves() bool { return s.Balancing && !s.Maintenance }

// names gives the topics in order.
func (s *State) names() []string { return slices.Sorted(maps.Keys(s.Topics)) }

// partitions lists every partition of every topic, in order.
func (s *State) partitions() []route.Partition {
	var all []route.Partition
	for _, name := range s.names() {
		for p := range s.Topics[name].Partitions {
			all = append(all, route.Partition{Topic: name, Partition: p})
		}
	}
	return all
}

// Cluster is what a leader sees and changes. Its writes fail once the term is over. Errors beside those named: ErrNotLeader, and whatever
// keeps ZooKeeper from answering.
type Cluster interface {
	// State is the cluster as last seen, own writes included. No IO.
	State() *State
	// Changed returns a channel that closes when State has another answer than at the call.
	Changed() <-chan struct{}
	// Create makes topics. *ExistsError if one is there: others may have been made then.
	Create(ctx context.Context, topics ...Topic) error
	// Write replaces topics, each if it still has its Version; ErrConflict if one has not: a part may have been
	// written then, and State shows what the other writer left.
	Write(ctx context.Context, topics []Topic) error
	// Drop removes a topic with what operators asked of it, pins too; the workers are told to let go of it. *NotFoundError if it is not there.
	Drop(ctx context.Context, topic string) error
	// Drain sets or clears a worker's tag. *NotFoundError if no such worker ever joined.
	Drain(ctx context.Context, worker string, on bool) error
	// SetBalancing turns the moving of partitions on or off.
	SetBalancing(ctx context.Context, on bool) error
	// Exclude keeps a topic from being discovered, or lets it be found again. Repeating is no error.
	Exclude(ctx context.Context, topic string, on bool) error
	// Pin says which worker a partition belongs on; an empty name takes that back. Repeating is no error.
	Pin(ctx context.Context, p route.Partition, worker string) error
	// Configure changes what operators have set for a topic; the workers follow it. change may be called again.
	Configure(ctx context.Context, topic string, change func(*operator.Topic)) error
	// Command leaves a command for the worker that runs the partition, or will, in place of an earlier one.
	Command(ctx context.Context, p route.Partition, c operator.Command) error
	// Reset lets a worker leave ERROR for partitions of a topic: they go to OFFLINE and on to what the ideal state wants. All or none.
	Reset(ctx context.Context, worker, topic string, partitions ...int32) error
}

// Leader says who leads.
type Leader struct {
	ID      string // instance name; empty while nobody leads
	Address string // base URL of its API; empty if it published none, as a Java controller does
}

// Coordinator elects leaders.
type Coordinator interface {
	// Campaign stands for election until ctx ends. Whenever it is won it calls lead, whose context ends with the term; lead returns soon after.
	Campaign(ctx context.Context, lead func(ctx context.Context, c Cluster) error) error
	// Leader says who leads at the moment.
	Leader(ctx context.Context) (Leader, error)
}

// Kafka is what the controller asks a Kafka cluster.
type Kafka interface {
	// Counts gives the partitions of each topic, internal ones left out: of those named, or of all. A topic that is not there is not in the answer.
	Counts(ctx context.Context, topics ...string) (map[string]int32, error)
	// Ends gives the offset that a mirror can reach at the moment: the last stable one under read_committed, else the high watermark.
	// Partitions that can't be asked are left out.
	Ends(ctx context.Context, parts []route.Partition) (map[route.Partition]route.Offset, error)
}

// Positions are the committed positions; an offsets.Store has them.
type Positions interface {
	Load(ctx context.Context, parts []route.Partition) (map[route.Partition]offsets.Checkpoint, error)
}

// Rate is how much goes through a partition or a topic.
type Rate struct {
	Bytes    float64 // a second
	Messages float64 // a second
}

// Workload measures partitions.
type Workload interface {
	// Rates gives what has been measured lately, by the workers or another source. A partition that is not in it is unknown.
	Rates(ctx context.Context) (map[route.Partition]Rate, error)
}

// Pulse knows which workers answer.
type Pulse interface {
	// Take asks all workers now. It takes seconds at most, and an error says that nothing is known of any.
	Take(ctx context.Context) error
	// Silent gives the workers that have answered before and did not when they were asked last, each with when it answered last. No IO.
	Silent() map[string]time.Time
	// Spilled gives the partitions of which workers have records on their disks that the target has not, by worker, as they said last. No IO.
	Spilled() map[string][]route.Partition
}

// partitionName is how Helix records name a partition: the bare number.
func partitionName(p int32) string { return strconv.Itoa(int(p)) }

// parsePartition reads a partition's name; false for a foreign one, or one beyond what a topic may have.
func parsePartition(name string) (int32, bool) {
	n, err := strconv.ParseInt(name, 10, 32)
	return int32(n), err == nil && n >= 0 && n < mostPartitions && strconv.FormatInt(n, 10) == name
}

// sortedKeys gives a map's keys in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
