package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/route"
)

// discoveryReport is what the last discovery found.
type discoveryReport struct {
	excluded map[string]string // topic → why it is not mirrored
	missing  map[string]bool   // topics that are mirrored but not in the source
	differs  map[string]int32  // topics whose partition count is not the source's, after what could be done, and by how much
}

// discovers says whether topics are found by name.
func (t *Term) discovers() bool {
	return t.cfg.Discovery.Refuse != nil && t.cfg.Discovery.Interval > 0
}

// Excluded gives the topics of the source that are not mirrored, each with the reason, as of the last discovery.
func (t *Term) Excluded() map[string]string { return t.report.Load().excluded }

// discover compares the source with what is mirrored: topics that are wanted and not mirrored are added, those that have grown are expanded.
// What fails for one topic does not keep the others from being done.
func (t *Term) discover(ctx context.Context) error {
	source, err := t.deps.Source.Counts(ctx)
	if err != nil {
		return fmt.Errorf("list the source's topics: %w", err)
	}
	target := map[string]int32{}
	if t.cfg.Discovery.NeedTarget && t.deps.Target != nil {
		if target, err = t.deps.Target.Counts(ctx); err != nil {
			return fmt.Errorf("list the target's topics: %w", err)
		}
	}
	s := t.cluster.State()
	report := &discoveryReport{excluded: map[string]string{}, missing: map[string]bool{}, differs: map[string]int32{}}
	var found []Topic
	var faults []error
	failed := int64(0)
	for _, name := range slices.Sorted(maps.Keys(source)) {
		if topic, ok := s.Topics[name]; ok {
			grown, err := t.follow(ctx, topic, source[name])
			if err != nil {
				faults = append(faults, err)
				failed++
			}
			if diff := max(source[name]-topic.Partitions, topic.Partitions-source[name]); diff > 0 && !grown {
				report.differs[name] = diff
			}
			continue
		}
		if reason := t.refuse(s, name, target); reason != "" {
			report.excluded[name] = reason
			continue
		}
		found = append(found, Topic{Name: name, Partitions: source[name]})
	}
	t.missing(s, source, report)
	t.report.Store(report)
	if len(found) > 0 {
		if err = t.adopt(ctx, found); err != nil {
			faults = append(faults, err)
			failed += int64(len(found))
		}
	}
	t.tallies.discoveries.Add(1)
	t.tallies.failed.Store(failed)
	return errors.Join(faults...)
}

// refuse says why a topic is not mirrored; empty when it shall be.
func (t *Term) refuse(s *State, name string, target map[string]int32) string {
	if t.cfg.Discovery.Refuse == nil {
		return "topics are added by hand"
	}
	if reason := t.cfg.Discovery.Refuse(name); reason != "" {
		return reason
	}
	if s.Torn[name] {
		return "its ideal state in ZooKeeper can't be read"
	}
	if s.Excluded[name] {
		return "it was deleted from the mirror by an operator"
	}
	if _, ok := target[name]; t.cfg.Discovery.NeedTarget && !ok {
		return "the target does not have it"
	}
	return ""
}

// adopt adds topics that were found. Operators may have added or deleted some meanwhile, so all are tried at once and then one by one, and what is
// excluded by now is left alone.
func (t *Term) adopt(ctx context.Context, found []Topic) error {
	err := t.change(ctx, func(s *State) error {
		found = slices.DeleteFunc(found, func(topic Topic) bool { return s.Excluded[topic.Name] })
		return t.create(ctx, s, found...)
	})
	var exists *ExistsError
	if errors.As(err, &exists) && len(found) > 1 {
		var faults []error
		for _, topic := range found {
			if err = t.adopt(ctx, []Topic{topic}); err != nil {
				faults = append(faults, err)
			}
		}
		return errors.Join(faults...)
	}
	if err != nil {
		if errors.As(err, &exists) {
			return nil
		}
		return fmt.Errorf("add %d topics that were discovered: %w", len(found), err)
	}
	t.tallies.adopted.Add(int64(len(found)))
	for _, topic := range found {
		e := events.Event{Type: events.TopicDiscovered, Severity: events.Info, Topic: topic.Name}
		e.Message = fmt.Sprintf("topic %s with %d partitions was discovered", topic.Name, topic.Partitions)
		t.deps.Events.Emit(e)
	}
	return nil
}

// follow lets a topic grow with the source and says whether it did. A smaller source is another topic of that name: nothing is taken away.
func (t *Term) follow(ctx context.Context, topic Topic, count int32) (grown bool, err error) {
	if count <= topic.Partitions || !t.cfg.Discovery.Expand {
		return false, nil
	}
	if err = t.Expand(ctx, topic.Name, count); err != nil {
		if isGone(err) {
			return false, nil
		}
		return false, fmt.Errorf("expand topic %s: %w", topic.Name, err)
	}
	t.tallies.expanded.Add(1)
	e := events.Event{Type: events.PartitionsAdded, Severity: events.Info, Topic: topic.Name}
	e.Message = fmt.Sprintf("topic %s has grown from %d to %d partitions", topic.Name, topic.Partitions, count)
	t.deps.Events.Emit(e)
	return true, nil
}

// Discrepancy is what the last discovery found to differ from the source; nothing before the first. No IO, unlike Compare.
func (t *Term) Discrepancy() Discrepancy {
	report := t.report.Load()
	d := Discrepancy{Missing: len(report.missing), Mismatched: report.differs}
	for _, diff := range report.differs {
		d.Partitions += int(diff)
	}
	return d
}

// missing tells, once each, of topics that the source no longer has. They stay: a cluster in trouble may leave topics out, and what a deleted
// topic means is for its owner to say.
func (t *Term) missing(s *State, source map[string]int32, report *discoveryReport) {
	before := t.report.Load().missing
	for name := range s.Topics {
		if _, ok := source[name]; ok {
			continue
		}
		report.missing[name] = true
		if !before[name] {
			t.deps.Events.Emit(events.Event{
				Type: events.TopicDeleted, Severity: events.Warning, Topic: name, Message: "topic " + name + " is mirrored, but the source does not list it",
			})
		}
	}
}

// inState gives the partitions of a view that are in a state, each with the worker that says so.
func inState(view Assignment, topic, state string) map[route.Partition]string {
	out := map[route.Partition]string{}
	for p, workers := range view {
		for id, is := range workers {
			if is == state {
				out[route.Partition{Topic: topic, Partition: p}] = id
			}
		}
	}
	return out
}
