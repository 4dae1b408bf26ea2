package mirror

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/internal/testkit"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

// renewed says that a partition may be started anew for this.
func (w *world) renewed(a Anew) bool {
	switch a.Cause {
	case LeftOut:
		return w.variant.refusals
	case Gone:
		return w.variant.truncates
	case Recreated, Uncounted, Parted, Again, Lost, Resent:
	}
	return false
}

// restart plays the connector for an owner whose lane must be started anew. It may die before and after each step.
func (w *world) restart(o *owner) {
	i := slices.Index(w.owners, o)
	if i < 0 {
		return
	}
	a := o.lane.Stale()
	_, doubted := o.lane.Doubted()
	newer := w.store.now.ProducerEpoch > o.lane.pos.checkpoint.ProducerEpoch
	if !w.renewed(a) && (!doubted || !newer) {
		return
	}
	dies := func() bool { return !w.calm && w.rng.IntN(5) == 0 }
	if !dies() {
		_ = o.stream.commit(w.t.Context())
	}
	w.kill(i)
	at := w.store.now
	if w.renewed(a) && a.ProducerEpoch == at.ProducerEpoch && a.At == at.SourceOffset && !dies() {
		at = w.behind(at, a)
		if !w.variant.sameEpoch {
			at.ProducerEpoch, at.Sequence, at.Opened = at.ProducerEpoch+1, 0, false
		}
		w.store.now, w.store.history = at, append(w.store.history, at)
	}
	w.start(w.store.now)
}

// behind moves a checkpoint behind what is not copied.
func (w *world) behind(at offsets.Checkpoint, a Anew) offsets.Checkpoint {
	if a.Cause == Gone {
		at.SourceOffset, at.TargetOffset, at.LeaderEpoch = a.To, cmp.Or(a.End, at.TargetOffset), -1
		return at
	}
	number := 0
	for _, s := range w.source {
		for k, n := range s.made.numbers {
			if s.made.base+route.Offset(k) == a.At {
				number = n
			}
		}
	}
	if !w.target.refuses(number) {
		broken("record %d at %d was left out, and the target takes it", number, a.At)
	}
	at.SourceOffset, at.LeaderEpoch = a.At+1, a.LeaderEpoch
	return at
}

// begin is the source's first offset.
func (w *world) begin() route.Offset {
	if w.gone == 0 {
		return 0
	}
	return w.source[w.gone-1].next
}

// truncate deletes some of the source's first batches, whoever has read them.
func (w *world) truncate() {
	if more := w.visible - w.gone; more > 0 {
		w.gone += w.rng.IntN(min(more, 12))
	}
}

// passed tells an owner that asks for what is gone where the source begins now.
func (w *world) passed(o *owner) bool {
	if !w.variant.truncates || o.fetched != nil {
		return false
	}
	at, generation, room := o.lane.Want()
	if room == 0 || at.Offset >= w.begin() {
		return false
	}
	f := fault(route.SourceChanged, CodeOutOfRange)
	end := w.source[w.visible-1].next
	f.Extent = route.Extent{Start: w.begin(), LastStable: end, End: end}
	o.lane.Fail(generation, f)
	return true
}

// listen hears what an owner has told.
func (w *world) listen(o *owner) {
	if o.lane.pos.foreign && w.visits == 0 && !w.variant.truncates { // where a gap was counted over, a new owner does not know it
		broken("another writer is told of, and there is none")
	}
	if !w.variant.truncates {
		return
	}
	if w.told == nil {
		w.told = map[events.Type]map[route.Offset]bool{events.RangeSkipped: {}, events.DuplicatesPossible: {}}
	}
	for _, e := range o.events.Since(0) {
		if told := w.told[e.Type]; told != nil {
			for at := *e.FirstOffset; at <= *e.LastOffset; at++ {
				told[at] = true
			}
			if e.Type == events.RangeSkipped && *e.LastOffset >= w.begin() {
				broken("told as skipped up to %d, and the source begins at %d", *e.LastOffset, w.begin())
			}
		}
	}
}

// checkGaps holds a checkpoint against what is replicated, where the source may have deleted what nobody had copied: that was told.
func (w *world) checkGaps(c offsets.Checkpoint) {
	for _, o := range w.owners {
		w.listen(o)
	}
	got := w.target.forwarded(foreignID)
	seen := map[int]bool{}
	last := -1
	for _, n := range got {
		switch {
		case seen[n] && len(w.told[events.DuplicatesPossible]) == 0:
			broken("record %d is there twice: %v", n, got)
		case !seen[n] && n < last:
			broken("record %d is behind %d: %v", n, last, got)
		}
		seen[n], last = true, max(n, last)
	}
	for _, s := range w.source {
		for i, n := range s.made.numbers {
			if at := s.made.base + route.Offset(i); at < c.SourceOffset && !seen[n] && !w.told[events.RangeSkipped][at] {
				broken("record %d at %d is neither there nor told as skipped, and %d is committed: %v", n, at, c.SourceOffset, got)
			}
		}
	}
}

// Whatever the source deletes before it is copied, and whoever had read it: no record is missing of which nothing is told.
func TestTargetHoldsEveryRecordOnceButThoseTheSourceDeletes(t *testing.T) {
	t.Parallel()
	seeds := uint64(100)
	if testkit.Long() {
		seeds = 5000
	}
	for seed := range seeds {
		if err := run(t, seed, variant{truncates: true}); err != nil {
			require.NoError(t, fmt.Errorf("seed %d: %w", seed, err))
		}
	}
}
