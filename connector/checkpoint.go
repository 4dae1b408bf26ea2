package connector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/mirror"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/wire"
)

// firstCheckpoints makes and stores the checkpoints of partitions that have none, before anything of them is fetched or sent: where a
// partition begins, under which id, and where its target ended then, is decided once.
func (c *Connector) firstCheckpoints(ctx context.Context, t *pair, known map[route.Partition]offsets.Checkpoint) error {
	sources, targets := map[route.Partition]int32{}, map[route.Partition]int32{}
	for _, p := range t.parts {
		if _, ok := known[p.source]; ok {
			continue
		}
		number, _ := t.align.Target(p.source.Partition)
		to := route.Partition{Topic: t.topic.Target, Partition: number}
		from, err := leader(t.source, p.source)
		if err != nil {
			return fmt.Errorf("source: %w", err)
		}
		at, err := leader(t.target, to)
		if err != nil {
			return fmt.Errorf("target: %w", err)
		}
		sources[p.source], targets[to] = from, at
	}
	if len(sources) == 0 {
		return nil
	}
	r, err := c.deps.Store.Route(ctx)
	if err != nil {
		return storeError("load route", err)
	}
	begins, err := c.begins(ctx, t, r, sources)
	if err != nil {
		return err
	}
	ends, err := c.target.ListOffsets(ctx, targets, wire.AtEnd, false)
	if err != nil {
		return fmt.Errorf("target: %w", err)
	}
	targetEnd := func(source route.Partition) (end wire.ListedOffset, shared bool) {
		number, shared := t.align.Target(source.Partition)
		return ends[route.Partition{Topic: t.topic.Target, Partition: number}], shared
	}
	inOrder := slices.SortedFunc(maps.Keys(sources), route.Partition.Compare)
	for _, source := range inOrder { // all or none: where nothing was discovered, the others count as added later once one has begun
		end, _ := targetEnd(source)
		if err := errors.Join(begins[source].Err, end.Err); err != nil {
			return fmt.Errorf("find where %s begins, which its topic's new partitions do together: %w", source, err)
		}
	}
	firsts := make([]offsets.Beginning, 0, len(sources))
	var held []route.Partition // whose target holds records already
	for _, source := range inOrder {
		end, shared := targetEnd(source)
		first := offsets.Checkpoint{
			Partition: source, SourceOffset: begins[source].Offset, TargetOffset: end.Offset,
			SourceTopicID: t.source.ID, TargetTopicID: t.target.ID, LeaderEpoch: -1, Fingerprint: c.fingerprint(t, source), Writer: c.deps.Worker,
			Clean: true, // nobody has sent anything yet
		}
		if first.ProducerID, err = c.newcomer(ctx, t, shared, end.Offset); err != nil {
			return err
		}
		firsts = append(firsts, offsets.Beginning{Next: first})
		if end.Offset > 0 && !shared {
			held = append(held, source)
		}
	}
	if err := c.deps.Store.BeginAll(ctx, firsts); err != nil {
		return fmt.Errorf("store first checkpoints of %s: %w", t.topic.Source, err)
	}
	for _, b := range firsts {
		known[b.Next.Partition] = b.Next
	}
	c.unremembered(t.topic.Source, held)
	return nil
}

// unremembered tells of partitions that begin although their target holds records: where these are copies, the positions were lost.
func (c *Connector) unremembered(topic string, held []route.Partition) {
	if len(held) == 0 {
		return
	}
	c.deps.Events.Emit(events.Event{
		Type: events.DuplicatesPossible, Severity: events.Warning, Topic: topic,
		Message: "partitions begin without a stored position on a target that holds records: if these are copies, some may be copied again or left out",
		Reason:  fmt.Sprintf("%d partitions, such as %s", len(held), held[0]),
	})
}

// begun says that some partition of the topic was mirrored before: the others were added to it since.
func (c *Connector) begun(ctx context.Context, t *pair) (bool, error) {
	all := make([]route.Partition, 0, len(t.source.Partitions))
	for i := range t.source.Partitions {
		all = append(all, route.Partition{Topic: t.topic.Source, Partition: t.source.Partitions[i].Partition})
	}
	known, err := c.deps.Store.Load(ctx, all)
	if err != nil {
		return false, storeError("load checkpoints", err)
	}
	return len(known) > 0, nil
}

