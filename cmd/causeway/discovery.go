package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/causeway-mirror/causeway/api"
	"github.com/causeway-mirror/causeway/cluster"
	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/handler"
	"github.com/causeway-mirror/causeway/internal/native"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

// retryMin and retryMax bound the pause after a discovery that failed.
const (
	retryMin = 500 * time.Millisecond
	retryMax = 10 * time.Second
	// silence is how long the first answer of a cluster may take before it is told that there is none.
	silence = 5 * time.Second
)

// topicSource lists the topics of a cluster; *cluster.Admin is one.
type topicSource interface {
	Topics(ctx context.Context) (map[string]cluster.Topic, error)
}

// topicMapper names a topic's target or refuses it; *handler.Handler is one.
type topicMapper interface {
	Topic(topic string) (handler.Topic, error)
}

// partitionAdder is who mirrors what is found.
type partitionAdder interface {
	Add(parts ...route.Partition)
}

// routeStore is the part of offsets.Store that remembers the first discovery.
type routeStore interface {
	Route(ctx context.Context) (offsets.Route, error)
	SaveRoute(ctx context.Context, r offsets.Route) error
}

// discovery finds topics and partitions of the source and hands them to the mirror. Everything found is kept: a topic that is gone is the
// mirror's to judge, since a cluster in trouble may leave topics out.
type discovery struct {
	source, target         topicSource
	sourceName, targetName string // as shown in reasons: part in the route, name and addresses
	mirror                 partitionAdder
	store                  routeStore
	mapper                 topicMapper
	filter                 native.Filter
	oneCluster             bool // source and target are the same: copies stand beside what they were made of
	events                 *events.Log
	log                    hclog.Logger
	interval               time.Duration

	mu       sync.Mutex       // guards what follows
	known    map[string]int32 // partitions by topic
	excluded []api.Excluded
	refused  []api.Partition // halted: partitions of topics that match and cannot have a place on the target
	trouble  string          // why the last round failed; "" when it did not
	asked    question
	rounds   int           // that succeeded
	first    chan struct{} // closed by the first round that succeeds; made by firstLocked
}

// question is one that waits for its answer.
type question struct {
	to    string // the cluster; "" while none is asked
	since time.Time
}

// run discovers at once and then every interval until ctx ends.
func (d *discovery) run(ctx context.Context) {
	retry := retryMin
	for {
		wait := d.interval
		if err := d.round(ctx); err != nil && ctx.Err() == nil {
			d.failed(err)
			wait = min(retry, d.interval)
			retry = min(2*retry, retryMax)
		} else {
			retry = retryMin
		}
		if !pause(ctx, wait) {
			return
		}
	}
}

// round looks once. The target of a new route is asked too until it has answered once, so that a wrong address shows before the first record. One
// that was begun before goes on without: its target may be away for longer than the source keeps its records, which go to disk meanwhile.
func (d *discovery) round(ctx context.Context) error {
	topics, err := d.ask(ctx, d.source, d.sourceName)
	if err != nil {
		return err
	}
	d.mu.Lock()
	first := d.rounds == 0
	d.mu.Unlock()
	known, err := d.store.Route(ctx)
	if err != nil {
		return fmt.Errorf("load route: %w", err)
	}
	if !known.Discovered {
		if _, err = d.ask(ctx, d.target, d.targetName); err != nil {
			return err
		}
	}
	s := d.sift(topics)
	if err = d.remember(ctx, known, topics, s.found); err != nil {
		return fmt.Errorf("store first discovery: %w", err)
	}
	if first {
		d.warnOfShared(s.copies)
	}
	d.adopt(topics, s)
	return nil
}

// ask lists a cluster's topics, and lets others see that this is waited for.
func (d *discovery) ask(ctx context.Context, from topicSource, name string) (map[string]cluster.Topic, error) {
	d.await(name)
	defer d.await("")
	topics, err := from.Topics(ctx)
	if err != nil {
		return nil, unanswered(name, err)
	}
	return topics, nil
}

func (d *discovery) await(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = question{name, time.Now()}
}

