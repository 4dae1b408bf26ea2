package loops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/causeway-mirror/causeway/cluster"
	"github.com/causeway-mirror/causeway/events"
)

// Notes keep markers on a cluster; *cluster.Admin is one.
type Notes interface {
	// Groups lists the consumer groups whose names begin with prefix.
	Groups(ctx context.Context, prefix string) ([]string, error)
	// GroupNotes reads a group's markers, by topic.
	GroupNotes(ctx context.Context, group string) (map[string]string, error)
	// SaveGroupNotes stores markers, acknowledged on return. An empty one takes the marker of its topic away.
	SaveGroupNotes(ctx context.Context, group string, notes map[string]string) error
}

// How long things last. Brokers keep such offsets for a week after they were written, by default.
const (
	renewAfter = 12 * time.Hour
	staleAfter = 3 * 24 * time.Hour // a marker that was not renewed for so long is of a route that is no more
	patience   = 10 * time.Second   // with a cluster that does not answer, before the first topics begin unwatched
	attempt    = 3 * time.Second    // what others, later, wait for it
	again      = 200 * time.Millisecond
	tellAfter  = 30 * time.Second // of what passes by itself, mostly
)

// Config is what a Watch says of its route.
type Config struct {
	Route string     // as in route.Route.String
	Takes *Selection // nil: it may take anything
	// Alone says that no other worker mirrors topics of this route. Then markers of topics that it no longer mirrors are taken away.
	Alone bool
	// Drop says that batches which another route has brought from where this one copies to are left out, instead of the topic.
	Drop bool
}

// Ends are the two clusters of a route, and who it is.
type Ends struct {
	Source, Target string // cluster ids; what has none is not watched
	Producer       int64  // the route's producer id on the target; -1: not known yet
}

// Watch keeps the markers of one route, and refuses topics that would come round. Its methods may be called concurrently; those with a
// context do IO and take turns.
type Watch struct {
	cfg            Config
	source, target Notes
	events         *events.Log
	log            hclog.Logger

	rounds sync.Mutex // one round of IO at a time; guards what follows; taken before mu
	ends   Ends
	topics map[string]*copied  // by source topic
	before map[string][]Hop    // by source topic: how they came there, as last seen, also long ago
	stored map[string]Marker   // this route's own, by target topic, as last seen
	texts  map[string]string   // of stored
	sides  map[string]*failing // by what fails
	cut    map[string]bool     // target topics whose marker did not fit
	until  time.Time           // patience ends; zero before the first topic
	sieves map[string]*Sieve   // by source topic
	asked  chan struct{}       // has one if a sieve was asked

	mu      sync.Mutex
	refused map[string]*RefusedError // by source topic; guarded by mu
}

// copied is a topic that the route mirrors, or would.
type copied struct {
	target   string
	since    int64 // ms since 1970
	declared bool  // its marker was written, or could not be
	ids      ids   // producer ids that it is, or was, written with
	leaves   ids   // those of what was left out
}

// failing is something that can't be done.
type failing struct {
	since time.Time
	told  bool
}

// NewWatch does no IO.
func NewWatch(cfg Config, source, target Notes, log hclog.Logger, happened *events.Log) *Watch {
	return &Watch{
		cfg: cfg, source: source, target: target, events: happened, log: log, topics: map[string]*copied{}, before: map[string][]Hop{},
		stored: map[string]Marker{}, texts: map[string]string{}, sides: map[string]*failing{}, cut: map[string]bool{}, refused: map[string]*RefusedError{},
		sieves: map[string]*Sieve{}, asked: make(chan struct{}, 1),
	}
}

// Admit judges topics before anything is done for them: source topic → target topic. Those that are new are looked at, for the others the last
// answer holds. It waits a while for clusters that don't answer; what can't be found out stops nobody, and is told.
func (w *Watch) Admit(ctx context.Context, ends Ends, topics map[string]string) map[string]*RefusedError {
	w.rounds.Lock()
	defer w.rounds.Unlock()
	if ends.Source == "" || ends.Target == "" {
		return nil
	}
	w.ends = ends
	fresh := false
	for topic, target := range topics {
		if known := w.topics[topic]; known == nil || known.target != target {
			w.topics[topic] = &copied{target: target, since: time.Now().UnixMilli()}
			fresh = true
		}
	}
	if fresh {
		w.patiently(ctx, w.look)
		w.judge()
	}
	return w.among(topics)
}

