package letters

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/causeway-mirror/causeway/batch"
	"github.com/causeway-mirror/causeway/internal/backoff"
	"github.com/causeway-mirror/causeway/internal/slab"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/wire"
)

// GroupPrefix begins the names of the groups in whose metadata it is kept how far letters were put back; the route's name follows.
const GroupPrefix = "causeway.dead-letters."

var (
	// ErrBusy says that letters are being put back by this process already.
	ErrBusy = errors.New("dead letters are being put back already")
	// ErrNone says that there is no such dead-letter topic.
	ErrNone = errors.New("there is no such dead-letter topic")
)

// Notes keep texts by topic in a group's metadata on the target; *cluster.Admin does.
type Notes interface {
	GroupNotes(ctx context.Context, group string) (map[string]string, error)
	SaveGroupNotes(ctx context.Context, group string, notes map[string]string) error
}

// Result counts what became of the letters of a call.
type Result struct {
	PutBack int64 // stand on their target topics again
	Refused int64 // are refused still, and stand at the end of the dead-letter topic again
	Foreign int64 // are passed over: they are no dead letters of this topic
}

// Box puts the dead letters of a route back. For concurrent use.
type Box struct {
	group  string
	client *wire.Client // of the target
	named  func(ctx context.Context, source string, id int64) error
	notes  Notes
	turn   chan struct{}
}

// NewBox does no IO. named is told of each producer id with which letters of a source topic are to be put back, before anything is; an error of it
// keeps them where they are. nil: nobody must be told.
func NewBox(routeName string, client *wire.Client, notes Notes, named func(ctx context.Context, source string, id int64) error) *Box {
	return &Box{group: GroupPrefix + routeName, client: client, notes: notes, named: named, turn: make(chan struct{}, 1)}
}

const (
	fetchBytes  = 1 << 20
	noteVersion = 1
)

// note is what is kept of a dead-letter topic.
type note struct {
	Version int           `json:"v"`
	ID      route.TopicID `json:"id"` // the topic's, zero where brokers have none
	// Next are the offsets at which to go on, by source topic and by partition of the dead-letter topic.
	Next map[string]map[int32]route.Offset `json:"next"`
}

// PutBack writes the records of a source topic that stand on a dead-letter topic now to where they were refused, without what was added to them, and
// in the order of each of its partitions. One that is refused again goes to the end of the dead-letter topic and holds up no other. Where it ends
// with an error, the result has what was done before. Errors: ErrBusy, ErrNone, what the brokers say.
func (b *Box) PutBack(ctx context.Context, source, topic string) (Result, error) {
	select {
	case b.turn <- struct{}{}:
	default:
		return Result{}, ErrBusy
	}
	defer func() { <-b.turn }()
	w, err := b.begin(ctx, source, topic)
	if err != nil {
		return Result{}, err
	}
	if w.id, w.epoch, err = b.client.InitProducerID(ctx); err != nil {
		return Result{}, fmt.Errorf("target: %w", err)
	}
	if err := b.name(ctx, source, w.id); err != nil {
		return Result{}, err
	}
	w.do = w.one
	err = w.run(ctx)
	return w.result, err
}

// begin finds out where letters stand, and how far they were put back.
func (b *Box) begin(ctx context.Context, source, topic string) (*round, error) {
	m, err := b.client.Metadata(ctx, topic)
	if err != nil {
		return nil, fmt.Errorf("target: %w", err)
	}
	t := m.Topics[topic]
	if len(t.Partitions) == 0 {
		return nil, fmt.Errorf("%w: %s: %w", ErrNone, topic, orUnknown(t.Err))
	}
	kept, err := b.kept(ctx, topic, t.ID)
	if err != nil {
		return nil, err
	}
	if kept.Next[source] == nil {
		kept.Next[source] = map[int32]route.Offset{}
	}
	w := &round{box: b, source: source, kept: kept, next: map[route.Partition]int32{}, pool: slab.NewPool(slab.NewBudget(fetchBytes), fetchBytes)}
	leaders := map[route.Partition]int32{}
	for i := range t.Partitions {
		leaders[route.Partition{Topic: topic, Partition: t.Partitions[i].Partition}] = t.Partitions[i].Leader
	}
	starts, err := b.client.ListOffsets(ctx, leaders, wire.AtStart, false)
	if err != nil {
		return nil, fmt.Errorf("target: %w", err)
	}
	ends, err := b.client.ListOffsets(ctx, leaders, wire.AtEnd, false)
	if err != nil {
		return nil, fmt.Errorf("target: %w", err)
	}
	for _, p := range slices.SortedFunc(maps.Keys(leaders), route.Partition.Compare) {
		if err := errors.Join(starts[p].Err, ends[p].Err); err != nil {
			return nil, fmt.Errorf("target: %s: %w", p, err)
		}
		w.boxes = append(w.boxes, stretch{p, leaders[p], max(kept.Next[source][p.Partition], starts[p].Offset), ends[p].Offset})
	}
	return w, nil
}

