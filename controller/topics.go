package controller

import (
	"context"
	"errors"
	"maps"
	"regexp"
	"slices"

	"github.com/causeway-mirror/causeway/controller/assign"
	"github.com/causeway-mirror/causeway/route"
)

// legalTopic is what Kafka accepts as a topic's name.
var legalTopic = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,249}$`)

// mostPartitions is far beyond what a cluster holds and keeps a mistyped number from filling ZooKeeper.
const mostPartitions = 100_000

func checkTopic(topic string, partitions int32) error {
	if !legalTopic.MatchString(topic) || topic == "." || topic == ".." {
		return &InvalidError{Key: "topic", Value: topic, Reason: "is no legal topic name"}
	}
	if partitions < 0 || partitions > mostPartitions {
		return &InvalidError{Key: "partitions", Value: partitions, Reason: "must be 0 to 100000"}
	}
	return nil
}

// Topics lists the topics that are mirrored, in order.
func (t *Term) Topics() []string { return t.cluster.State().names() }

// State is the cluster as last seen.
func (t *Term) State() *State { return t.cluster.State() }

// Topic gives a topic's ideal state and its external view; neither may be changed. *NotFoundError.
func (t *Term) Topic(name string) (Topic, Assignment, error) {
	s := t.cluster.State()
	topic, ok := s.Topics[name]
	if !ok {
		return Topic{}, nil, &NotFoundError{What: "topic", Name: name}
	}
	return topic, s.Views[name], nil
}

// Add begins to mirror a topic and places its partitions on the workers that have least to do; without workers they wait for some. It asks
// nobody whether the source has the topic. A topic that had been excluded may be discovered again. *ExistsError, *InvalidError.
func (t *Term) Add(ctx context.Context, name string, partitions int32) error {
	if err := checkTopic(name, partitions); err != nil {
		return err
	}
	if t.cluster.State().Excluded[name] {
		if err := t.cluster.Exclude(ctx, name, false); err != nil {
			return err
		}
	}
	return t.change(ctx, func(s *State) error { return t.create(ctx, s, Topic{Name: name, Partitions: partitions}) })
}

// AddFromSource is Add with as many partitions as the source has, which it returns. *AbsentError, ErrNoSource.
func (t *Term) AddFromSource(ctx context.Context, name string) (int32, error) {
	n, err := t.InSource(ctx, name)
	if err != nil {
		return 0, err
	}
	return n, t.Add(ctx, name, n)
}

// InSource is how many partitions the source has of a topic. *AbsentError, *InvalidError, ErrNoSource.
func (t *Term) InSource(ctx context.Context, name string) (int32, error) {
	if err := checkTopic(name, 0); err != nil {
		return 0, err
	}
	if t.deps.Source == nil {
		return 0, ErrNoSource
	}
	counts, err := t.deps.Source.Counts(ctx, name)
	if err != nil {
		return 0, err
	}
	n, ok := counts[name]
	if !ok {
		return 0, &AbsentError{Topic: name}
	}
	return n, nil
}

// create places and creates new topics. The caller has the turn.
func (t *Term) create(ctx context.Context, s *State, topics ...Topic) error {
	for _, topic := range topics {
		if _, ok := s.Topics[topic.Name]; ok {
			return &ExistsError{Topic: topic.Name}
		}
		if s.Torn[topic.Name] {
			return s.mirrored(topic.Name)
		}
	}
	return t.cluster.Create(ctx, t.place(s, topics)...)
}

// place gives owners to the partitions of topics that have none; topics are new or grown, and cover what s says of them.
func (t *Term) place(s *State, topics []Topic) []Topic {
	now := make(map[string]Topic, len(topics))
	for _, topic := range topics {
		now[topic.Name] = topic.Clone()
	}
	merged := &State{Topics: make(map[string]Topic, len(s.Topics)+len(now)), Workers: s.Workers, Pins: s.Pins}
	maps.Copy(merged.Topics, s.Topics)
	maps.Copy(merged.Topics, now)
	workers, options := t.workers(merged, true)
	plan := assign.Place(workers, t.weighed(merged), options)
	for _, m := range plan.Moves {
		if topic, ok := now[m.Partition.Topic]; ok && m.To != "" {
			topic.Assigned[m.Partition.Partition] = map[string]string{m.To: Online}
		}
	}
	out := make([]Topic, 0, len(topics))
	for _, topic := range topics {
		out = append(out, now[topic.Name])
	}
	return out
}

// Expand lets a topic have at least so many partitions. Partitions that it has keep their place; fewer change nothing. *NotFoundError,
// *InvalidError.
func (t *Term) Expand(ctx context.Context, name string, partitions int32) error {
	if err := checkTopic(name, partitions); err != nil {
		return err
	}
	return t.change(ctx, func(s *State) error {
		if err := s.mirrored(name); err != nil {
			return err
		}
		topic := s.Topics[name]
		if partitions <= topic.Partitions {
			return nil
		}
		topic.Partitions = partitions
		return t.cluster.Write(ctx, t.place(s, []Topic{topic}))
	})
}

// Delete ends the mirroring of a topic; what its positions were stays stored, so that adding it again goes on from there. Where topics are
// discovered the name is excluded, also one that is not mirrored. *NotFoundError.
func (t *Term) Delete(ctx context.Context, name string) error {
	discoverable := checkTopic(name, 0) == nil // somebody may have made an ideal state of another name
	if discoverable && t.discovers() && !t.cluster.State().Excluded[name] {
		if err := t.cluster.Exclude(ctx, name, true); err != nil {
			return err
		}
	}
	return t.change(ctx, func(s *State) error {
		if _, ok := s.Topics[name]; !ok && !s.Torn[name] {
			return &NotFoundError{What: "topic", Name: name}
		}
		return t.cluster.Drop(ctx, name)
	})
}

// Exclude keeps a topic from being discovered, or lets it be found again; what is mirrored stays so.
func (t *Term) Exclude(ctx context.Context, name string, on bool) error {
	if err := checkTopic(name, 0); err != nil {
		return err
	}
	return t.cluster.Exclude(ctx, name, on)
}

// TakeOff stops the mirroring of one partition (off) or lets it go on, wherever it is. *NotFoundError, *AlreadyError; *InvalidError if no
// worker is there to note it at.
func (t *Term) TakeOff(ctx context.Context, p route.Partition, off bool) error {
	return t.change(ctx, func(s *State) error {
		if err := s.has(p); err != nil {
			return err
		}
		topic := s.Topics[p.Topic]
		state := Online
		if off {
			state = Offline
		}
		owner := topic.Owner(p.Partition)
		if owner != "" && topic.Off(p.Partition) == off {
			return &AlreadyError{State: state}
		}
		topic = t.place(s, []Topic{topic})[0]
		if owner = topic.Owner(p.Partition); owner == "" {
			return &InvalidError{Key: "partition", Value: p.String(), Reason: "no worker can take it at the moment"}
		}
		topic.Assigned[p.Partition] = map[string]string{owner: state}
		return t.cluster.Write(ctx, []Topic{topic})
	})
}

// Off lists the partitions that are taken off, in order.
func (t *Term) Off() []route.Partition {
	s := t.cluster.State()
	return slices.DeleteFunc(s.partitions(), func(p route.Partition) bool { return !s.Topics[p.Topic].Off(p.Partition) })
}

// Move brings a partition to a worker and pins it there, so that no balance takes it away. While that worker drains, is disabled or gone others
// have it, and it comes back when the worker does. An empty name takes the pin off and moves nothing.
// *NotFoundError, *InvalidError.
func (t *Term) Move(ctx context.Context, p route.Partition, worker string) error {
	return t.change(ctx, func(s *State) error {
		if err := s.has(p); err != nil {
			return err
		}
		topic := s.Topics[p.Topic]
		w, ok := s.Workers[worker]
		switch {
		case worker == "":
			return t.cluster.Pin(ctx, p, "")
		case !ok:
			return &NotFoundError{What: "worker", Name: worker}
		case !w.usable():
			return &InvalidError{Key: "worker", Value: worker, Reason: "can't take partitions at the moment"}
		case !t.silent()[worker].IsZero():
			return &InvalidError{Key: "worker", Value: worker, Reason: "does not answer"}
		}
		if owner := topic.Owner(p.Partition); owner != worker && t.spills(owner, p) {
			return &InvalidError{Key: "worker", Value: worker, Reason: "worker " + owner + " has records of " + p.String() +
				" on its disk that the target has not, and the source may have them no more: they are sent first"}
		}
		if err := t.cluster.Pin(ctx, p, worker); err != nil {
			return err
		}
		if topic.Owner(p.Partition) == worker {
			return nil
		}
		state := Online
		if topic.Off(p.Partition) {
			state = Offline
		}
		topic = topic.Clone()
		topic.Assigned[p.Partition] = map[string]string{worker: state}
		return t.cluster.Write(ctx, []Topic{topic})
	})
}

// spills says that a worker has said that it has records of a partition on its disk.
func (t *Term) spills(worker string, p route.Partition) bool {
	return t.deps.Pulse != nil && slices.Contains(t.deps.Pulse.Spilled()[worker], p)
}

// isGone says whether err means that what was asked about is not there.
func isGone(err error) bool {
	var gone *NotFoundError
	return errors.As(err, &gone)
}