// Declare writes the markers of topics that were admitted and have none yet, once their targets exist. Who writes first and looks then can't miss
// another one who does the same: so it judges again.
func (w *Watch) Declare(ctx context.Context, topics map[string]string) map[string]*RefusedError {
	w.rounds.Lock()
	defer w.rounds.Unlock()
	fresh := false
	for topic := range topics {
		if c := w.topics[topic]; c != nil && !c.declared {
			c.declared, fresh = true, true
		}
	}
	if !fresh || len(w.wanted(topics, false)) == 0 {
		return w.among(topics)
	}
	w.patiently(ctx, func(ctx context.Context) error { return w.write(ctx, w.wanted(topics, false)) })
	w.patiently(ctx, w.look)
	w.judge()
	if gone := w.wanted(topics, false); len(gone) > 0 { // refused now: the marker goes, or the others would think that it runs
		_ = w.write(ctx, gone) // told there; Review tries again
	}
	return w.among(topics)
}

// Review looks again at the topics that are still mirrored here, renews their markers, and tells which are refused now. Those that are not mirrored
// here any more are forgotten; where another worker may go on with them, their markers stay until they are stale.
func (w *Watch) Review(ctx context.Context, producer int64, mirrored func() map[string]bool) (refused []string) {
	w.rounds.Lock()
	defer w.rounds.Unlock()
	here := mirrored()
	maps.DeleteFunc(w.topics, func(topic string, _ *copied) bool { return !here[topic] })
	if len(w.topics) == 0 {
		return nil
	}
	w.ends.Producer = producer
	_ = w.look(ctx) // told there; what was seen last holds
	if ctx.Err() != nil {
		return nil
	}
	w.judge()
	all := make(map[string]string, len(w.topics))
	for topic, c := range w.topics {
		all[topic] = c.target
	}
	// A marker that names producer ids is needed as long as their batches are in the log.
	if wanted := w.wanted(all, w.cfg.Alone && !w.cfg.Drop); len(wanted) > 0 {
		_ = w.write(ctx, wanted) // told there, and tried again by the next
	}
	return slices.Sorted(maps.Keys(w.Refused()))
}

// Refused gives the topics that are refused, with the reasons.
func (w *Watch) Refused() map[string]*RefusedError {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.refused)
}

func (w *Watch) among(topics map[string]string) map[string]*RefusedError {
	found := w.Refused()
	maps.DeleteFunc(found, func(topic string, _ *RefusedError) bool { _, asked := topics[topic]; return !asked })
	return found
}

// patiently tries until it succeeds, what fails would fail again, or patience is at its end.
func (w *Watch) patiently(ctx context.Context, try func(context.Context) error) {
	if w.until.IsZero() {
		w.until = time.Now().Add(patience)
	}
	ctx, cancel := context.WithTimeout(ctx, max(time.Until(w.until), attempt))
	defer cancel()
	for {
		err := try(ctx)
		if class := cluster.Classify(err); err == nil || class != cluster.Unreachable && class != cluster.NotFound {
			return
		}
		if !rest(ctx) {
			return
		}
	}
}

