package helix

import (
	"maps"
	"strconv"
	"strings"
)

// IdealState is what a resource should look like: partition → instance → state. The record may hold more than what Causeway knows; it is kept.
type IdealState struct {
	Record *Record
	// Version is the znode's when it was read; SetIdealState compares it.
	Version int32
}

// NewIdealState is the CUSTOMIZED ideal state of a resource without assignments, as uReplicator writes it: partitions are announced as their
// number, replicas bounds how many instances may have one of them ONLINE.
func NewIdealState(resource string, partitions, replicas int) *IdealState {
	s := &IdealState{Record: NewRecord(resource)}
	maps.Copy(s.Record.Simple, map[string]string{
		keyRebalanceMode: modeCustomized, keyIdealStateMode: modeCustomized, keyStateModelRef: OnlineOffline, keyFactory: DefaultFactory,
		keyReplicas: strconv.Itoa(replicas),
	})
	s.SetPartitions(partitions)
	return s
}

// Resource is the resource's name.
func (s *IdealState) Resource() string { return s.Record.ID }

// SetPartitions says how many partitions the resource has. It assigns nothing.
func (s *IdealState) SetPartitions(n int) {
	s.Record.Simple[keyNumPartitions] = strconv.Itoa(n)
	s.Record.Simple[keyMaxPerInstance] = strconv.Itoa(n)
}

// Partitions is how many partitions the resource says it has; 0 if it does not say.
func (s *IdealState) Partitions() int {
	n, err := strconv.Atoi(s.Record.Simple[keyNumPartitions])
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// Usable says whether it is CUSTOMIZED with OnlineOffline. Nothing is done for a resource of another kind, nor for one whose record could not be
// read, which is blank.
func (s *IdealState) Usable() bool {
	mode := s.Record.Simple[keyRebalanceMode]
	if mode == "" {
		mode = s.Record.Simple[keyIdealStateMode]
	}
	return strings.EqualFold(mode, modeCustomized) && s.Record.Simple[keyStateModelRef] == OnlineOffline
}

// Blank says that the record holds nothing: that of a resource whose znode could not be read.
func (s *IdealState) Blank() bool {
	return len(s.Record.Simple) == 0 && len(s.Record.Map) == 0 && len(s.Record.List) == 0
}

// Enabled says whether the resource is enabled: no word means yes.
func (s *IdealState) Enabled() bool { return enabled(s.Record) }

// Assign makes one instance the only one that a partition is assigned to, in that state.
func (s *IdealState) Assign(partition, instance string, state State) {
	s.Record.Map[partition] = map[string]string{instance: string(state)}
}

// Unassign takes the partition from everybody.
func (s *IdealState) Unassign(partition string) { delete(s.Record.Map, partition) }

// Clone returns a deep copy.
func (s *IdealState) Clone() *IdealState {
	return &IdealState{Record: s.Record.Clone(), Version: s.Version}
}

// enabled reads HELIX_ENABLED of an ideal state or an instance's config.
func enabled(r *Record) bool {
	v, ok := r.Simple[keyEnabled]
	return !ok || v == "" || r.flag(keyEnabled)
}

// stateModelRecord is the definition of OnlineOffline that Java controllers install when they start, whatever was there before.
func stateModelRecord() *Record {
	r := NewRecord(OnlineOffline)
	r.Simple[keyInitialState] = string(Offline)
	r.List[keyStatePriority] = []string{string(Online), string(Offline), string(Dropped)}
	r.List[keyTransitionsOrder] = []string{"OFFLINE-ONLINE", "ONLINE-OFFLINE", "OFFLINE-DROPPED"}
	r.Map = map[string]map[string]string{
		"ONLINE.meta": {"count": "R"}, "OFFLINE.meta": {"count": "-1"}, "DROPPED.meta": {"count": "-1"},
		"ONLINE.next":  {string(Offline): string(Offline), string(Dropped): string(Offline)},
		"OFFLINE.next": {string(Online): string(Online), string(Dropped): string(Dropped)},
	}
	return r
}