// begins resolves where partitions without a checkpoint begin. `start` is for partitions of the route's first discovery alone: what appears
// later is copied from its first record, or it would be lost.
func (c *Connector) begins(ctx context.Context, t *pair, r offsets.Route, sources map[route.Partition]int32) (map[route.Partition]wire.ListedOffset, error) {
	at, err := ParseStart(c.cfg.Start)
	if err != nil {
		return nil, &haltError{err}
	}
	grown := false
	if !r.Discovered { // nothing says how the topic was then, but one of which a part was begun has been there before
		if grown, err = c.begun(ctx, t); err != nil {
			return nil, err
		}
	}
	first, later := map[route.Partition]int32{}, map[route.Partition]int32{}
	for p, leader := range sources {
		if grown || !r.Found(p) {
			later[p] = leader
		} else {
			first[p] = leader
		}
	}
	list := func(ctx context.Context, leaders map[route.Partition]int32, at int64) (map[route.Partition]wire.ListedOffset, error) {
		return c.source.ListOffsets(ctx, leaders, at, c.cfg.Isolation == ReadCommitted)
	}
	found, err := startsAt(ctx, list, first, at)
	if err != nil {
		return nil, err
	}
	rest, err := startsAt(ctx, list, later, wire.AtStart)
	maps.Copy(found, rest)
	return found, err
}

// lister asks the leaders of partitions for the offset at a time, as [wire.Client.ListOffsets] does.
type lister func(ctx context.Context, leaders map[route.Partition]int32, at int64) (map[route.Partition]wire.ListedOffset, error)

// startsAt asks the source for the offsets of a time, or of its start or end. A partition in which nothing is as new as the time begins at its
// end, which is asked for first: what is appended between the two questions must not be skipped.
func startsAt(ctx context.Context, list lister, sources map[route.Partition]int32, at int64) (map[route.Partition]wire.ListedOffset, error) {
	if len(sources) == 0 {
		return map[route.Partition]wire.ListedOffset{}, nil
	}
	var ends map[route.Partition]wire.ListedOffset
	if at >= 0 {
		var err error
		if ends, err = list(ctx, sources, wire.AtEnd); err != nil {
			return nil, fmt.Errorf("source: %w", err)
		}
	}
	found, err := list(ctx, sources, at)
	if err != nil {
		return nil, fmt.Errorf("source: %w", err)
	}
	for p, o := range found {
		if at >= 0 && o.Err == nil && o.Offset < 0 {
			found[p] = ends[p]
		}
	}
	return found, nil
}

// sameClusters refuses positions that were taken between other clusters: an address that leads elsewhere would be mirrored from the wrong
// place. What the clusters are is stored as soon as they say so.
func (c *Connector) sameClusters(ctx context.Context, source, target string) error {
	r, err := c.deps.Store.Route(ctx)
	if err != nil {
		return storeError("load route", err)
	}
	for _, side := range []struct{ name, stored, now string }{{"source", r.SourceCluster, source}, {"target", r.TargetCluster, target}} {
		if side.stored != "" && side.now != "" && side.stored != side.now {
			return &haltError{fmt.Errorf("%s: the positions are of cluster %s, the brokers belong to cluster %s", side.name, side.stored, side.now)}
		}
	}
	known := r
	r.SourceCluster, r.TargetCluster = cmp.Or(r.SourceCluster, source), cmp.Or(r.TargetCluster, target)
	if r.SourceCluster == known.SourceCluster && r.TargetCluster == known.TargetCluster {
		return nil
	}
	if err := c.deps.Store.SaveRoute(ctx, r); err != nil && !errors.Is(err, offsets.ErrConflict) {
		return fmt.Errorf("store cluster ids: %w", err)
	}
	return nil
}

// producerID takes the route's producer id, once for all workers.
func (c *Connector) producerID(ctx context.Context) (offsets.Route, error) {
	for {
		r, err := c.deps.Store.Route(ctx)
		if err != nil {
			return r, storeError("load route", err)
		}
		if r.ProducerID >= 0 {
			return r, nil
		}
		if r.ProducerID, _, err = c.target.InitProducerID(ctx); err != nil {
			return r, fmt.Errorf("target: take a producer id: %w", err)
		}
		if err := c.deps.Store.SaveRoute(ctx, r); err != nil && !errors.Is(err, offsets.ErrConflict) {
			return r, fmt.Errorf("store producer id: %w", err)
		}
	}
}

// unclean stores that checkpoints are in use again, and whose they are, before anything is sent: after a crash nobody may take them for clean,
// and only their writer can leave them clean.
func (c *Connector) unclean(ctx context.Context, known map[route.Partition]offsets.Checkpoint) error {
	var used []offsets.Checkpoint
	for _, at := range known {
		if at.Clean || at.Writer != c.deps.Worker {
			at.Clean, at.Writer = false, c.deps.Worker
			used = append(used, at)
		}
	}
	if len(used) == 0 {
		return nil
	}
	if err := c.deps.Store.Save(ctx, used); err != nil && !errors.Is(err, offsets.ErrConflict) {
		return storeError("store checkpoints", err)
	}
	return nil
}

