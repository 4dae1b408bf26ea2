package connector

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/causeway-mirror/causeway/cluster"
	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/handler"
	"github.com/causeway-mirror/causeway/loops"
	"github.com/causeway-mirror/causeway/mirror"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/wire"
)

// haltError is a reason that time alone won't mend: something must be changed by somebody.
type haltError struct{ err error }

func (e *haltError) Error() string { return e.err.Error() }
func (e *haltError) Unwrap() error { return e.err }

// pair is one topic's two ends.
type pair struct {
	topic    handler.Topic
	align    handler.Alignment
	source   wire.TopicMetadata
	target   wire.TopicMetadata
	configs  map[string]string // of the target topic; nil when they may not be read
	parts    []*partition
	replicas int
	expires  time.Duration
	noZstd   bool
	// newcomers is the producer id of the partitions that begin now on a target which may know the route's; nil until one is needed.
	newcomers *int64
}

// startAll starts what can be started; whole says that nothing is left, the error why something is. Each partition has its own reason too.
func (c *Connector) startAll(ctx context.Context, parts []*partition) (whole bool, err error) {
	byTopic := map[string]*pair{}
	for _, p := range parts {
		t := byTopic[p.source.Topic]
		if t == nil {
			t = &pair{}
			byTopic[p.source.Topic] = t
		}
		t.parts = append(t.parts, p)
	}
	names := slices.Sorted(maps.Keys(byTopic))
	source, err := c.source.Metadata(ctx, names...)
	if err != nil {
		c.blocked(parts, fmt.Errorf("source: %w", err))
		return false, err
	}
	if err := c.targets(ctx, names, byTopic, source); err != nil {
		c.blocked(parts, fmt.Errorf("target: %w", err))
		c.spillAlone(ctx, parts, source)
		return false, err
	}
	all, faults := true, make([]error, len(names))
	var unfinished atomic.Bool
	var topics errgroup.Group
	topics.SetLimit(topicsAtOnce)
	for i, name := range names {
		t := byTopic[name]
		if t.topic.Source == "" {
			all = false // told already
			continue
		}
		topics.Go(func() error {
			wanted := len(t.parts)
			faults[i] = c.startTopic(ctx, t)
			if faults[i] != nil {
				c.blocked(t.parts, faults[i])
			}
			if faults[i] != nil || len(t.parts) < wanted { // those left out are told already
				unfinished.Store(true)
			}
			return nil
		})
	}
	err = errors.Join(topics.Wait(), errors.Join(faults...))
	return all && !unfinished.Load(), err
}

// topicsAtOnce is how many topics are started side by side: each waits several times for the store and for brokers.
const topicsAtOnce = 16

// blocked notes why partitions don't run yet.
func (c *Connector) blocked(parts []*partition, err error) {
	if stopped, is := errors.AsType[*stopError](err); is {
		c.rest(parts, stopped)
		return
	}
	var halt *haltError
	halted := errors.As(err, &halt) && !errors.Is(err, context.Canceled) // at the end nothing is halted
	c.mu.Lock()
	kind := events.PartitionHalted
	if errors.Is(err, offsets.ErrMissing) {
		kind = events.CheckpointMissing
	}
	_, circle := errors.AsType[*loops.RefusedError](err)
	var fresh []*partition
	news := false // the same reason is not logged at each retry
	for _, p := range parts {
		if p.lane != nil {
			continue
		}
		if halted && !p.told {
			fresh = append(fresh, p)
		}
		news = news || p.reason != err.Error()
		p.reason, p.halted, p.rests, p.told = err.Error(), halted, false, p.told || halted
	}
	for _, p := range parts {
		c.holdLineLocked(p)
	}
	c.mu.Unlock()
	if circle && len(fresh) > 0 { // it is about the topic as a whole
		c.deps.Events.Emit(events.Event{
			Type: events.LoopRefused, Severity: events.Error, Topic: fresh[0].source.Topic, Message: "the topic is not copied", Reason: err.Error(),
		})
		fresh = nil
	}
	for _, p := range fresh {
		c.deps.Events.Emit(events.Of(p.source, kind, events.Error, "the partition can't be started").Because(err.Error()))
	}
	if kind == events.CheckpointMissing {
		c.refuseResets(parts, err)
	}
	if news && len(fresh) == 0 && !errors.Is(err, context.Canceled) { // events are logged, too
		c.deps.Log.Warn("partitions can't be started yet", "partitions", len(parts), "first", parts[0].source.String(), "err", err)
	}
}

