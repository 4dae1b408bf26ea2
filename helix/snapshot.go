package helix

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// snapshot is a cluster as a controller knows it, kept in memory and brought up to date znode by znode. It does no IO. Records in it are
// never changed once they are stored, so they may be handed out.
//
// Whatever changes marks the resources that it concerns in dirty; those alone are looked at again.
type snapshot struct {
	live    map[string]*liveNode
	configs map[string]*instanceNode
	ideals  map[string]*idealNode
	// held is what live instances have reported in their live session: resource → instance → states.
	held    map[string]map[string]*heldStates
	queues  map[string]map[string]*Message        // instance → message id → transition; whatever else is there is nil
	pending map[string]map[string]map[string]bool // resource → instance → ids of its transitions in queues
	paused  bool
	upkeep  bool // maintenance mode
	dirty   map[string]struct{}
}

func newSnapshot() *snapshot {
	return &snapshot{
		live: map[string]*liveNode{}, configs: map[string]*instanceNode{}, ideals: map[string]*idealNode{},
		held: map[string]map[string]*heldStates{}, queues: map[string]map[string]*Message{},
		pending: map[string]map[string]map[string]bool{}, dirty: map[string]struct{}{},
	}
}

// liveNode is a live instance.
type liveNode struct {
	session string
	batches bool // its version knows batch messages
}

// newLive reads a live instance. Its session is the node's owner, which can't lie. A node without one, which was copied with the tree or made by
// hand, is of nobody who lives.
func newLive(r *Record, stat Stat) *liveNode {
	return &liveNode{session: stat.Owner, batches: atLeast(r.Simple[keyHelixVersion], 0, 6, 1)}
}

// atLeast compares versions such as 0.6.8 and helix-0.6.8. A part that is no number ends the comparison.
func atLeast(version string, wanted ...int) bool {
	version = version[strings.LastIndexByte(version, '-')+1:]
	if version == "" {
		return false
	}
	parts := strings.Split(version, ".")
	for i, w := range wanted {
		if i == len(parts) {
			return false
		}
		n, err := strconv.Atoi(parts[i])
		if err != nil {
			return true
		}
		if n != w {
			return n > w
		}
	}
	return true
}

// instanceNode is what an instance's configuration says.
type instanceNode struct {
	Instance
	disabled map[string]map[string]bool // resource → partitions
	always   map[string]bool            // partitions of every resource, the old form
}

func newInstanceNode(name string, r *Record) *instanceNode {
	p := &instanceNode{Instance: parseInstance(name, r), disabled: map[string]map[string]bool{}, always: setOf(r.List[keyDisabledPartition])}
	for resource, partitions := range p.Disabled {
		p.disabled[resource] = setOf(partitions)
	}
	return p
}

