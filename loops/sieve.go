package loops

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// Sieve tells, of one source topic, which batches were brought by a mirror from the very topic that this route copies it to: those of its producer
// ids. The header of a batch is enough for that.
//
// A mirror names an id in its marker, acknowledged, before it sends anything with it. So an id that is seen for the first time is looked up after it
// was seen, and the answer holds for good: nobody has to be told of new ids in time.
type Sieve struct {
	wake chan<- struct{} // who looks ids up

	mu     sync.Mutex // guards what follows
	copies map[int64]bool
	others map[int64]bool // were looked up, and are no mirror's
	asked  map[int64]bool
	told   []func() // once what was asked is known
}

// mostOthers bounds what is remembered of ids that are no mirror's; what is forgotten is looked up again.
const mostOthers = 100_000

func newSieve(wake chan<- struct{}) *Sieve {
	return &Sieve{wake: wake, copies: map[int64]bool{}, others: map[int64]bool{}, asked: map[int64]bool{}}
}

// Copies says whether a producer id is that of such a mirror. It is not known before somebody has asked.
func (s *Sieve) Copies(id int64) (copies, known bool) {
	if id < 0 {
		return false, true // mirrors of this kind have ids
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.copies[id], s.copies[id] || s.others[id]
}

// Ask has ids looked up; told is called once they are known, from another goroutine.
func (s *Sieve) Ask(ids []int64, told func()) {
	s.mu.Lock()
	for _, id := range ids {
		s.asked[id] = true
	}
	s.told = append(s.told, told)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// asking gives the ids that are asked for now.
func (s *Sieve) asking() map[int64]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.asked)
}

// learn takes the ids of mirrors. Those that were asked for before these were looked up, and are not among them, are others'.
func (s *Sieve) learn(copies ids, asked map[int64]bool) {
	s.mu.Lock()
	for _, id := range copies {
		s.copies[id] = true // and stays one when the marker is gone: its batches may still be there
	}
	if len(s.others)+len(asked) > mostOthers {
		clear(s.others)
	}
	for id := range asked {
		s.others[id] = true
		delete(s.asked, id)
	}
	var told []func()
	if len(s.asked) == 0 {
		told, s.told = s.told, nil
	}
	s.mu.Unlock()
	for _, tell := range told {
		tell()
	}
}

// ids are producer ids, in order.
type ids []int64

// with is a copy that has more.
func (i ids) with(more ...int64) ids {
	if len(i)+len(more) == 0 {
		return nil
	}
	all := slices.Concat(i, more)
	slices.Sort(all)
	return slices.Compact(all)
}

// Sieve is that of a source topic which was admitted; nil where nothing is dropped.
func (w *Watch) Sieve(topic string) *Sieve {
	w.rounds.Lock()
	defer w.rounds.Unlock()
	if !w.cfg.Drop {
		return nil
	}
	s := w.sieves[topic]
	if s == nil {
		s = newSieve(w.asked)
		w.sieves[topic] = s
	}
	w.teach(nil)
	return s
}

// sought is what the sieves are asked for now, by topic.
func (w *Watch) sought() map[string]map[int64]bool {
	asked := make(map[string]map[int64]bool, len(w.sieves))
	for topic, s := range w.sieves {
		asked[topic] = s.asking()
	}
	return asked
}

// teach tells the sieves which mirrors bring their topics from where they go to, as was seen after ids were asked for. A mirror that does not drop is
// among them: it is refused, or this route is.
func (w *Watch) teach(asked map[string]map[int64]bool) {
	for topic, s := range w.sieves {
		c := w.topics[topic]
		if c == nil {
			continue // it is not mirrored any more; if it is again, it is looked up again
		}
		for _, h := range w.before[topic] {
			if h.From() == (Place{w.ends.Target, c.target}) {
				c.leaves = c.leaves.with(h.Producers...)
			}
		}
		s.learn(c.leaves, asked[topic])
	}
}