// company says who else may have partitions of a topic.
func (c *Connector) company(topic string) mirror.Company {
	if c.cfg.Company == nil {
		return mirror.Alone
	}
	return c.cfg.Company(topic)
}

// targets finds or makes the target topics, with as many partitions as the source has. Topics that can't be started are told as blocked and
// lose their name in byTopic.
func (c *Connector) targets(ctx context.Context, names []string, byTopic map[string]*pair, source *wire.Metadata) error {
	wanted := c.mapped(names, byTopic, source)
	if len(wanted) == 0 {
		return nil
	}
	target, err := c.target.Metadata(ctx, wanted...)
	if err != nil {
		return err
	}
	if err := c.sameClusters(ctx, source.ClusterID, target.ClusterID); err != nil {
		return err
	}
	c.leaveOutOnto(names, byTopic, source, target)
	ends, err := c.circleEnds(ctx, source, target)
	if err != nil {
		return err
	}
	c.leaveOutCircling(byTopic, func(topics map[string]string) map[string]*loops.RefusedError {
		return c.admin.loops.Admit(ctx, ends, topics)
	})
	if c.shape(ctx, names, byTopic, target) {
		if target, err = c.target.Metadata(ctx, wanted...); err != nil {
			return err
		}
	}
	c.leaveOutCircling(byTopic, func(topics map[string]string) map[string]*loops.RefusedError {
		return c.admin.loops.Declare(ctx, topics)
	})
	return c.demands(ctx, wanted, byTopic, target)
}

// leaveOutOnto refuses topics that would be copied onto themselves.
func (c *Connector) leaveOutOnto(names []string, byTopic map[string]*pair, source, target *wire.Metadata) {
	if !oneCluster(source, target) {
		return
	}
	for _, name := range names {
		if t := byTopic[name]; t.topic.Source != "" && t.topic.Target == name {
			c.leaveOut(t, &haltError{fmt.Errorf("topic %s: source and target are one cluster, and it would be copied onto itself", name)})
		}
	}
}

// oneCluster says that both ends are the same cluster, whatever addresses were given: it has one id, and a broker in common. (Clusters that were
// set up from one image may share an id.)
func oneCluster(source, target *wire.Metadata) bool {
	if source.ClusterID == "" || source.ClusterID != target.ClusterID {
		return false
	}
	for id, b := range source.Brokers {
		if other, ok := target.Brokers[id]; ok && other.Addr == b.Addr {
			return true
		}
	}
	return false
}

// mapped gives each topic its handler and its source, and returns the names of their targets.
func (c *Connector) mapped(names []string, byTopic map[string]*pair, source *wire.Metadata) (targets []string) {
	for _, name := range names {
		t := byTopic[name]
		topic, err := c.deps.Handler.Topic(name)
		if err != nil {
			c.blocked(t.parts, &haltError{err})
			continue
		}
		meta, ok := source.Topics[name]
		if !ok || meta.Err != nil || len(meta.Partitions) == 0 {
			c.blocked(t.parts, c.unknown(t, name, meta.Err))
			continue
		}
		c.present(t)
		t.topic, t.source = topic, meta
		c.aim(t, func(p route.Partition) int32 { return p.Partition }) // until the partitions are aligned
		targets = append(targets, topic.Target)
	}
	slices.Sort(targets)
	return slices.Compact(targets)
}