func (b *Box) name(ctx context.Context, source string, id int64) error {
	if b.named == nil {
		return nil
	}
	return b.named(ctx, source, id)
}

var errUnknown = errors.New("does not exist, or we may not see it")

func orUnknown(err error) error {
	if err == nil {
		return errUnknown
	}
	return err
}

// kept reads how far letters were put back. What was kept of another topic of the same name does not count.
func (b *Box) kept(ctx context.Context, topic string, id route.TopicID) (note, error) {
	fresh := note{Version: noteVersion, ID: id, Next: map[string]map[int32]route.Offset{}}
	all, err := b.notes.GroupNotes(ctx, b.group)
	if err != nil {
		return fresh, fmt.Errorf("read how far dead letters were put back: %w", err)
	}
	text, ok := all[topic]
	if !ok {
		return fresh, nil
	}
	was := note{}
	err = json.Unmarshal([]byte(text), &was)
	if err == nil && was.Version != noteVersion {
		err = fmt.Errorf("v: %d: must be %d", was.Version, noteVersion) //nolint:err113 // only ever shown
	}
	if err != nil {
		return fresh, fmt.Errorf("group %s, topic %s: metadata %q: %w", b.group, topic, text, err)
	}
	if was.ID != id || was.Next == nil {
		return fresh, nil
	}
	return was, nil
}

// round is one call of PutBack.
type round struct {
	box    *Box
	source string
	kept   note
	pool   *slab.Pool
	id     int64 // of the producer
	epoch  int16
	next   map[route.Partition]int32 // sequences
	result Result
	boxes  []stretch
	// do is done to each record, in order; looks says that it leaves the letters where they are.
	do    func(ctx context.Context, p route.Partition, b batch.Batch, r *batch.Record) error
	looks bool
}

// stretch is what is to be read of a partition of the dead-letter topic: what was there when the call began.
type stretch struct {
	of       route.Partition
	broker   int32
	from, to route.Offset
}

// run goes through all letters.
func (w *round) run(ctx context.Context) error {
	for _, s := range w.boxes {
		if err := w.empty(ctx, s); err != nil {
			return fmt.Errorf("target: %s: %w", s.of, err)
		}
	}
	return nil
}

// empty goes through the letters of one partition.
func (w *round) empty(ctx context.Context, s stretch) error {
	p, at, end := s.of, s.from, s.to
	if at >= end {
		return nil
	}
	conn, err := w.box.client.Dial(ctx, s.broker)
	if err != nil {
		return err
	}
	defer conn.Close()
	for at < end {
		before := w.result
		next, err := w.fetch(ctx, conn, p, at, end)
		if next > at && !w.looks {
			w.kept.Next[w.source][p.Partition] = next
			if w.result != before || next >= end {
				err = errors.Join(err, w.save(ctx, p.Topic))
			}
		}
		if err != nil {
			return err
		}
		if next == at {
			return fmt.Errorf("nothing can be read at %d of %d", at, end) //nolint:err113 // can't be decided on
		}
		at = next
	}
	return nil
}

// saveTimeout is for keeping what was done, also when the caller has gone.
const saveTimeout = 10 * time.Second

