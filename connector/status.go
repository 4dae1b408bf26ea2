package connector

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/mirror"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/wire"
)

// Status is the route as this worker sees it.
type Status struct {
	State, Reason                    string // mirroring, or degraded with the reason
	Partitions                       []PartitionStatus
	RecordsTotal, BytesTotal         int64
	RecordsPerSecond, BytesPerSecond float64
	Uptime                           time.Duration
}

// PartitionStatus is one partition. Offsets are route.NoOffset when not known, LagRecords and LagBytes -1.
type PartitionStatus struct {
	Source, Target                               route.Partition
	State, Reason                                string
	Extent                                       route.Extent
	Position, Acked, Committed, TargetEnd        route.Offset
	LagRecords, LagBytes                         int64
	LagSeconds, RecordsPerSecond, BytesPerSecond float64
	Path, LastError                              string
	RecordsTotal, BytesTotal                     int64
	SpilledBytes                                 int64 // on disk, since the target does not take them
}

// routeState is the health of the two clusters, as events have told it.
type routeState struct {
	badSince time.Time
	reason   string
	told     bool
	records  int64 // of the last tick
	ticked   time.Time
	rate     float64
	// troubled is since when partitions have been trying in vain.
	troubled map[route.Partition]time.Time
}

// Status describes the route and every partition, in order.
func (c *Connector) Status() Status {
	s := Status{State: "mirroring", Uptime: time.Since(c.start)}
	c.mu.Lock()
	parts := slices.Collect(maps.Values(c.parts))
	c.mu.Unlock()
	// Before they are described, since to move ten thousand descriptions costs more than to make them.
	slices.SortFunc(parts, func(a, b *partition) int { return a.source.Compare(b.source) })
	s.Partitions = make([]PartitionStatus, len(parts))
	c.mu.Lock()
	if c.route.told {
		s.State, s.Reason = "degraded", c.route.reason
	}
	s.RecordsPerSecond = c.route.rate
	for i, p := range parts {
		if p.lane == nil {
			s.Partitions[i] = unstarted(p, c.pausedLocked(p.source))
		} else {
			s.Partitions[i] = running(p.lane.Status())
		}
		if p.line != nil {
			disk := p.line.Spilled()
			s.Partitions[i].SpilledBytes, s.Partitions[i].Position = disk.Bytes, max(s.Partitions[i].Position, disk.Next)
		}
	}
	c.mu.Unlock()
	c.tellDisks(parts, s.Partitions)
	for i := range s.Partitions {
		if p := &s.Partitions[i]; p.State == string(mirror.Mirroring) {
			t := c.fetchers.Trouble(p.Source)
			if t != nil && slices.Contains([]string{"INCONSISTENT_TOPIC_ID", "UNKNOWN_TOPIC_ID", "UNKNOWN_TOPIC_OR_PARTITION"}, t.Code) {
				p.LagRecords, p.LagBytes = -1, -1 // the ends that are known may be of a topic that is no more
			}
			if t != nil && time.Since(t.Since) > troubleAfter {
				p.State, p.Reason = string(mirror.Degraded), "source: "+t.Code
			}
		}
	}
	for i := range s.Partitions {
		p := &s.Partitions[i]
		s.RecordsTotal += p.RecordsTotal
		s.BytesTotal += p.BytesTotal
		s.BytesPerSecond += p.BytesPerSecond
	}
	return s
}

// waiting counts the partitions that don't run yet by state.
func (c *Connector) waiting() map[mirror.State]int {
	states := map[mirror.State]int{}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.parts {
		switch {
		case p.lane != nil:
		case c.pausedLocked(p.source):
			states[mirror.Paused]++
		case p.halted:
			states[mirror.Halted]++
		case p.rests:
			states[mirror.Stopped]++
		default:
			states[mirror.Starting]++
		}
	}
	return states
}