// aim notes where partitions will go, for those who look while they don't run.
func (c *Connector) aim(t *pair, number func(source route.Partition) int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range t.parts {
		p.target = route.Partition{Topic: t.topic.Target, Partition: number(p.source)}
	}
}

// leaveOut tells why a topic can't be started now.
func (c *Connector) leaveOut(t *pair, err error) {
	c.blocked(t.parts, err)
	t.topic.Source = ""
}

// demands reads what the target demands of batches, and aligns partitions.
func (c *Connector) demands(ctx context.Context, wanted []string, byTopic map[string]*pair, target *wire.Metadata) error {
	configs, unread := c.topicConfigs(ctx, wanted)
	expires, err := c.idExpiration(ctx)
	if err != nil {
		return err
	}
	noZstd := c.noZstd(ctx, target)
	for _, t := range byTopic {
		if t.topic.Source == "" {
			continue
		}
		t.target, t.configs = target.Topics[t.topic.Target], configs[t.topic.Target]
		t.expires, t.noZstd = expires, noZstd
		err := c.align(t)
		if err == nil && t.configs == nil {
			err = unread
		}
		if err != nil {
			c.leaveOut(t, err)
		}
	}
	return nil
}

var errUnknownTopic = errors.New("does not exist, or we may not see it")

func cmpErr(err error) error {
	if err == nil {
		return errUnknownTopic
	}
	return err
}

// shape creates the target topics that are missing, all at once, and adds partitions to those that have fewer than their sources.
func (c *Connector) shape(ctx context.Context, names []string, byTopic map[string]*pair, target *wire.Metadata) (changed bool) {
	missing := map[string]cluster.TopicSpec{}
	for _, name := range names {
		t := byTopic[name]
		if t.topic.Source == "" {
			continue
		}
		want, to := int32(len(t.source.Partitions)), t.topic.Target
		switch have := int32(len(target.Topics[to].Partitions)); {
		case have >= want:
		case !c.cfg.CreateTopics && have == 0:
			c.leaveOut(t, &haltError{fmt.Errorf("target topic %s: does not exist, and create-topics is false", to)})
		case have == 0: // of several that go into one topic the widest
			missing[to] = cluster.TopicSpec{Name: to, Partitions: max(want, missing[to].Partitions), ReplicationFactor: -1}
		case c.cfg.CreateTopics:
			changed = c.grow(ctx, to, want) || changed
		}
	}
	if len(missing) == 0 {
		return changed
	}
	failed := c.admin.target.CreateTopics(ctx, slices.Collect(maps.Values(missing))...)
	for _, name := range names {
		if t := byTopic[name]; t.topic.Source != "" && failed[t.topic.Target] != nil {
			c.leaveOut(t, uncreated(failed[t.topic.Target]))
		}
	}
	return changed || len(failed) < len(missing)
}

// grow adds partitions to a target topic. Where that is refused the alignment decides what becomes of it.
func (c *Connector) grow(ctx context.Context, topic string, partitions int32) bool {
	err := c.admin.target.CreatePartitions(ctx, topic, partitions)
	if err != nil {
		c.deps.Log.Warn("target topic can't be grown", "topic", topic, "partitions", partitions, "err", err)
	}
	return err == nil
}

func (c *Connector) align(t *pair) error {
	if len(t.target.Partitions) == 0 {
		return fmt.Errorf("target topic %s: %w", t.topic.Target, cmpErr(t.target.Err))
	}
	a, err := c.deps.Handler.Align(t.topic.Source, int32(len(t.source.Partitions)), int32(len(t.target.Partitions)))
	if err != nil {
		return &haltError{err}
	}
	c.aim(t, func(p route.Partition) int32 { n, _ := a.Target(p.Partition); return n })
	t.align, t.replicas = a, len(t.target.Partitions[0].Replicas)
	return nil
}