// continueFrom checks that a stored checkpoint still speaks of the same logs and the same handler. What is sent for an offset, or where to, has
// changed otherwise, and a new epoch begins.
func (c *Connector) continueFrom(ctx context.Context, t *pair, at offsets.Checkpoint, anew mirror.Anew) (offsets.Checkpoint, error) {
	if at.Foreign {
		return c.overridden(ctx, t, at)
	}
	next := at
	next.Fingerprint = c.fingerprint(t, at.Partition)
	was, now := partsOf(at.Fingerprint), partsOf(next.Fingerprint)
	goes, _ := t.align.Target(at.Partition.Partition)
	moved := was.told && was.goes != goes
	var (
		tell func()
		err  error
	)
	switch {
	case differ(at.TargetTopicID, t.target.ID) && c.cfg.On.TargetLost != mirror.Halt:
		next, tell, err := c.retargeted(ctx, t, at, next)
		if err != nil {
			return at, err
		}
		if next, err = c.newEpoch(ctx, at, next); err == nil {
			tell()
		}
		return next, err
	case differ(at.TargetTopicID, t.target.ID):
		return at, &haltError{fmt.Errorf("target topic %s has the id %s, the positions are of one with the id %s: it was recreated, or the mapping was changed and %s went to another topic before; "+
			"undo that, or copy anew: causeway partitions reset --to earliest",
			t.topic.Target, t.target.ID, at.TargetTopicID, t.topic.Source)}
	case differ(at.SourceTopicID, t.source.ID) && c.renewals.replaced(t.source.ID):
		return at, fmt.Errorf("source: a broker still knows topic %s by the id %s, which it had before it was made anew", t.topic.Source, t.source.ID)
	case differ(at.SourceTopicID, t.source.ID) && c.cfg.On.Recreated == mirror.Halt:
		return at, c.renewedHalts(at, t.source.ID)
	case differ(at.SourceTopicID, t.source.ID):
		first, err := c.beginning(ctx, t, at.Partition)
		if err != nil {
			return at, err
		}
		next.SourceOffset, next.SourceTopicID, next.LeaderEpoch = first, t.source.ID, -1
		tell = func() { c.recreated(at, next) }
	case moved:
		tell = func() {
			c.moved(at, fmt.Sprintf("the target topic has %d partitions now: it goes to partition %d instead of %d", len(t.target.Partitions), goes, was.goes))
		}
	case was.work != now.work:
		if next, tell, err = c.sieved(ctx, t, at, next); err != nil {
			return at, err
		}
	case anew.Cause != 0 && anew.ProducerID == at.ProducerID && anew.ProducerEpoch == at.ProducerEpoch:
		if next, tell, err = c.anew(ctx, t, at, next, anew); err != nil || tell == nil {
			return at, err
		}
	default:
		return next, nil // a checkpoint that did not tell the target partition yet tells it from now on
	}
	if moved {
		end, err := c.targetEnd(ctx, t, route.Partition{Topic: t.topic.Target, Partition: goes})
		if err != nil {
			return at, err
		}
		next.TargetOffset = end
	}
	if next, err = c.newEpoch(ctx, at, next); err == nil {
		tell() // once: a beginning that fails is tried again
	}
	return next, err
}

// retargeted moves a checkpoint to the target topic as it is now, which is another one: by policy what the old one had is left behind.
func (c *Connector) retargeted(ctx context.Context, t *pair, at, next offsets.Checkpoint) (offsets.Checkpoint, func(), error) {
	if c.renewals.replaced(t.target.ID) {
		return at, nil, fmt.Errorf("target: a broker still knows topic %s by the id %s, which it had before it was made anew", t.topic.Target, t.target.ID)
	}
	number, _ := t.align.Target(at.Partition.Partition)
	end, err := c.targetEnd(ctx, t, route.Partition{Topic: t.topic.Target, Partition: number})
	if err != nil {
		return at, nil, err
	}
	next.TargetTopicID, next.TargetOffset = t.target.ID, end
	if c.cfg.On.TargetLost == mirror.Resend {
		if next.SourceOffset, err = c.beginning(ctx, t, at.Partition); err != nil {
			return at, nil, err
		}
		next.LeaderEpoch = -1
		return next, func() { c.renewals.replace(at.TargetTopicID) }, c.refilled(ctx, at, next)
	}
	return next, func() {
		c.renewals.replace(at.TargetTopicID)
		c.deps.Events.Emit(events.Of(at.Partition, events.TargetChanged, events.Error,
			"went on in the target topic as it is now, which lacks what was copied before").Range(at.SourceOffset, at.SourceOffset).
			Because(fmt.Sprintf("topic id %s, was %s", t.target.ID, at.TargetTopicID)))
		c.unsure(at, "the target topic was made anew")
	}, nil
}