// rest lets the time pass before something is tried again; false: ctx has ended.
func rest(ctx context.Context) bool {
	pause := time.NewTimer(again)
	defer pause.Stop()
	select {
	case <-pause.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// look reads how the source's topics came there, and the route's own markers. What can't be read stays as it was seen last.
func (w *Watch) look(ctx context.Context) error {
	err := w.lookBack(ctx)
	texts, ownErr := w.target.GroupNotes(ctx, Group(w.cfg.Route))
	if w.answered(ownUnread, ownErr) {
		w.recall(texts)
	}
	return cmp.Or(err, ownErr)
}

// lookBack reads how the source's topics came there, and tells the sieves.
func (w *Watch) lookBack(ctx context.Context) error {
	asked := w.sought()
	before, err := w.origins(ctx)
	if w.answered(unread, err) {
		w.before = before
		w.teach(asked)
	}
	return err
}

// recall takes over the route's own markers as they are stored, by target topic.
func (w *Watch) recall(texts map[string]string) {
	w.texts, w.stored = map[string]string{}, map[string]Marker{}
	for topic, text := range texts {
		w.texts[topic] = text
		if m, err := Parse(text); err == nil { // else it is written anew
			w.stored[topic] = m
		}
	}
}

// Preview judges topics, source topic → target topic, as Admit would for a route that began now, or goes on from its own markers. It writes
// nothing, tells nothing and waits for nobody: what can't be read is the error. The Watch is for nothing else then.
func (w *Watch) Preview(ctx context.Context, ends Ends, topics map[string]string) (map[string]*RefusedError, error) {
	w.rounds.Lock()
	defer w.rounds.Unlock()
	w.ends = ends
	for topic, to := range topics {
		w.topics[topic] = &copied{target: to, since: time.Now().UnixMilli()}
	}
	var err error
	if w.before, err = w.origins(ctx); err != nil {
		return nil, fmt.Errorf("read the markers on the source: %w", err)
	}
	if err = w.recallIfAny(ctx); err != nil {
		return nil, fmt.Errorf("read this route's markers on the target: %w", err)
	}
	w.judge()
	return w.Refused(), nil
}

// recallIfAny reads the route's own markers if it has left any. Brokers make room for a group's offsets once it is asked for.
func (w *Watch) recallIfAny(ctx context.Context) error {
	own := Group(w.cfg.Route)
	groups, err := w.target.Groups(ctx, own)
	if err != nil || !slices.Contains(groups, own) {
		return err
	}
	texts, err := w.target.GroupNotes(ctx, own)
	w.recall(texts)
	return err
}

// origins reads all markers on the source.
func (w *Watch) origins(ctx context.Context) (map[string][]Hop, error) {
	groups, err := w.source.Groups(ctx, GroupPrefix)
	if err != nil {
		return nil, err
	}
	before := map[string][]Hop{}
	for _, group := range groups {
		notes, err := w.source.GroupNotes(ctx, group)
		if err != nil {
			return nil, err
		}
		for topic, text := range notes {
			m, err := Parse(text)
			if err != nil {
				w.log.Debug("a marker can't be read", "group", group, "topic", topic, "err", err)
				continue
			}
			before[topic] = append(before[topic], m.Hops...)
		}
	}
	return before, nil
}

// fresh are the hops that were renewed lately. A clock that is ahead makes none stale.
func fresh(hops []Hop) []Hop {
	oldest := time.Now().Add(-staleAfter).UnixMilli()
	return slices.DeleteFunc(slices.Clone(hops), func(h Hop) bool { return h.Renewed < oldest })
}

// own is the hop that says of a topic how this route copies it.
func (w *Watch) own(topic string, c *copied) Hop {
	h := Hop{
		Route: w.cfg.Route, Cluster: w.ends.Source, Topic: topic, Since: c.since, Takes: w.cfg.Takes, Renewed: time.Now().UnixMilli(),
		Blind: w.sides[unread] != nil, Drop: w.cfg.Drop, Producers: c.ids.with(), Leaves: c.leaves.with(),
	}
	if w.ends.Producer >= 0 {
		h.Producers = c.ids.with(w.ends.Producer)
	}
	behind := mapped(fresh(w.before[topic]), func(h Hop, _ int) (Hop, bool) {
		h.Renewed, h.Producers, h.Leaves = 0, nil, nil // they matter to who reads this hop's target alone
		return h, true
	}, 0)
	h.Before = carried(behind, []Hop{h}, 1)
	return h
}

// mine says that a stored hop is this route's own copying of a topic.
func (w *Watch) mine(h Hop, topic string) bool {
	return h.Route == w.cfg.Route && h.Cluster == w.ends.Source && h.Topic == topic
}

// judge comes to an answer on every topic.
func (w *Watch) judge() {
	refused := map[string]*RefusedError{}
	for topic, c := range w.topics {
		w.remember(topic, c)
		hop := w.own(topic, c)
		hop.Before = fresh(w.before[topic])
		if why := Judge(Copying{Hop: hop, Target: Place{w.ends.Target, c.target}}); why != nil {
			refused[topic] = why
		}
	}
	w.mu.Lock()
	w.refused = refused
	w.mu.Unlock()
}

// remember takes over what an earlier process has said of a topic. What it began counts from then on, unless it did something else.
func (w *Watch) remember(topic string, c *copied) {
	for _, h := range w.stored[c.target].Hops {
		if !w.mine(h, topic) {
			continue
		}
		if h.Drop == w.cfg.Drop {
			c.since = min(c.since, h.Since)
		}
		c.ids, c.leaves = c.ids.with(h.Producers...), c.leaves.with(h.Leaves...)
	}
}

// wanted are the markers that must be written so that they say what holds for these topics; with tidy also of targets that are no longer written.
func (w *Watch) wanted(topics map[string]string, tidy bool) map[string]string {
	refused := w.Refused()
	hops := map[string][]Hop{}
	for _, target := range topics {
		hops[target] = nil
	}
	if tidy {
		for target := range w.stored {
			hops[target] = nil
		}
	}
	for target := range hops {
		for _, h := range fresh(w.stored[target].Hops) {
			if c := w.topics[h.Topic]; w.mine(h, h.Topic) && (c != nil && c.target == target || tidy && w.abandoned(h)) {
				continue // it is made anew, or is to go
			}
			hops[target] = append(hops[target], h)
		}
	}
	for _, topic := range slices.Sorted(maps.Keys(w.topics)) {
		c := w.topics[topic]
		if _, asked := hops[c.target]; asked && c.declared && refused[topic] == nil { // before, its target may not exist
			hops[c.target] = append(hops[c.target], w.renewed(topic, c))
		}
	}
	out := map[string]string{}
	for target, hops := range hops {
		if text := w.marker(target, hops); text != w.texts[target] {
			out[target] = text
		}
	}
	return out
}

// marker is the text of a target's marker. That not all has room in it is told once.
func (w *Watch) marker(target string, hops []Hop) string {
	slices.SortFunc(hops, func(a, b Hop) int { return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Topic, b.Topic)) })
	text, cut := Format(hops, MaxBytes)
	if cut && w.cfg.Drop {
		text, cut = w.shorter(target, hops)
	}
	if cut && !w.cut[target] {
		w.log.Warn("a topic came here on more ways than a marker can tell: loops of many clusters may not be noticed", "topic", target)
	}
	w.cut[target] = cut
	return text
}