// unanswered says why a cluster does not tell its topics. Of one that can't be reached the connection's own error says it all.
func unanswered(name string, err error) error {
	class := cluster.Classify(err)
	broken, ok := errors.AsType[*net.OpError](err)
	switch {
	case class != cluster.Unreachable:
	case ok:
		err = broken
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		err = errHungUp
	}
	return fmt.Errorf("%s: %s: %w", name, class, err)
}

// errHungUp stands for the end of a connection in place of an answer.
var errHungUp = errors.New("the connection was closed before an answer came: what listens there speaks no Kafka, wants TLS or SASL, or is about to end")

// sifted is a cluster's topics, judged.
type sifted struct {
	found    []string // to be mirrored
	excluded []api.Excluded
	refused  []api.Partition     // of those excluded ones that should be mirrored and cannot
	copies   map[string][]string // target → its sources
}

// sift splits topics into those to mirror and those not to, with the reason.
func (d *discovery) sift(topics map[string]cluster.Topic) sifted {
	s := sifted{copies: map[string][]string{}}
	reasons := map[string]string{}
	for _, name := range sortedKeys(topics) {
		reasons[name] = d.filter.Refusal(name, topics[name].Internal)
		if reasons[name] != "" {
			continue
		}
		if t, err := d.mapper.Topic(name); err != nil {
			reasons[name] = err.Error()
			s.refused = append(s.refused, refusedPartitions(topics[name], err)...)
		} else {
			s.copies[t.Target] = append(s.copies[t.Target], name)
		}
	}
	for _, name := range sortedKeys(topics) {
		reason := reasons[name]
		if of, loop := s.copies[name]; loop && d.oneCluster && reason == "" {
			reason = "source and target are one cluster, and topic " + of[0] + " is copied here: copies of copies would never end"
		}
		if reason == "" {
			s.found = append(s.found, name)
		} else {
			s.excluded = append(s.excluded, api.Excluded{Topic: name, Reason: reason})
		}
	}
	for _, name := range d.filter.Missing(func(name string) bool { _, ok := topics[name]; return ok }) {
		s.excluded = append(s.excluded, api.Excluded{Topic: name, Reason: missingReason})
	}
	return s
}

// missingReason is why a topic that is named and not there is left out.
const missingReason = "does not exist on the source"

// refusedPartitions are those of a topic that should be mirrored and cannot: to whoever looks they are halted.
func refusedPartitions(t cluster.Topic, err error) []api.Partition {
	parts := make([]api.Partition, t.Partitions)
	for p := range t.Partitions {
		parts[p] = api.Partition{
			Topic: t.Name, Partition: p, TargetPartition: p, State: api.StateHalted, Reason: err.Error(), LastError: err.Error(),
			Extent: api.Extent{SourceStart: -1, SourceEnd: -1, SourceLastStable: -1}, Position: -1, Acked: -1, Committed: -1, TargetEnd: -1, LagRecords: -1, LagBytes: -1,
		}
	}
	return parts
}

// warnOfShared names topics that go to one target topic, which only the configuration can want.
func (d *discovery) warnOfShared(copies map[string][]string) {
	for _, target := range sortedKeys(copies) {
		if sources := copies[target]; len(sources) > 1 {
			d.log.Warn("topics share a target topic: their records mix there and cannot be compared", "topics", strings.Join(sources, ","), "target", target)
		}
	}
}

// remember stores the topics of the route's first discovery, with their numbers of partitions, before any of them is mirrored: `start` applies
// to them alone, and a restart must not take one found later for one of them. The mirror writes the same record, so a conflict is tried again.
func (d *discovery) remember(ctx context.Context, r offsets.Route, topics map[string]cluster.Topic, found []string) (err error) {
	first := make(map[string]int32, len(found))
	for _, name := range found {
		first[name] = topics[name].Partitions
	}
	for !r.Discovered {
		r.Discovered, r.FirstTopics = true, first
		if err = d.store.SaveRoute(ctx, r); !errors.Is(err, offsets.ErrConflict) {
			return err
		}
		if r, err = d.store.Route(ctx); err != nil {
			return err
		}
	}
	return nil
}