func (w *round) save(ctx context.Context, topic string) error {
	text, err := json.Marshal(w.kept)
	if err != nil {
		return fmt.Errorf("keep how far dead letters were put back: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	defer cancel()
	if err := w.box.notes.SaveGroupNotes(ctx, w.box.group, map[string]string{topic: string(text)}); err != nil {
		return fmt.Errorf("keep how far dead letters were put back: %w", err)
	}
	return nil
}

// fetch goes through what one fetch from `at` brings, and returns the position behind that.
func (w *round) fetch(ctx context.Context, conn *wire.Conn, p route.Partition, at, end route.Offset) (route.Offset, error) {
	a, s, err := conn.FetchOne(ctx, wire.One{Partition: p, At: at, Pool: w.pool, Bytes: fetchBytes})
	if err != nil {
		return at, err
	}
	defer s.Release()
	for records := a.RecordBatches; at < end; {
		b, rest, err := batch.Next(records)
		if errors.Is(err, io.EOF) || errors.Is(err, batch.ErrTruncated) {
			return at, nil
		}
		if err == nil {
			err = b.Check()
		}
		if err != nil {
			return at, err
		}
		if at, err = w.batch(ctx, p, b, at); err != nil {
			return at, err
		}
		records = rest
	}
	return at, nil
}

// batch goes through the records of a batch, from an offset on, and returns the offset behind those that are done.
func (w *round) batch(ctx context.Context, p route.Partition, b batch.Batch, at route.Offset) (route.Offset, error) {
	if b.NextOffset() <= at || b.Control() {
		return max(at, b.NextOffset()), nil
	}
	var r batch.Reader
	if err := r.Reset(b); err != nil {
		return at, err
	}
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			return b.NextOffset(), nil
		}
		if err != nil {
			return at, err
		}
		if rec.Offset < at {
			continue
		}
		if err := w.do(ctx, p, b, rec); err != nil {
			return at, err
		}
		at = rec.Offset + 1
	}
}

// one puts one letter back, or behind all others.
func (w *round) one(ctx context.Context, p route.Partition, b batch.Batch, rec *batch.Record) error {
	l, ok := open(rec)
	if !ok || l.source != w.source {
		w.result.Foreign++
		return nil
	}
	record, err := alone(b, rec, func(r *batch.Record) { r.Headers, r.Timestamp = r.Headers[:l.own], l.timestamp })
	if err != nil {
		return err
	}
	switch err = w.write(ctx, l.target, record); {
	case err == nil:
		w.result.PutBack++
		return nil
	case !refused(err):
		return fmt.Errorf("put the record at %d back: %w", rec.Offset, err)
	}
	again, err := alone(b, rec, func(*batch.Record) {})
	if err == nil {
		err = w.write(ctx, p, again)
	}
	if err != nil {
		return fmt.Errorf("put the record at %d, which is refused again, behind the others: %w", rec.Offset, err)
	}
	w.result.Refused++
	return nil
}

// refused says that a target does not take a record for what it is.
func refused(err error) bool {
	return errors.Is(err, wire.ErrTooLarge) || errors.Is(err, kerr.InvalidTimestamp) || errors.Is(err, kerr.InvalidRecord)
}

const (
	writeTries = 8
	writeBase  = 100 * time.Millisecond
	writeLimit = 2 * time.Second
)

// write writes a batch of one record with the producer's next sequence, by which a repeat is known.
func (w *round) write(ctx context.Context, to route.Partition, b batch.Batch) error {
	b.Patch(batch.Producer{ID: w.id, Epoch: w.epoch, Sequence: w.next[to]})
	pause := backoff.New(writeBase, writeLimit, rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())))
	for {
		err := w.tryWrite(ctx, to, b)
		if err == nil {
			w.next[to]++
			return nil
		}
		if errors.Is(err, wire.ErrTooLarge) || errors.Is(err, wire.ErrRefused) || pause.Failures() >= writeTries || pause.Wait(ctx) != nil {
			return err
		}
	}
}

func (w *round) tryWrite(ctx context.Context, to route.Partition, b batch.Batch) error {
	m, err := w.box.client.Metadata(ctx, to.Topic)
	if err != nil {
		return err
	}
	for _, p := range m.Topics[to.Topic].Partitions {
		if p.Partition == to.Partition && p.Leader >= 0 {
			return w.box.client.Write(ctx, p.Leader, to, b)
		}
	}
	return fmt.Errorf("%s has no leader: %w", to, orUnknown(m.Topics[to.Topic].Err))
}
