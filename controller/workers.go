package controller

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/causeway-mirror/causeway/route"
)

// Drain takes everything from a worker and gives it nothing more (on), or lets it take its share again. It begins at once. *NotFoundError.
func (t *Term) Drain(ctx context.Context, worker string, on bool) error {
	if _, known := t.State().Workers[worker]; !known { // a name that none can have, too
		return &NotFoundError{What: "worker", Name: worker}
	}
	if err := t.cluster.Drain(ctx, worker, on); err != nil {
		return err
	}
	t.wake()
	return nil
}

// Balancing says whether partitions may move.
func (t *Term) Balancing() bool { return t.cluster.State().moves() }

// SetBalancing turns the moving of partitions on or off; what nobody mirrored meanwhile is placed when it is on again.
func (t *Term) SetBalancing(ctx context.Context, on bool) error {
	if err := t.cluster.SetBalancing(ctx, on); err != nil {
		return err
	}
	if on {
		t.crew.again(t.began) // the past: look at once
		t.wake()
	}
	return nil
}

// Load is a worker with what it owns.
type Load struct {
	Worker     Worker
	Partitions []route.Partition // taken off ones too, in order
	Standby    bool              // it is held back
}

// Loads gives every worker that ever joined, in order, with what the ideal states give it.
func (t *Term) Loads() []Load {
	s := t.cluster.State()
	owned := map[string][]route.Partition{}
	for _, p := range s.partitions() {
		if owner := s.Topics[p.Topic].Owner(p.Partition); owner != "" {
			owned[owner] = append(owned[owner], p)
		}
	}
	_, options := t.workers(s, true)
	active := 0
	for id := range owned {
		if s.Workers[id].usable() {
			active++
		}
	}
	var out []Load
	for _, id := range slices.Sorted(maps.Keys(s.Workers)) {
		w := s.Workers[id]
		l := Load{Worker: w, Partitions: owned[id]}
		if options.MaxActive > 0 && len(owned[id]) == 0 && w.usable() {
			if l.Standby = active >= options.MaxActive; !l.Standby {
				active++
			}
		}
		out = append(out, l)
	}
	return out
}

// Rate is a partition's load as last measured; false when nobody has.
func (t *Term) Rate(p route.Partition) (Rate, bool) { return t.rates.Load().of(p) }

// Began is when the term began.
func (t *Term) Began() time.Time { return t.began }
