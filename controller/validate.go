package controller

import (
	"context"
	"fmt"

	"github.com/causeway-mirror/causeway/helix"
)

// Validation compares ideal states with external views.
type Validation struct {
	Topics, ErrorTopics                int // ErrorTopics: the view has another number of partitions than the ideal state
	Partitions, Online, Offline, Error int // Online, Offline, Error: as the workers report them
	Ideal, External                    map[string]int
}

// Validate compares now. No IO.
func (t *Term) Validate() Validation { return validation(t.cluster.State()) }

func validation(s *State) Validation {
	v := Validation{Topics: len(s.Topics), Ideal: map[string]int{}, External: map[string]int{}}
	for name, topic := range s.Topics {
		v.Partitions += int(topic.Partitions)
		for _, workers := range topic.Assigned {
			for id := range workers {
				v.Ideal[id]++
			}
		}
		view := s.Views[name]
		if len(view) != int(topic.Partitions) {
			v.ErrorTopics++
		}
		for _, workers := range view {
			for id, state := range workers {
				v.External[id]++
				switch state {
				case Online:
					v.Online++
				case Offline:
					v.Offline++
				case string(helix.Error):
					v.Error++
				}
			}
		}
	}
	return v
}

// Discrepancy compares what is mirrored with the source.
type Discrepancy struct {
	Missing    int              // topics that the source does not have
	Mismatched map[string]int32 // topics whose partition count differs, and by how much
	Partitions int              // sum of that
}

// Compare asks the source and compares; it changes nothing. ErrNoSource.
func (t *Term) Compare(ctx context.Context) (Discrepancy, error) {
	if t.deps.Source == nil {
		return Discrepancy{}, ErrNoSource
	}
	s := t.cluster.State()
	d := Discrepancy{Mismatched: map[string]int32{}}
	if len(s.Topics) == 0 {
		return d, nil
	}
	counts, err := t.deps.Source.Counts(ctx, s.names()...)
	if err != nil {
		return d, fmt.Errorf("list the source's topics: %w", err)
	}
	for name, topic := range s.Topics {
		n, ok := counts[name]
		switch diff := max(n-topic.Partitions, topic.Partitions-n); {
		case !ok:
			d.Missing++
		case diff != 0:
			d.Mismatched[name] = diff
			d.Partitions += int(diff)
		}
	}
	return d, nil
}

// validate publishes the comparison.
func (t *Term) validate(context.Context) error {
	v := t.Validate()
	if v.Error > 0 || v.ErrorTopics > 0 {
		t.deps.Log.Warn("the cluster is not as it should be", "error_topics", v.ErrorTopics, "error_partitions", v.Error)
	}
	t.metrics.observe(v)
	return nil
}