func unstarted(p *partition, paused bool) PartitionStatus {
	s := PartitionStatus{
		Source: p.source, Target: p.target, State: string(mirror.Starting), Reason: p.reason, LastError: p.reason, Path: "raw", LagRecords: -1, LagBytes: -1,
		Extent: route.Extent{Start: -1, LastStable: -1, End: -1}, Position: -1, Acked: -1, Committed: -1, TargetEnd: -1,
	}
	switch {
	case paused:
		s.State = string(mirror.Paused)
	case p.halted:
		s.State = string(mirror.Halted)
	case p.rests:
		s.State, s.LastError = string(mirror.Stopped), ""
	}
	return s
}

func running(l mirror.Status) PartitionStatus {
	s := PartitionStatus{
		Source: l.Source, Target: l.Target, State: string(l.State), Reason: l.Reason, Extent: l.Extent,
		Position: l.Position, Acked: l.Acked, Committed: l.Committed, TargetEnd: l.TargetEnd,
		LagRecords: l.LagRecords, LagBytes: l.LagBytes, LagSeconds: l.LagSeconds, BytesPerSecond: l.BytesPerSecond, Path: "rewrite", LastError: l.LastError,
		RecordsTotal: l.Records, BytesTotal: l.Bytes,
	}
	if l.Raw {
		s.Path = "raw"
	}
	if l.Bytes > 0 {
		s.RecordsPerSecond = l.BytesPerSecond * float64(l.Records) / float64(l.Bytes)
	}
	return s
}

// troubleAfter is how long a partition may be refused by its source before that is more than a leader on its way.
const troubleAfter = 5 * time.Second

const (
	// degradedAfter is how long a cluster may be out of reach before the route is called degraded: longer than a leader's election takes.
	degradedAfter = 4 * time.Second
	// unstartedAfter is how long a partition may take to begin before that counts as the route's trouble.
	unstartedAfter = 10 * time.Second
	// troubledAfter is how long a running partition may try in vain before that counts as the route's trouble: longer than a doubt, which ends in a
	// halt with its own event.
	troubledAfter = 90 * time.Second
)

// watch looks at the two clusters and tells when the route becomes degraded and when it recovers.
func (c *Connector) watch() {
	reason := ""
	if err := c.fetchers.Reachable(); err != nil {
		reason = "source: " + err.Error()
	}
	if _, err := c.producer.Reachable(); err != nil {
		reason = "target: " + err.Error()
	}
	now := time.Now()
	records := c.mirror.Records()
	c.mu.Lock()
	r := &c.route
	if reason == "" && c.mirror.Len() < len(c.parts) {
		reason = c.unstartedLocked(now)
	}
	if why := c.troubledLocked(now); reason == "" {
		reason = why
	}
	if d := now.Sub(r.ticked).Seconds(); !r.ticked.IsZero() && d > 0 {
		r.rate = float64(records-r.records) / d
	}
	r.ticked, r.records = now, records
	var tell *events.Event
	switch {
	case reason == "" && r.told:
		tell = &events.Event{Type: events.RouteRecovered, Severity: events.Info, Message: "both clusters can be reached, and nothing is tried in vain"}
		r.told, r.badSince, r.reason = false, time.Time{}, ""
	case reason == "":
		r.badSince = time.Time{}
	case r.badSince.IsZero():
		r.badSince, r.reason = now, reason
	case !r.told && now.Sub(r.badSince) >= degradedAfter:
		r.told, r.reason = true, reason
		tell = &events.Event{Type: events.RouteDegraded, Severity: events.Error, Message: "something is tried in vain, and goes on being tried", Reason: reason}
	default:
		r.reason = reason
	}
	c.mu.Unlock()
	if tell != nil {
		c.deps.Events.Emit(*tell)
	}
}

// unstartedLocked says why a partition has not begun to run for long; empty if none is so. The caller holds mu.
func (c *Connector) unstartedLocked(now time.Time) (reason string) {
	for _, p := range c.parts {
		if p.lane == nil && now.Sub(p.since) > unstartedAfter && !p.halted && p.absent.IsZero() {
			return p.reason
		}
	}
	return ""
}