// newEpoch stores next, in the epoch after that of at, in place of at.
func (c *Connector) newEpoch(ctx context.Context, at, next offsets.Checkpoint) (offsets.Checkpoint, error) {
	next.Sequence, next.Opened, next.Clean, next.Writer, next.Foreign = 0, false, false, c.deps.Worker, false
	if next.ProducerEpoch++; next.ProducerEpoch == math.MaxInt16 {
		var err error
		if next.ProducerID, next.ProducerEpoch, err = c.target.InitProducerID(ctx); err != nil {
			return at, fmt.Errorf("target: take a producer id: %w", err)
		}
	}
	if err := c.deps.Store.Begin(ctx, &at, next); err != nil {
		return at, fmt.Errorf("begin a new epoch of %s: %w", at.Partition, err)
	}
	return next, nil
}

// goesTo stands in a fingerprint before the target partition, where that is not the one with the source partition's number.
const goesTo = ">"

// fingerprint stands for all that decides which records of a partition are forwarded, and where to, and so what a sequence and a target offset mean.
func (c *Connector) fingerprint(t *pair, p route.Partition) string {
	text := t.topic.Fingerprint
	if c.cfg.Isolation != ReadCommitted {
		text += "+" + c.cfg.Isolation
	}
	if c.cfg.DropLoops {
		text += "+drop"
	}
	if n, _ := t.align.Target(p.Partition); n != p.Partition {
		text += goesTo + strconv.Itoa(int(n))
	}
	return text
}

// fingerprintParts is what a fingerprint says.
type fingerprintParts struct {
	work string // what is done with records
	goes int32  // the target partition
	told bool   // it is named; else it is the one with the source partition's number, or the checkpoint is older than the name
}

func partsOf(fingerprint string) fingerprintParts {
	if work, to, ok := strings.Cut(fingerprint, goesTo); ok {
		if n, err := strconv.ParseInt(to, 10, 32); err == nil {
			return fingerprintParts{work, int32(n), true}
		}
	}
	return fingerprintParts{work: fingerprint}
}

// moved tells that a partition goes to another partition of the target from here on.
func (c *Connector) moved(at offsets.Checkpoint, why string) {
	c.deps.Events.Emit(events.Of(at.Partition, events.TargetChanged, events.Warning,
		"what follows is copied to another partition of the target; what came before stays where it is").
		Range(at.SourceOffset, at.SourceOffset).Because(why))
	c.unsure(at, why)
}

// unsure tells that a new epoch begins at a checkpoint beyond which something may have been stored in the old one.
func (c *Connector) unsure(at offsets.Checkpoint, why string) {
	if at.Clean {
		return
	}
	c.deps.Events.Emit(events.Of(at.Partition, events.DuplicatesPossible, events.Warning,
		"what was in flight behind the checkpoint may be stored a second time").Range(at.SourceOffset, at.SourceOffset).Because(why))
}

func differ(a, b route.TopicID) bool { return !a.IsZero() && !b.IsZero() && a != b }

// beginning is where a partition's first record is now.
func (c *Connector) beginning(ctx context.Context, t *pair, p route.Partition) (route.Offset, error) {
	from, err := leader(t.source, p)
	if err != nil {
		return 0, fmt.Errorf("source: %w", err)
	}
	first, err := c.source.ListOffsets(ctx, map[route.Partition]int32{p: from}, wire.AtStart, false)
	if err == nil {
		err = first[p].Err
	}
	if err != nil {
		return 0, fmt.Errorf("source: %w", err)
	}
	return first[p].Offset, nil
}

// recreated tells that a recreated source topic begins at its first record: offsets of the old one mean nothing in it.
func (c *Connector) recreated(was, now offsets.Checkpoint) {
	c.renewals.replace(was.SourceTopicID)
	c.deps.Events.Emit(events.Of(was.Partition, events.TopicRecreated, events.Warning, "the source topic has another id than the checkpoint: it is copied from its first record").
		Range(now.SourceOffset, was.SourceOffset).Because(fmt.Sprintf("topic id %s, was %s", now.SourceTopicID, was.SourceTopicID)))
}

func leader(t wire.TopicMetadata, p route.Partition) (int32, error) {
	for i := range t.Partitions {
		if q := &t.Partitions[i]; q.Partition == p.Partition {
			if q.Leader < 0 {
				return 0, fmt.Errorf("%s has no leader", p)
			}
			return q.Leader, nil
		}
	}
	return 0, &haltError{fmt.Errorf("%s: the topic has %d partitions", p, len(t.Partitions))}
}