// Sift looks up what sieves are asked for, until ctx ends.
func (w *Watch) Sift(ctx context.Context) {
	for {
		select {
		case <-w.asked:
		case <-ctx.Done():
			return
		}
		for !w.lookUp(ctx) {
			if !rest(ctx) {
				return
			}
		}
	}
}

func (w *Watch) lookUp(ctx context.Context) bool {
	w.rounds.Lock()
	defer w.rounds.Unlock()
	return w.lookBack(ctx) == nil
}

// ErrUnannounced says that no marker can name the producer ids of a topic. Without it the other route of a pair can't tell what this one brings.
var ErrUnannounced = errors.New("loops: drop: the producer ids can't be named in a marker")

// Announce takes the producer ids with which a source topic is about to be written, besides those of before. Where batches are dropped the topic's
// marker has them on return: nothing may be sent with an id before. Errors: *RefusedError, ErrUnannounced; any other may pass.
func (w *Watch) Announce(ctx context.Context, topic string, producers ...int64) error {
	w.rounds.Lock()
	defer w.rounds.Unlock()
	c := w.topics[topic]
	var before ids
	if c != nil {
		before = c.ids
		c.ids = c.ids.with(producers...)
	}
	if !w.cfg.Drop {
		return nil // they are written when it is next looked at
	}
	if c == nil {
		return fmt.Errorf("%w: topic %s is not watched; clusters without an id can't be", ErrUnannounced, topic)
	}
	if err := w.lookAgain(ctx); err != nil {
		return err
	}
	w.judge()
	if why := w.Refused()[topic]; why != nil {
		return why
	}
	c.declared = true
	if notes := w.wanted(map[string]string{topic: c.target}, false); len(notes) > 0 {
		if err := w.write(ctx, notes); err != nil {
			return fmt.Errorf("loops: drop: leave a marker with the producer ids of topic %s on the target: %w", topic, err)
		}
	}
	wanted := c.ids
	for _, h := range w.stored[c.target].Hops {
		if !w.mine(h, topic) {
			continue
		}
		if len(c.ids.with(h.Producers...)) == len(h.Producers) {
			return nil
		}
		before = before.with(h.Producers...)
	}
	c.ids = before // nothing is sent with the others
	return fmt.Errorf("%w: topic %s has %d, for which there is no room", ErrUnannounced, topic, len(wanted))
}

// shorter is a target's marker for which there is no room as it should be. Of producer ids it loses those of what was left out, but never those of
// what is written here, or what this route brings would be copied back: rather it stays as it is.
func (w *Watch) shorter(target string, hops []Hop) (text string, cut bool) {
	for i := range hops {
		hops[i].Leaves = nil
	}
	text, cut = Format(hops, MaxBytes)
	m, _ := Parse(text) // an empty one is none
	for _, h := range w.stored[target].Hops {
		if c := w.topics[h.Topic]; c == nil || c.target != target || !w.mine(h, h.Topic) {
			continue
		}
		if !slices.ContainsFunc(m.Hops, func(o Hop) bool {
			return w.mine(o, h.Topic) && len(ids(h.Producers).with(o.Producers...)) == len(o.Producers)
		}) {
			return w.texts[target], true
		}
	}
	return text, cut
}

// lookAgain reads the markers that must be known before a topic begins of which batches are dropped: the source's, if they were not read, and
// the route's own, since who makes a topic anew has taken its marker away.
func (w *Watch) lookAgain(ctx context.Context) error {
	if w.sides[unread] != nil {
		if err := w.lookBack(ctx); err != nil {
			return fmt.Errorf("loops: drop: read the markers on the source: %w", err)
		}
	}
	texts, err := w.target.GroupNotes(ctx, Group(w.cfg.Route))
	if !w.answered(ownUnread, err) {
		return fmt.Errorf("loops: drop: read this route's markers on the target: %w", err)
	}
	w.recall(texts)
	return nil
}