// topicConfigs reads what the target demands of batches. Where we may not read it, the target's refusals tell. An error means that those
// topics that are missing must be asked about again: a partition keeps for its life what it was started with.
func (c *Connector) topicConfigs(ctx context.Context, topics []string) (map[string]map[string]string, error) {
	configs, err := c.admin.target.TopicConfigs(ctx, topics...)
	if passes(err) {
		return configs, fmt.Errorf("target: %w", err)
	}
	if err != nil {
		c.deps.Log.Warn("topic configs can't be read", "err", err)
	}
	return configs, nil
}

// passes says that the same question may be answered in a moment. A broker learns of a new topic a little later than its controller.
func passes(err error) bool {
	if err == nil {
		return false
	}
	switch cluster.Classify(err) {
	case cluster.Unreachable, cluster.NotFound, cluster.Authentication:
		return true
	case cluster.Other, cluster.Authorization, cluster.Exists, cluster.Invalid:
	}
	return false
}

// noZstd says that the target's brokers do not speak Produce 7, the first version that may carry zstd (KIP-110).
func (c *Connector) noZstd(ctx context.Context, target *wire.Metadata) bool {
	const produce, zstdVersion = 0, 7
	for id := range target.Brokers {
		conn, err := c.target.Dial(ctx, id)
		if err != nil {
			continue
		}
		newest := conn.MaxVersion(produce)
		conn.Close()
		return newest < zstdVersion
	}
	return false
}

// idExpiration is after how long a silent producer id is forgotten. Where we may not read it, it is Kafka's default.
func (c *Connector) idExpiration(ctx context.Context) (time.Duration, error) {
	const kafkaDefault = 24 * time.Hour
	config, err := c.admin.target.BrokerConfig(ctx)
	if passes(err) || errors.Is(err, context.Canceled) {
		return 0, err
	}
	if err != nil {
		c.deps.Log.Warn("broker config can't be read", "err", err)
		return kafkaDefault, nil
	}
	if ms, err := strconv.ParseInt(config["producer.id.expiration.ms"], 10, 64); err == nil && ms > 0 {
		return time.Duration(ms) * time.Millisecond, nil
	}
	return kafkaDefault, nil
}

// startTopic starts the partitions of one topic from their checkpoints, making the first ones. One that can't start is told and left out of t.parts,
// and holds up no other. The error is that of all that are left.
func (c *Connector) startTopic(ctx context.Context, t *pair) error {
	c.leaveOutUnknown(t)
	keys := make([]route.Partition, 0, len(t.parts))
	for _, p := range t.parts {
		keys = append(keys, p.source)
	}
	known, err := c.load(ctx, t, keys)
	if err != nil {
		return err
	}
	var broken *offsets.StorageError
	if err := c.firstCheckpoints(ctx, t, known); errors.As(err, &broken) {
		return err
	} else if err != nil {
		c.leaveOutNew(t, known, err)
	}
	ready := map[route.Partition]offsets.Checkpoint{}
	c.leaveOutIf(t, func(p *partition) (err error) {
		ready[p.source], err = c.begin(ctx, t, p, known[p.source])
		if err != nil {
			delete(ready, p.source)
		}
		if broken == nil {
			errors.As(err, &broken)
		}
		return err
	})
	if broken != nil {
		return broken
	}
	if err := c.unclean(ctx, ready); err != nil { // last: whether an end was clean decides what a new epoch has to tell
		return err
	}
	if err := c.announce(ctx, t, known, ready); err != nil {
		return err
	}
	if codec := recompression(t.configs); codec != "" && len(t.parts) > 0 {
		c.deps.Log.Warn("target topic recompresses what comes in another codec", "topic", t.topic.Target, "compression_type", codec)
	}
	if err := c.layLines(ctx, t, ready); err != nil {
		return err
	}
	for _, p := range t.parts {
		c.run(ctx, t, p, ready[p.source])
	}
	return nil
}

// recompression is the codec to which the target's brokers bring batches that have another one, at their own cost; empty where they keep what comes.
func recompression(configs map[string]string) string {
	if codec := configs["compression.type"]; codec != "producer" {
		return codec
	}
	return ""
}

