package controller

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/causeway-mirror/causeway/route"
)

// Sample is what is known of one partition's lag.
type Sample struct {
	At        time.Time    // of the measurement
	End       route.Offset // that a mirror could reach; NoOffset when not known
	Committed route.Offset // next offset to mirror, as stored; NoOffset when not known
	Records   int64        // End - Committed, at least 0; -1 when one of them is not known
	// Time is how long ago, by own observation, the end first lay beyond the committed position.
	Time time.Duration
	// Still is how long the committed position has stayed where it is although there was more; 0 while it advances or is at the end.
	Still time.Duration
}

// mark is an end at a time.
type mark struct {
	at  time.Time
	end route.Offset
}

// mostMarks bounds what is remembered of a partition; beyond it every other mark goes, so that a long lag is known more coarsely.
const mostMarks = 64

// track is what is remembered of one partition.
type track struct {
	last  Sample
	known time.Time // when Records was known last
	marks []mark    // ends that lie beyond the committed position, oldest first; of equal ends the first
	still time.Time // since when nothing was committed although there was more; zero = it advances
	rate  float64   // records a second that the source gets, smoothed
	moves int       // made for lack of progress since the last progress
	moved time.Time
	asked time.Time // when the committed position was last asked for
}

// lagTable holds the tracks of a term.
type lagTable struct {
	cfg Lag
	giv Stuck // when to give another worker a try

	mu     sync.Mutex
	tracks map[route.Partition]*track
	ran    time.Time // end of the last run
	missed int       // partitions that the last run could not measure
}

func newLagTable(cfg Config) *lagTable {
	return &lagTable{cfg: cfg.Lag, giv: cfg.Stuck, tracks: map[route.Partition]*track{}}
}

// measure reads ends and committed positions of every partition, mirrored at the moment or not, but for the positions of those that are settled.
func (t *Term) measure(ctx context.Context) error {
	err := t.takeLags(ctx)
	if err != nil {
		t.lag.expire(time.Now(), t.metrics)
	}
	return err
}

func (t *Term) takeLags(ctx context.Context) error {
	state := t.cluster.State()
	parts := state.partitions()
	ends, err := t.deps.Source.Ends(ctx, parts)
	if err != nil {
		return fmt.Errorf("read the source's ends: %w", err)
	}
	unsettled, committed := t.lag.unsettled(parts, ends, time.Now())
	stored, err := t.deps.Positions.Load(ctx, unsettled)
	if err != nil && len(stored) == 0 {
		return fmt.Errorf("read committed positions: %w", err)
	}
	if err != nil { // of some partitions; the others' lag is known all the same
		t.deps.Log.Warn("committed positions can't be read", "error", err)
	}
	for p, c := range stored {
		committed[p] = c.SourceOffset
	}
	now := time.Now()
	t.record(parts, ends, committed, now)
	if slices.ContainsFunc(parts, func(p route.Partition) bool { return !state.Paused(p.Topic) && t.lag.stuck(p, now) }) {
		t.crew.again(now)
		t.wake()
	}
	return nil
}

// askAgain is after how long the position of a partition that was at its end is read although the source has not grown: somebody may have set it
// back by hand.
const askAgain = time.Minute

// unsettled gives the partitions whose committed positions are to be read, and the positions of the others: those that had reached the end, which
// has not moved since. With thousands of idle partitions, to read all of them each time would be most of what ZooKeeper does.
func (l *lagTable) unsettled(parts []route.Partition, ends map[route.Partition]route.Offset, now time.Time) ([]route.Partition, map[route.Partition]route.Offset) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var ask []route.Partition
	committed := make(map[route.Partition]route.Offset, len(parts))
	for _, p := range parts {
		tr := l.tracks[p]
		if end, ok := ends[p]; ok && tr != nil && tr.last.Records == 0 && tr.last.End == end && now.Sub(tr.asked) < askAgain {
			committed[p] = tr.last.Committed
			continue
		}
		ask = append(ask, p)
		if tr != nil {
			tr.asked = now
		}
	}
	return ask, committed
}

