package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/causeway-mirror/causeway/helix"
	"github.com/causeway-mirror/causeway/operator"
	"github.com/causeway-mirror/causeway/route"
)

// Names of uReplicator in a cluster's tree.
const (
	drainTag         = "blacklisted"
	excludedFolder   = "BLACKLISTED_TOPICS"
	keyBalancing     = "AutoBalancing"
	balancingOn      = "enable"
	balancingOff     = "disable"
	refreshInterval  = 50 * time.Millisecond // least time between two states
	ownWriteHoldTime = 5 * time.Second       // within it a watch has told of every write
	replicas         = 1
)

// helixCluster is a Cluster in a term of Helix. It answers from memory: what watches tell, and what it wrote itself until they tell it too.
type helixCluster struct {
	term    *helix.Term
	cluster helix.Cluster
	log     hclog.Logger
	woken   chan struct{}

	mu       sync.Mutex
	state    *State
	changed  chan struct{}
	wrote    map[string]ownWrite // topics whose last write may not have come back by watch
	tagged   map[string]ownTag   // the same of workers' tags
	seen     map[string]seenTopic
	balance  bool
	excluded map[string]bool
	pins     map[route.Partition]string
	settings map[string]operator.Topic // by topic, of those that have any
	torn     map[string]int32          // topics whose ideal state can't be read any more, with the last version that could
	odd      map[string]bool           // what was told of ideal states, once
}

// ownWrite is what this term wrote last, or read when a write of its own was refused.
type ownWrite struct {
	topic  Topic
	record *helix.Record // nil when it is gone
	gone   bool
	at     time.Time
}

// ownTag is whether this term told a worker to drain. A worker's tag has no version by which to tell whether what a watch says is newer.
type ownTag struct {
	draining bool
	at       time.Time
}

// seenTopic is a record that was read once.
type seenTopic struct {
	record  *helix.Record
	version int32
	topic   Topic
}

func newHelixCluster(t *helix.Term, cluster helix.Cluster, log hclog.Logger) *helixCluster {
	return &helixCluster{
		term: t, cluster: cluster, log: log, woken: make(chan struct{}, 1), changed: make(chan struct{}), state: &State{},
		wrote: map[string]ownWrite{}, tagged: map[string]ownTag{}, seen: map[string]seenTopic{}, balance: true, excluded: map[string]bool{},
		pins: map[route.Partition]string{}, settings: map[string]operator.Topic{}, torn: map[string]int32{}, odd: map[string]bool{},
	}
}

// prepare reads what the term itself does not follow.
func (c *helixCluster) prepare(ctx context.Context) error {
	if err := errors.Join(c.readBalancing(ctx), c.readExcluded(ctx), c.readPins(ctx), c.readSettings(ctx)); err != nil {
		return err
	}
	c.refresh()
	return nil
}

// follow publishes a new state after each change, until ctx ends.
func (c *helixCluster) follow(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.term.Changed():
		case <-c.holdEnds(): // what others have changed meanwhile is seen then, though nothing may happen any more
		case <-c.woken:
			if err := errors.Join(c.readBalancing(ctx), c.readExcluded(ctx)); err != nil && ctx.Err() == nil {
				c.log.Warn("settings of the cluster can't be read", "error", err)
			}
		}
		c.refresh()
		timer := time.NewTimer(refreshInterval)
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// holdEnds is when an own tag is laid over what watches tell no longer; nil while none is.
func (c *helixCluster) holdEnds() <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.tagged) == 0 {
		return nil
	}
	left := ownWriteHoldTime
	for _, own := range c.tagged {
		left = min(left, ownWriteHoldTime-time.Since(own.at))
	}
	return time.After(left)
}

// wake is the Notify of what is read here.
func (c *helixCluster) wake(helix.Event) {
	select {
	case c.woken <- struct{}{}:
	default:
	}
}

func (c *helixCluster) configPath() string {
	return c.cluster.Root() + "/CONFIGS/CLUSTER/" + string(c.cluster)
}

func (c *helixCluster) excludedPath() string { return c.cluster.Root() + "/" + excludedFolder }