// leaveOutIf tells of each partition that has a reason not to start, and takes it out of t.parts.
func (c *Connector) leaveOutIf(t *pair, reason func(*partition) error) {
	t.parts = slices.DeleteFunc(t.parts, func(p *partition) bool {
		err := reason(p)
		if err != nil {
			c.blocked([]*partition{p}, err)
		}
		return err != nil
	})
}

// leaveOutNew takes those out of t.parts that have no checkpoint yet, and tells of all of them at once why: they begin together.
func (c *Connector) leaveOutNew(t *pair, known map[route.Partition]offsets.Checkpoint, reason error) {
	var left []*partition
	t.parts = slices.DeleteFunc(t.parts, func(p *partition) bool {
		_, begun := known[p.source]
		if !begun {
			left = append(left, p)
		}
		return !begun
	})
	c.blocked(left, reason)
}

// leaveOutUnknown halts partitions that were asked for and that the source does not have.
func (c *Connector) leaveOutUnknown(t *pair) {
	c.leaveOutIf(t, func(p *partition) error {
		var halt *haltError
		if _, err := leader(t.source, p.source); errors.As(err, &halt) {
			return &haltError{fmt.Errorf("source: %w", halt.err)}
		}
		return nil
	})
}

// run joins the two ends with a lane.
func (c *Connector) run(ctx context.Context, t *pair, p *partition, at offsets.Checkpoint) {
	number, shared := t.align.Target(p.source.Partition)
	target := route.Partition{Topic: t.topic.Target, Partition: number}
	slot := c.producer.Slot(target)
	plan := mirror.Plan{
		Source: p.source, Target: target, Records: t.topic.Records, IDExpiration: t.expires, NoZstd: t.noZstd,
		On: c.cfg.On, Shared: shared, Sieve: c.sieve(p.source.Topic), Company: c.company(p.source.Topic),
		KeepAppendTime: t.configs["message.timestamp.type"] != "LogAppendTime", MaxBatchBytes: batchLimit(t.configs),
	}
	if p.anew.Cause == mirror.LeftOut && at.SourceOffset == p.anew.At+1 || p.anew.Cause == mirror.Gone && at.SourceOffset == p.anew.To {
		plan.Left = p.anew
	}
	if c.cfg.Merge {
		plan.Merge, plan.Replicated = mergeBytes, t.replicas > 1
		if plan.MaxBatchBytes > 0 {
			plan.Merge = min(plan.Merge, plan.MaxBatchBytes)
		}
	}
	source := p.source
	line, wake := c.lineOf(p), func() { c.fetchers.Wake(source) }
	if line != nil {
		line.Open(route.Position{Offset: at.SourceOffset, LeaderEpoch: at.LeaderEpoch})
		wake = line.Wake
	}
	lane := c.mirror.Add(plan, at, mirror.Wakers{Source: wake, Sink: slot.Wake})
	c.mu.Lock()
	recovered, wanted := p.told, c.parts[source] == p
	if wanted {
		p.lane, p.slot, p.reason, p.halted, p.rests, p.told, p.anew = lane, slot, "", false, false, false, mirror.Anew{}
		if c.suspended {
			lane.Suspend()
		}
		lane.Pause(c.pausedLocked(source))
		c.holdLineLocked(p)
		slot.Attach(lane) // with the lock held, so that who finds the lane and takes it away finds it with both ends
		c.fetchers.Add(source, at.SourceTopicID, fetched(line, lane))
		if p.wish != nil { // a reset that came while it was being started
			p.gone = true
			c.drain(ctx, []*partition{p})
		}
	}
	c.mu.Unlock()
	if !wanted { // it left while it was being started
		slot.Detach()
		c.mirror.Close(lane)
		c.leaveLine(p)
		c.mirror.Remove(lane)
		return
	}
	c.waits.Signal(source.Topic) // its checkpoint may lie where somebody waits for it
	if recovered {
		c.deps.Events.Emit(events.Of(source, events.PartitionRecovered, events.Info, "the partition runs"))
	}
}