// troubledLocked says which running partitions have long been trying in vain to bring something to their target, which is no cluster out of reach. The
// caller holds mu.
func (c *Connector) troubledLocked(now time.Time) (reason string) {
	since := map[route.Partition]time.Time{}
	var first route.Partition
	n, why := 0, ""
	for _, p := range c.restlessLocked() {
		state, because := p.lane.State()
		if state != mirror.Degraded {
			continue
		}
		began, known := c.route.troubled[p.source]
		if !known {
			began = now
		}
		since[p.source] = began
		if now.Sub(began) < troubledAfter {
			continue
		}
		if n++; n == 1 || p.source.Compare(first) < 0 {
			first, why = p.source, because
		}
	}
	c.route.troubled = since
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d partitions make no progress, such as %s: %s", n, first, why)
}

// WaitCaughtUp reads the source ends of a topic once and waits until the acked positions are within lag records of them, together, or ctx
// ends. present is the lag then. On a worker with a share of the topic only that counts.
func (c *Connector) WaitCaughtUp(ctx context.Context, topic string, lag int64) (present int64, ok bool, err error) {
	m, err := c.source.Metadata(ctx, topic)
	if err != nil {
		return 0, false, fmt.Errorf("source: %w", err)
	}
	leaders := map[route.Partition]int32{}
	for _, p := range m.Topics[topic].Partitions {
		leaders[route.Partition{Topic: topic, Partition: p.Partition}] = p.Leader
	}
	if c.cfg.Share && len(leaders) > 0 {
		if c.keepOwn(leaders); len(leaders) == 0 {
			return 0, false, fmt.Errorf("source topic %s: %w", topic, errElsewhere)
		}
	}
	if len(leaders) == 0 {
		return 0, false, fmt.Errorf("source topic %s: %w", topic, cmpErr(m.Topics[topic].Err))
	}
	ends, err := c.source.ListOffsets(ctx, leaders, wire.AtEnd, c.cfg.Isolation == ReadCommitted)
	if err != nil {
		return 0, false, fmt.Errorf("source: %w", err)
	}
	for p := range leaders { // an end that is not known must not pass for one that was reached
		end, ok := ends[p]
		if !ok {
			end.Err = errUnknownTopic
		}
		if end.Err != nil {
			return 0, false, fmt.Errorf("source: find the end of %s: %w", p, end.Err)
		}
	}
	g := &gap{c: c, id: m.Topics[topic].ID, ends: ends, lag: lag}
	c.waits.Wait(ctx, 0, g.closed, topic)
	present = g.records()
	return present, present <= lag, nil
}

var errElsewhere = errors.New("no partition of it runs on this worker")

// keepOwn leaves out the partitions that other workers run.
func (c *Connector) keepOwn(parts map[route.Partition]int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for p := range parts {
		if c.parts[p] == nil {
			delete(parts, p)
		}
	}
}

// gap is what a topic lacks of ends that were read once.
type gap struct {
	c    *Connector
	id   route.TopicID
	ends map[route.Partition]wire.ListedOffset
	lag  int64
	late route.Partition // it alone lacked more than lag at the last look
}

// closed says that the topic lacks no more than lag records. It is asked at each acknowledgement, and topics may have thousands of partitions: as
// long as one alone lacks more it looks at no other.
func (g *gap) closed() bool {
	g.c.mu.Lock()
	defer g.c.mu.Unlock()
	if end, ok := g.ends[g.late]; ok && g.lackLocked(g.late, end) > g.lag {
		return false
	}
	all := int64(0)
	for p, end := range g.ends {
		n := g.lackLocked(p, end)
		if n > g.lag {
			g.late = p
			return false
		}
		all += n
	}
	return all <= g.lag
}

// records counts what the topic lacks.
func (g *gap) records() (n int64) {
	g.c.mu.Lock()
	defer g.c.mu.Unlock()
	for p, end := range g.ends {
		n += g.lackLocked(p, end)
	}
	return n
}

func (g *gap) lackLocked(p route.Partition, end wire.ListedOffset) int64 {
	acked := route.Offset(0)
	if q := g.c.parts[p]; q != nil && q.lane != nil {
		if s := q.lane.Status(); !differ(s.SourceTopicID, g.id) { // else it was made anew, and nothing of it is copied yet
			acked = s.Acked
		}
	}
	return max(int64(end.Offset-acked), 0)
}