// record takes a measurement of all partitions.
func (t *Term) record(parts []route.Partition, ends, stored map[route.Partition]route.Offset, now time.Time) {
	t.lag.mu.Lock()
	defer t.lag.mu.Unlock()
	t.lag.missed = 0
	for _, p := range parts {
		end, ok := ends[p]
		if !ok {
			end = route.NoOffset
			t.lag.missed++
		}
		committed, ok := stored[p]
		if !ok {
			committed = route.NoOffset
		}
		if s := t.lag.takeLocked(p, end, committed, now); s.Records >= 0 {
			t.lag.tracks[p].known = now
			t.metrics.lagRecords.WithLabelValues(p.Topic, partitionName(p.Partition)).Set(float64(s.Records))
		}
	}
	t.lag.keepLocked(parts, t.metrics)
	t.lag.expireLocked(now, t.metrics)
	t.lag.ran = now
	t.tallies.lagRuns.Add(1)
}

// takeLocked adds a measurement.
func (l *lagTable) takeLocked(p route.Partition, end, committed route.Offset, now time.Time) Sample {
	tr := l.tracks[p]
	if tr == nil {
		tr = &track{last: Sample{End: route.NoOffset, Committed: route.NoOffset, Records: -1}}
		l.tracks[p] = tr
	}
	was := tr.last
	s := Sample{At: now, End: end, Committed: committed, Records: -1}
	if end >= 0 && committed >= 0 {
		s.Records = max(0, int64(end-committed))
	}
	if dt := now.Sub(was.At).Seconds(); was.End >= 0 && end >= was.End && dt > 0 {
		tr.rate += 0.3 * (float64(end-was.End)/dt - tr.rate)
	}
	tr.remember(end, committed, now)
	if s.Records > 0 && len(tr.marks) > 0 {
		s.Time = now.Sub(tr.marks[0].at)
	}
	switch {
	case s.Records <= 0 || committed != was.Committed:
		tr.still = time.Time{}
		if s.Records == 0 || s.Records > 0 && was.Committed >= 0 { // it was seen to advance
			tr.moves, tr.moved = 0, time.Time{}
		}
	case tr.still.IsZero():
		tr.still = was.At
	}
	if !tr.still.IsZero() {
		s.Still = now.Sub(tr.still)
	}
	tr.last = s
	return s
}

// remember keeps the ends that the committed position has not reached.
func (tr *track) remember(end, committed route.Offset, now time.Time) {
	tr.marks = slices.DeleteFunc(tr.marks, func(m mark) bool { return m.end <= committed || m.end > end })
	if end > committed && (len(tr.marks) == 0 || tr.marks[len(tr.marks)-1].end < end) {
		tr.marks = append(tr.marks, mark{at: now, end: end})
	}
	if len(tr.marks) <= mostMarks {
		return
	}
	// The time of an end must not be taken for later than it was, so the later one of each pair goes.
	thin := tr.marks[:0]
	for i := 0; i < len(tr.marks); i += 2 {
		m := tr.marks[i]
		if i+1 < len(tr.marks) {
			m.end = tr.marks[i+1].end
		}
		thin = append(thin, m)
	}
	tr.marks = thin
}

// toldFor is how long at least the figure of a lag stands that is not known any more.
const toldFor = time.Minute

// expire takes back the figures of what has not been known for too long, and what is told of it. One measurement that fails is no news, and a gap
// begins alerts anew.
func (l *lagTable) expire(now time.Time, m *metrics) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expireLocked(now, m)
}

func (l *lagTable) expireLocked(now time.Time, m *metrics) {
	for p, tr := range l.tracks {
		if now.Sub(tr.known) > max(toldFor, 3*l.cfg.Interval) {
			m.lagRecords.DeleteLabelValues(p.Topic, partitionName(p.Partition))
			tr.last.Records, tr.last.Time = -1, 0
		}
	}
}

// keepLocked forgets partitions that are no longer mirrored.
func (l *lagTable) keepLocked(parts []route.Partition, m *metrics) {
	if len(l.tracks) == len(parts) {
		return
	}
	keep := make(map[route.Partition]bool, len(parts))
	for _, p := range parts {
		keep[p] = true
	}
	for p := range l.tracks {
		if !keep[p] {
			delete(l.tracks, p)
			m.lagRecords.DeleteLabelValues(p.Topic, partitionName(p.Partition))
		}
	}
}

// Lag gives the last sample of a partition; false when there is none.
func (t *Term) Lag(p route.Partition) (Sample, bool) {
	t.lag.mu.Lock()
	defer t.lag.mu.Unlock()
	if tr := t.lag.tracks[p]; tr != nil {
		return tr.last, true
	}
	return Sample{}, false
}