// adopt notes a round that succeeded, tells of what is new and hands it on.
func (d *discovery) adopt(topics map[string]cluster.Topic, s sifted) {
	d.mu.Lock()
	if d.known == nil {
		d.known = map[string]int32{}
	}
	var (
		parts []route.Partition
		news  []events.Event
	)
	for _, name := range s.found {
		had, n := d.known[name], topics[name].Partitions
		for p := had; p < n; p++ {
			parts = append(parts, route.Partition{Topic: name, Partition: p})
		}
		switch {
		case had == 0 && n > 0:
			news = append(news, events.Event{Type: events.TopicDiscovered, Severity: events.Info, Topic: name, Message: "topic found, " + plural(n, "partition")})
		case n > had:
			news = append(news, events.Event{Type: events.PartitionsAdded, Severity: events.Info, Topic: name, Message: fmt.Sprintf("partitions grew from %d to %d", had, n)})
		}
		d.known[name] = max(had, n)
	}
	var missing []string
	for _, e := range s.excluded {
		if slices.Contains(d.excluded, e) {
			continue
		}
		if _, exists := topics[e.Topic]; !exists {
			missing = append(missing, e.Topic)
		}
		if slices.ContainsFunc(s.refused, func(p api.Partition) bool { return p.Topic == e.Topic }) {
			news = append(news, events.Event{Type: events.PartitionHalted, Severity: events.Warning, Topic: e.Topic, Message: "topic cannot be mirrored", Reason: e.Reason})
		}
	}
	recovered := d.trouble != ""
	d.excluded, d.refused, d.trouble = s.excluded, s.refused, ""
	d.rounds++
	if d.rounds == 1 {
		defer close(d.firstLocked()) // once the mirror knows of what was found
	}
	d.mu.Unlock()

	if recovered {
		d.events.Emit(events.Event{Type: events.RouteRecovered, Severity: events.Info, Message: "both clusters answer"})
	}
	for _, e := range news {
		d.events.Emit(e)
	}
	for _, topic := range missing {
		d.log.Warn("topic is named but does not exist on the source; it is mirrored once it does", "topic", topic)
	}
	if len(parts) > 0 {
		d.mirror.Add(parts...)
	}
}

// failed notes why a round failed; the first failure of a row is an event, as long as the mirror itself cannot tell.
func (d *discovery) failed(err error) {
	d.mu.Lock()
	first := d.trouble == ""
	d.trouble = err.Error()
	d.mu.Unlock()
	if first {
		d.events.Emit(events.Event{Type: events.RouteDegraded, Severity: events.Error, Message: "cannot list topics; it is tried again", Reason: err.Error()})
		return
	}
	d.log.Debug("discovery failed again", "err", err)
}

// state returns whether a round has succeeded yet, and why the last one did not, or the first one takes so long.
func (d *discovery) state() (ready bool, trouble string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	trouble = d.trouble
	if waited := time.Since(d.asked.since); d.rounds == 0 && trouble == "" && d.asked.to != "" && waited > silence {
		trouble = fmt.Sprintf("%s: no answer for %s: it is overloaded, or what listens there speaks no Kafka", d.asked.to, waited.Truncate(time.Second))
	}
	return d.rounds > 0, trouble
}

// found returns a channel that closes when the first topics were handed to the mirror.
func (d *discovery) found() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.firstLocked()
}

func (d *discovery) firstLocked() chan struct{} {
	if d.first == nil {
		d.first = make(chan struct{})
	}
	return d.first
}

// Excluded lists the topics that are not mirrored.
func (d *discovery) Excluded() []api.Excluded {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.excluded)
}

// halted lists the partitions that should be mirrored and cannot.
func (d *discovery) halted() []api.Partition {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.refused // replaced as a whole, never changed
}

// lacking says why a mirror without lag has not copied all that it was told to; nil if it has. The empty topic stands for all.
func (d *discovery) lacking(topic string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.refused {
		if p := &d.refused[i]; topic == "" || topic == p.Topic {
			return fmt.Errorf("topic %s cannot be mirrored: %s", p.Topic, p.Reason)
		}
	}
	if topic != "" || len(d.known) > 0 {
		return nil
	}
	for _, e := range d.excluded {
		if e.Reason == missingReason {
			return fmt.Errorf("no topic is mirrored: topic %s %s", e.Topic, e.Reason)
		}
	}
	return nil
}