// abandoned says that a stored hop of this source, of a topic that is not mirrored, was written with the positions that this process goes on from.
func (w *Watch) abandoned(h Hop) bool {
	return w.ends.Producer >= 0 && slices.Contains(h.Producers, w.ends.Producer)
}

// renewed is a topic's own hop, with the time of the stored one as long as that is not old: what has not changed is not written.
func (w *Watch) renewed(topic string, c *copied) Hop {
	now := w.own(topic, c)
	for _, h := range w.stored[c.target].Hops {
		if w.mine(h, topic) && now.Renewed-h.Renewed < renewAfter.Milliseconds() {
			now.Renewed = h.Renewed
		}
	}
	return now
}

func (w *Watch) write(ctx context.Context, notes map[string]string) error {
	err := w.target.SaveGroupNotes(ctx, Group(w.cfg.Route), notes)
	if !w.answered(unwritten, err) {
		return err
	}
	for topic, text := range notes {
		w.texts[topic] = text
		w.stored[topic], _ = Parse(text) // an empty one is none
	}
	return nil
}

// What may fail, as it is told.
const (
	unread    = "the markers on the source can't be read: topics that come from this route's target are not noticed"
	ownUnread = "this route's markers on the target can't be read: after a restart it counts as the newest route of a loop"
	unwritten = "this route's markers on the target can't be written: other routes don't notice loops through it"
)

// answered notes whether something could be done, and tells when it can't, and when it can again. What passes by itself is told after a while.
func (w *Watch) answered(what string, err error) bool {
	was := w.sides[what]
	if err == nil {
		delete(w.sides, what)
		if was != nil && was.told {
			w.log.Info("markers of loops work again", "was", what)
		}
		return true
	}
	if errors.Is(err, context.Canceled) {
		return false
	}
	if was == nil {
		was = &failing{since: time.Now()}
		w.sides[what] = was
	}
	class := cluster.Classify(err)
	if passes := class == cluster.Unreachable || class == cluster.NotFound; !was.told && (!passes || time.Since(was.since) > tellAfter) {
		was.told = true
		w.events.Emit(events.Event{Type: events.LoopsUnseen, Severity: events.Warning, Message: what, Reason: err.Error()})
	}
	return false
}