func setOf(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

// blocks says that the instance may not have the partition beyond OFFLINE. An instance without configuration may.
func (p *instanceNode) blocks(resource, partition string) bool {
	return p != nil && (!p.Enabled || p.always[partition] || p.disabled[resource][partition])
}

// idealNode is an ideal state.
type idealNode struct {
	record   *Record
	version  int32
	usable   bool // CUSTOMIZED and of the model that we know
	off      bool
	replicas int // most that may be ONLINE; negative: no bound
	anyLive  bool
	batch    bool
	hidden   bool // has no external view
	factory  string
}

func newIdeal(r *Record, version int32) *idealNode {
	n := &idealNode{
		record: r, version: version, usable: (&IdealState{Record: r}).Usable(),
		off: !enabled(r), batch: r.flag(keyBatchMode), hidden: r.flag(keyExternalViewOff), factory: r.Simple[keyFactory],
	}
	if n.factory == "" {
		n.factory = DefaultFactory
	}
	replicas := r.Simple[keyReplicas]
	if n.anyLive = replicas == "ANY_LIVEINSTANCE"; n.anyLive {
		return n
	}
	var err error
	if n.replicas, err = strconv.Atoi(replicas); err != nil {
		n.replicas = 0
		if len(r.Map) > 0 { // as peers do: those of the partition that is first by name
			n.replicas = len(r.Map[slices.Min(slices.Collect(maps.Keys(r.Map)))])
		}
	}
	return n
}

// heldStates is a current state.
type heldStates struct {
	states  map[string]State
	factory string
	batch   bool
}

// newHeld reads a current state of a session; nil if it is of another one or of another model.
func newHeld(r *Record, session string) *heldStates {
	if r.Simple[keySessionID] != session || r.Simple[keyStateModel] != OnlineOffline {
		return nil
	}
	h := &heldStates{states: partitionStates(r), factory: r.Simple[keyFactory], batch: r.flag(keyBatchMode)}
	if h.factory == "" {
		h.factory = DefaultFactory
	}
	return h
}

// touch marks a resource.
func (s *snapshot) touch(resource string) { s.dirty[resource] = struct{}{} }

// touchAll marks everything.
func (s *snapshot) touchAll() {
	for _, resource := range s.resources() {
		s.touch(resource)
	}
}

// touchInstance marks what an instance is concerned with.
func (s *snapshot) touchInstance(instance string) {
	for resource, ideal := range s.ideals {
		for _, replicas := range ideal.record.Map {
			if _, ok := replicas[instance]; ok {
				s.touch(resource)
				break
			}
		}
	}
	for resource, holders := range s.held {
		if holders[instance] != nil {
			s.touch(resource)
		}
	}
}

// resources are those with an ideal state or with states of a live instance, in order.
func (s *snapshot) resources() []string {
	all := map[string]struct{}{}
	for resource := range s.ideals {
		all[resource] = struct{}{}
	}
	for resource := range s.held {
		all[resource] = struct{}{}
	}
	return slices.Sorted(maps.Keys(all))
}

// setLive notes a live instance, or with nil that it is gone; what an earlier session of it reported does not count any more.
func (s *snapshot) setLive(instance string, n *liveNode) {
	before := s.live[instance]
	if before != nil && n != nil && *before == *n {
		return
	}
	s.touchInstance(instance)
	if n == nil {
		delete(s.live, instance)
	} else {
		s.live[instance] = n
	}
	if before != nil && (n == nil || n.session != before.session) {
		s.forget(instance)
	}
	s.touchInstance(instance)
}

// forget drops what an instance reported and what was sent to it.
func (s *snapshot) forget(instance string) {
	for resource, holders := range s.held {
		if holders[instance] != nil {
			s.setHeld(resource, instance, nil)
		}
	}
	for id := range s.queues[instance] {
		s.setQueued(instance, id, nil, true)
	}
	delete(s.queues, instance)
}

// setHeld notes what an instance reports of a resource; nil: nothing.
func (s *snapshot) setHeld(resource, instance string, h *heldStates) {
	s.touch(resource)
	if h == nil {
		delete(s.held[resource], instance)
		if len(s.held[resource]) == 0 {
			delete(s.held, resource)
		}
		return
	}
	if s.held[resource] == nil {
		s.held[resource] = map[string]*heldStates{}
	}
	s.held[resource][instance] = h
}

// setIdeal notes an ideal state; nil: it is gone.
func (s *snapshot) setIdeal(resource string, n *idealNode) {
	s.touch(resource)
	if n == nil {
		delete(s.ideals, resource)
		return
	}
	s.ideals[resource] = n
}

// setConfig notes a participant's configuration; nil: it is gone.
func (s *snapshot) setConfig(instance string, p *instanceNode) {
	if p == nil {
		delete(s.configs, instance)
	} else {
		s.configs[instance] = p
	}
	s.touchInstance(instance)
}

// setQueued notes a message in a live instance's queue, or that it is gone. What is no transition (nil) counts for the queue's length alone.
func (s *snapshot) setQueued(instance, id string, m *Message, gone bool) {
	if old := s.queues[instance][id]; old != nil {
		ids := s.pending[old.Resource][instance]
		delete(ids, id)
		if len(ids) == 0 {
			delete(s.pending[old.Resource], instance)
		}
		if len(s.pending[old.Resource]) == 0 {
			delete(s.pending, old.Resource)
		}
		s.touch(old.Resource)
	}
	if gone {
		delete(s.queues[instance], id)
		return
	}
	if s.queues[instance] == nil {
		s.queues[instance] = map[string]*Message{}
	}
	s.queues[instance][id] = m
	if m == nil {
		return
	}
	if s.pending[m.Resource] == nil {
		s.pending[m.Resource] = map[string]map[string]bool{}
	}
	if s.pending[m.Resource][instance] == nil {
		s.pending[m.Resource][instance] = map[string]bool{}
	}
	s.pending[m.Resource][instance][id] = true
}

// state is what an instance says of a partition; OFFLINE if it says nothing, then reported is false.
func (s *snapshot) state(resource, partition, instance string) (state State, reported bool) {
	if h := s.held[resource][instance]; h != nil {
		if state, reported = h.states[partition]; reported {
			return state, true
		}
	}
	return Offline, false
}