func (c *helixCluster) readBalancing(ctx context.Context) error {
	record, _, err := c.term.Session().GetRecord(ctx, c.configPath(), c.wake)
	if errors.Is(err, helix.ErrMalformed) || errors.Is(err, helix.ErrEmpty) {
		c.log.Warn("settings of the cluster are malformed and skipped", "path", c.configPath(), "err", err)
		return nil // as they were, or as they are by default
	}
	if err != nil {
		return fmt.Errorf("read the cluster's settings: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.balance = record.Simple[keyBalancing] != balancingOff
	return nil
}

func (c *helixCluster) readExcluded(ctx context.Context) error {
	session := c.term.Session()
	names, err := session.Children(ctx, c.excludedPath(), c.wake)
	if errors.Is(err, helix.ErrNotFound) {
		_, _, err = session.Exists(ctx, c.excludedPath(), c.wake)
	}
	if err != nil {
		return fmt.Errorf("read the excluded topics: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.excluded = map[string]bool{}
	for _, name := range names {
		c.excluded[name] = true
	}
	return nil
}

func (c *helixCluster) readPins(ctx context.Context) error {
	session := c.term.Session()
	folder := c.cluster.Property(propertyFolder, pinsFolder)
	topics, err := session.Children(ctx, folder, nil)
	if errors.Is(err, helix.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the pins: %w", err)
	}
	pins := map[route.Partition]string{}
	for _, topic := range topics {
		names, err := session.Children(ctx, folder+"/"+topic, nil)
		if err != nil && !errors.Is(err, helix.ErrNotFound) {
			return fmt.Errorf("read the pins: %w", err)
		}
		for _, name := range names {
			worker, err := c.readPin(ctx, folder+"/"+topic+"/"+name)
			if err != nil {
				return err
			}
			if p, ok := parsePartition(name); ok && worker != "" {
				pins[route.Partition{Topic: topic, Partition: p}] = worker
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pins = pins
	return nil
}

// readPin reads one pin; empty if there is none. One that can't be read is told and holds nothing.
func (c *helixCluster) readPin(ctx context.Context, path string) (worker string, err error) {
	record, _, err := c.term.Session().GetRecord(ctx, path, nil)
	switch {
	case err == nil:
		return record.Simple[fieldWorker], nil
	case errors.Is(err, helix.ErrMalformed), errors.Is(err, helix.ErrEmpty):
		c.log.Warn("a pin can't be read and is skipped", "path", path, "error", err)
	case !errors.Is(err, helix.ErrNotFound):
		return "", fmt.Errorf("read a pin: %w", err)
	}
	return "", nil
}

// State implements Cluster.
func (c *helixCluster) State() *State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// Changed implements Cluster.
func (c *helixCluster) Changed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

// refresh makes the state anew.
func (c *helixCluster) refresh() {
	instances := c.term.Instances()
	names := c.term.Resources()
	resources := make([]helix.Resource, 0, len(names))
	for _, name := range names {
		if r, ok := c.term.Resource(name); ok {
			resources = append(resources, r)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &State{
		Topics: make(map[string]Topic, len(resources)), Torn: map[string]bool{}, Workers: make(map[string]Worker, len(instances)),
		Views: make(map[string]Assignment, len(resources)), Balancing: c.balance, Maintenance: c.term.Maintenance(), Excluded: c.excluded, Pins: c.pins,
		Settings: c.settings,
	}
	for _, i := range instances {
		s.Workers[i.Name] = Worker{ID: i.Name, Live: i.Live(), Draining: slices.Contains(i.Tags, drainTag), Disabled: !i.Enabled}
	}
	seen := make(map[string]seenTopic, len(resources))
	for _, r := range resources {
		if r.Ideal != nil {
			c.classifyLocked(s, seen, r)
		}
		s.Views[r.Name] = c.viewLocked(r)
	}
	maps.DeleteFunc(c.torn, func(name string, _ int32) bool { return !s.Torn[name] })
	c.seen = seen
	now := time.Now()
	for name, own := range c.wrote {
		there, ok := s.Topics[name]
		if own.gone != ok && (own.gone || there.Version >= own.topic.Version) || now.Sub(own.at) > ownWriteHoldTime {
			delete(c.wrote, name)
		}
	}
	maps.DeleteFunc(c.tagged, func(_ string, own ownTag) bool { return now.Sub(own.at) >= ownWriteHoldTime })
	c.publishLocked(s)
}

// publishLocked lays own writes over a state and makes it the present one.
func (c *helixCluster) publishLocked(s *State) {
	if len(c.wrote) > 0 {
		s.Topics = maps.Clone(s.Topics) // readers may have them from an earlier state
	}
	for name, own := range c.wrote {
		if own.gone {
			delete(s.Topics, name)
		} else {
			s.Topics[name] = own.topic
		}
	}
	if len(c.tagged) > 0 {
		s.Workers = maps.Clone(s.Workers)
	}
	for id, own := range c.tagged {
		if w, ok := s.Workers[id]; ok {
			w.Draining = own.draining
			s.Workers[id] = w
		}
	}
	c.state = s
	close(c.changed)
	c.changed = make(chan struct{})
}

// classifyLocked puts a resource into the state: a topic, one that is torn, or nothing of ours.
func (c *helixCluster) classifyLocked(s *State, seen map[string]seenTopic, r helix.Resource) {
	last, torn := c.torn[r.Name]
	switch {
	case torn && last == r.Ideal.Version, r.Ideal.Blank():
		c.tearLocked(s, r.Name)
	case r.Ideal.Usable():
		seen[r.Name] = c.readLocked(r)
		s.Topics[r.Name] = seen[r.Name].topic
		delete(c.odd, r.Name)
	}
}

// tearLocked notes in a state that a topic's ideal state can't be read, and says so once.
func (c *helixCluster) tearLocked(s *State, topic string) {
	s.Torn[topic] = true
	if c.newLocked(topic) {
		c.log.Warn("an ideal state can't be read: nothing is done for its topic until it is repaired or the topic is removed", "topic", topic)
	}
}

// newLocked says whether something was not told yet.
func (c *helixCluster) newLocked(key string) bool {
	told := c.odd[key]
	c.odd[key] = true
	return !told
}

// readLocked gives a resource as a topic, from the last time if its record is the same.
func (c *helixCluster) readLocked(r helix.Resource) seenTopic {
	if was, ok := c.seen[r.Name]; ok && was.record == r.Ideal.Record && was.version == r.Ideal.Version {
		return was
	}
	return seenTopic{record: r.Ideal.Record, version: r.Ideal.Version, topic: c.topicLocked(r.Name, r.Ideal)}
}

// topicLocked reads an ideal state.
func (c *helixCluster) topicLocked(resource string, ideal *helix.IdealState) Topic {
	topic := Topic{Name: resource, Version: ideal.Version, Assigned: Assignment{}}
	if n := ideal.Partitions(); n <= mostPartitions {
		topic.Partitions = int32(n)
	} else if c.newLocked(resource + "/") {
		c.log.Warn("no topic has so many partitions: those that are assigned count", "topic", resource, "partitions", n)
	}
	for name, workers := range ideal.Record.Map {
		p, ok := parsePartition(name)
		if !ok {
			if c.newLocked(resource + "/" + name) {
				c.log.Warn("partition name is no number and is skipped", "resource", resource, "partition", name)
			}
			continue
		}
		if len(workers) == 0 {
			continue
		}
		topic.Assigned[p] = workers
		if order := ideal.Record.List[name]; len(order) > 0 && len(workers) > 1 {
			if topic.First == nil {
				topic.First = map[int32]string{}
			}
			topic.First[p] = order[0]
		}
		topic.Partitions = max(topic.Partitions, p+1) // a record that says less of itself than it holds
	}
	return topic
}

func (*helixCluster) viewLocked(r helix.Resource) Assignment {
	view := make(Assignment, len(r.States))
	for name, states := range r.States {
		if p, ok := parsePartition(name); ok {
			view[p] = make(map[string]string, len(states))
			for worker, state := range states {
				view[p][worker] = string(state)
			}
		}
	}
	return view
}

// own notes what was written, so that the next change builds on it.
func (c *helixCluster) own(writes ...ownWrite) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range writes {
		w.at = time.Now()
		c.wrote[w.topic.Name] = w
	}
	next := *c.state
	c.publishLocked(&next)
}

// idealState is a topic's new record; what an old one holds beside is kept.
func (c *helixCluster) idealState(t Topic) *helix.IdealState {
	ideal := helix.NewIdealState(t.Name, int(t.Partitions), replicas)
	c.mu.Lock()
	if was := c.recordLocked(t); was != nil {
		ideal.Record = was.Clone()
		ideal.SetPartitions(int(t.Partitions))
		for name := range ideal.Record.Map {
			if _, ours := parsePartition(name); ours {
				delete(ideal.Record.Map, name)
			}
		}
	}
	c.mu.Unlock()
	ideal.Version = t.Version
	for p, workers := range t.Assigned {
		ideal.Record.Map[partitionName(p)] = workers
	}
	setOrder(ideal.Record, t)
	return ideal
}

// setOrder writes which of two workers is the owner, as a preference list, and that two may be ONLINE. The record of a topic that never had standbys stays
// as it is.
func setOrder(r *helix.Record, t Topic) {
	if len(r.List) == 0 && len(t.First) == 0 {
		return
	}
	for name := range r.List {
		if p, ours := parsePartition(name); ours && t.First[p] == "" {
			delete(r.List, name)
		}
	}
	most := replicas
	for p, workers := range t.Assigned {
		if owner := t.First[p]; owner != "" {
			order := []string{owner}
			for _, id := range sortedKeys(workers) {
				if id != owner {
					order = append(order, id)
				}
			}
			r.List[partitionName(p)] = order
			most = max(most, len(order))
		}
	}
	r.Simple["REPLICAS"] = strconv.Itoa(most)
}

// recordLocked is the record that a topic was made from, if it is still known.
func (c *helixCluster) recordLocked(t Topic) *helix.Record {
	if own, ok := c.wrote[t.Name]; ok && own.record != nil && own.topic.Version == t.Version {
		return own.record
	}
	if seen, ok := c.seen[t.Name]; ok && seen.version == t.Version {
		return seen.record
	}
	return nil
}

// Create implements Cluster.
func (c *helixCluster) Create(ctx context.Context, topics ...Topic) error {
	return c.each(ctx, topics, func(ctx context.Context, ideal *helix.IdealState) error {
		err := c.term.Admin().AddResource(ctx, ideal)
		if errors.Is(err, helix.ErrExists) {
			c.reread(ctx, ideal)
			return &ExistsError{Topic: ideal.Resource()}
		}
		return translate(err)
	})
}

// Write implements Cluster.
func (c *helixCluster) Write(ctx context.Context, topics []Topic) error {
	return c.each(ctx, topics, func(ctx context.Context, ideal *helix.IdealState) error {
		err := translate(c.term.Admin().SetIdealState(ctx, ideal))
		if errors.Is(err, ErrConflict) {
			c.reread(ctx, ideal)
		}
		return err
	})
}

// reread looks at what another writer left in place of what was refused, so that the next try builds on it even if the watch is late.
func (c *helixCluster) reread(ctx context.Context, refused *helix.IdealState) {
	topic := refused.Resource()
	ideal, err := c.term.Admin().IdealState(ctx, topic)
	switch {
	case errors.Is(err, helix.ErrMalformed), errors.Is(err, helix.ErrEmpty):
		c.mu.Lock()
		defer c.mu.Unlock()
		c.torn[topic] = refused.Version
		delete(c.wrote, topic)
		next := *c.state
		next.Topics, next.Torn = maps.Clone(next.Topics), maps.Clone(next.Torn)
		delete(next.Topics, topic)
		c.tearLocked(&next, topic)
		c.publishLocked(&next)
	case errors.Is(err, helix.ErrNotFound), err == nil && !ideal.Usable():
		c.own(ownWrite{topic: Topic{Name: topic}, gone: true})
	case err == nil:
		c.mu.Lock()
		read := c.topicLocked(topic, ideal)
		c.mu.Unlock()
		c.own(ownWrite{topic: read, record: ideal.Record})
	}
}

// each writes many ideal states at once, and notes those that were written, also when others failed.
func (c *helixCluster) each(ctx context.Context, topics []Topic, write func(context.Context, *helix.IdealState) error) error {
	var mu sync.Mutex
	written := make([]ownWrite, 0, len(topics))
	err := c.term.Session().Each(ctx, len(topics), func(ctx context.Context, i int) error {
		ideal := c.idealState(topics[i])
		if err := write(ctx, ideal); err != nil {
			return err
		}
		topic := topics[i]
		topic.Version = ideal.Version
		mu.Lock()
		defer mu.Unlock()
		written = append(written, ownWrite{topic: topic, record: ideal.Record})
		return nil
	})
	if len(written) > 0 {
		c.own(written...)
	}
	return err
}

// Drop implements Cluster.
func (c *helixCluster) Drop(ctx context.Context, topic string) error {
	if err := c.term.Admin().DropResource(ctx, topic); err != nil {
		return translate(err)
	}
	c.own(ownWrite{topic: Topic{Name: topic}, gone: true})
	return c.forget(ctx, topic)
}

// Drain implements Cluster.
func (c *helixCluster) Drain(ctx context.Context, worker string, on bool) error {
	change := c.term.Admin().RemoveTag
	if on {
		change = c.term.Admin().AddTag
	}
	err := change(ctx, worker, drainTag)
	if errors.Is(err, helix.ErrNotFound) {
		return &NotFoundError{What: "worker", Name: worker}
	}
	if err != nil {
		return translate(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tagged[worker] = ownTag{on, time.Now()}
	next := *c.state
	c.publishLocked(&next)
	c.wake(helix.Event{}) // from now on there is something to hold
	return nil
}

// SetBalancing implements Cluster.
func (c *helixCluster) SetBalancing(ctx context.Context, on bool) error {
	value := balancingOff
	if on {
		value = balancingOn
	}
	if err := c.term.Admin().SetConfig(ctx, helix.ClusterScope(), map[string]string{keyBalancing: value}); err != nil {
		return translate(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.balance = on
	next := *c.state
	next.Balancing = on
	c.publishLocked(&next)
	return nil
}

// Exclude implements Cluster.
func (c *helixCluster) Exclude(ctx context.Context, topic string, on bool) error {
	at := c.excludedPath() + "/" + topic
	op, done := helix.DeleteOp(at, helix.AnyVersion), helix.ErrNotFound
	if on {
		op, done = helix.CreateOp(at, nil), helix.ErrExists
		if err := c.term.Session().CreateAll(ctx, c.excludedPath(), nil); err != nil && !errors.Is(err, helix.ErrExists) {
			return translate(err)
		}
	}
	if err := c.guarded(ctx, op); err != nil && !errors.Is(err, done) {
		return translate(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	excluded := make(map[string]bool, len(c.excluded)+1)
	for name := range c.excluded {
		excluded[name] = true
	}
	delete(excluded, topic)
	if on {
		excluded[topic] = true
	}
	c.excluded = excluded
	next := *c.state
	next.Excluded = excluded
	c.publishLocked(&next)
	return nil
}

// Pin implements Cluster.
func (c *helixCluster) Pin(ctx context.Context, p route.Partition, worker string) error {
	at := []string{propertyFolder, pinsFolder, p.Topic, partitionName(p.Partition)}
	var err error
	if worker == "" {
		err = c.term.Admin().RemoveProperty(ctx, at...)
	} else {
		err = c.update(ctx, func(r *helix.Record) error {
			r.Simple[fieldWorker] = worker
			return nil
		}, at...)
	}
	if err != nil {
		return translate(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	pins := make(map[route.Partition]string, len(c.pins)+1)
	maps.Copy(pins, c.pins)
	delete(pins, p)
	if worker != "" {
		pins[p] = worker
	}
	c.pins = pins
	next := *c.state
	next.Pins = pins
	c.publishLocked(&next)
	return nil
}

// Reset implements Cluster.
func (c *helixCluster) Reset(ctx context.Context, worker, topic string, partitions ...int32) error {
	names := make([]string, 0, len(partitions))
	for _, p := range partitions {
		names = append(names, partitionName(p))
	}
	return translate(c.term.Admin().ResetPartitions(ctx, worker, topic, names...))
}

// guarded makes one change that fails with ErrNotLeader once the term is over. A lost answer is asked for again: what is repeated must say by its
// error that it was done.
func (c *helixCluster) guarded(ctx context.Context, op helix.Op) error {
	guard := c.term.Guard()
	for {
		err := c.term.Session().Multi(ctx, helix.CheckOp(guard.Path, guard.Version), op)
		var failed *helix.MultiError
		switch {
		case errors.As(err, &failed) && failed.Index == 0:
			return fmt.Errorf("%w: %w", ErrNotLeader, err)
		case !errors.Is(err, helix.ErrLost):
			return err
		}
	}
}

// translate gives errors of Helix the meaning that they have here.
func translate(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, helix.ErrDeposed), errors.Is(err, helix.ErrExpired), errors.Is(err, helix.ErrClosed):
		return fmt.Errorf("%w: %w", ErrNotLeader, err)
	case errors.Is(err, helix.ErrBadVersion), errors.Is(err, helix.ErrNotFound):
		return fmt.Errorf("%w: %w", ErrConflict, err)
	}
	return err
}