// Lags gives the last samples of all partitions.
func (t *Term) Lags() map[route.Partition]Sample {
	t.lag.mu.Lock()
	defer t.lag.mu.Unlock()
	out := make(map[route.Partition]Sample, len(t.lag.tracks))
	for p, tr := range t.lag.tracks {
		out[p] = tr.last
	}
	return out
}

// LagRun says when lag was measured last, and how many partitions could not be; the zero time when it never was.
func (t *Term) LagRun() (at time.Time, missed int) {
	t.lag.mu.Lock()
	defer t.lag.mu.Unlock()
	return t.lag.ran, t.lag.missed
}

// Lagging gives the sample of a partition that is further behind than the configuration allows. Its Time is what it takes to produce as much
// as it is behind by, where that is known, else the time that the lag was observed for.
func (t *Term) Lagging(p route.Partition) (Sample, bool) { return t.lag.lagging(p, time.Now()) }

func (l *lagTable) lagging(p route.Partition, now time.Time) (Sample, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	tr := l.tracks[p]
	if tr == nil || now.Sub(tr.last.At) > l.cfg.Valid || tr.last.Records <= l.cfg.MinRecords {
		return Sample{}, false
	}
	s := tr.last
	if tr.rate > 0 {
		s.Time = max(s.Time, time.Duration(min(float64(s.Records)/tr.rate, maxLagSeconds)*float64(time.Second)))
	}
	return s, s.Time > l.cfg.MinTime
}

// maxLagSeconds keeps a lag that nothing adds to from overflowing a duration: a year.
const maxLagSeconds = 365 * 24 * 3600

// noProgressAfter is how long a partition may stand still before it is reported.
const noProgressAfter = 10 * time.Minute

// Still lists the partitions that have not advanced for ten minutes although the source has more, in order.
func (t *Term) Still() []route.Partition {
	t.lag.mu.Lock()
	defer t.lag.mu.Unlock()
	var out []route.Partition
	for p, tr := range t.lag.tracks {
		if tr.last.Still > noProgressAfter {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, route.Partition.Compare)
	return out
}

// stuck says whether another worker should try: no progress for long enough, not tried too often nor too lately.
func (l *lagTable) stuck(p route.Partition, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	tr := l.tracks[p]
	return tr != nil && l.giv.After > 0 && tr.last.Still > l.giv.After && tr.moves < l.giv.MaxMoves && now.Sub(tr.moved) > l.giv.After
}

// moved notes that another worker tries.
func (l *lagTable) moved(p route.Partition, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if tr := l.tracks[p]; tr != nil {
		tr.moves++
		tr.moved = now
	}
}

// waitEvery is how often a wait for a lag looks.
const waitEvery = 500 * time.Millisecond

// CaughtUp returns once the committed positions of a topic (all for "") lie within lag offsets of the source's ends as they were at the call.
// When ctx ends first, ok is false and present is what remained. A position that has reached its end is not read again: with thousands of partitions
// and some who wait, that would be most of what ZooKeeper does. ErrNoSource, ErrNoPositions, *NotFoundError.
func (t *Term) CaughtUp(ctx context.Context, topic string, lag int64) (present int64, ok bool, err error) {
	if t.deps.Source == nil {
		return 0, false, ErrNoSource
	}
	if t.deps.Positions == nil {
		return 0, false, ErrNoPositions
	}
	s := t.cluster.State()
	if _, there := s.Topics[topic]; topic != "" && !there {
		return 0, false, &NotFoundError{What: "topic", Name: topic}
	}
	parts := slices.DeleteFunc(s.partitions(), func(p route.Partition) bool { return topic != "" && p.Topic != topic })
	ends, err := t.deps.Source.Ends(ctx, parts)
	if err != nil {
		return 0, false, fmt.Errorf("read the source's ends: %w", err)
	}
	if len(ends) < len(parts) {
		return 0, false, fmt.Errorf("read the source's ends: %d of %d partitions can't be asked", len(parts)-len(ends), len(parts))
	}
	ticker := time.NewTicker(waitEvery)
	defer ticker.Stop()
	for {
		stored, err := t.deps.Positions.Load(ctx, parts)
		if err != nil {
			return present, false, fmt.Errorf("read committed positions: %w", err)
		}
		present = 0
		parts = slices.DeleteFunc(parts, func(p route.Partition) bool {
			left := max(0, int64(ends[p]-max(0, stored[p].SourceOffset)))
			present += left
			return left == 0
		})
		if present <= lag {
			return present, true, nil
		}
		select {
		case <-ctx.Done():
			return present, false, nil
		case <-ticker.C:
		}
	}
}
