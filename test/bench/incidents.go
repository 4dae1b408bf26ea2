package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"
)

const (
	// aftermath is how long nothing happens after an incident is over, so that what still follows is seen.
	aftermath = time.Second
	// noise is how much longer than usual the longest gap of a partition may be that is not to pause: the machine itself causes as much.
	noise = 0.1 // seconds
	// settleWithin is how long the consequences of an incident may take beyond the session timeout.
	settleWithin = time.Minute
	// outcomeEvery is how often it is tried whether a controller takes a write again.
	outcomeEvery = 20 * time.Millisecond
)

// drill is a crew under load to which things happen, and what they cost.
type drill struct {
	crew  *crew
	pulse *pulse
	book  *ledger
	size  extent
	mark  string // goes with each event's name
	doors int    // counts, for names of topics
	// needless is how many partitions more than balance needs each incident moved.
	needless []float64
}

func drillControllers() []string { return []string{"c_1", "c_2"} }
func drillWorkers() []string     { return []string{"w_1", "w_2", "w_3"} }

// drill starts a crew and a pulse, has things happen to them and compares the copy with its source.
func (l *lab) drill(ctx context.Context, d drill, happen func(context.Context, *drill) error) (err error) {
	d.mark = fmt.Sprintf(", session %v", d.crew.session)
	if d.pulse, err = l.startPulse(ctx, d.crew.topic("0"), d.size.partitions, d.size.rate); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.crew.close(), d.pulse.close(ctx)) }()
	if err := d.crew.startAll(drillControllers(), drillWorkers()); err != nil {
		return err
	}
	if err := until(ctx, crewServes, func() (bool, error) {
		if d.crew.replicas > 1 {
			return d.paired(ctx)
		}
		shares, err := d.shares(ctx)
		return len(shares) == len(drillWorkers()) && slices.Max(shares)-slices.Min(shares) <= 1, err
	}); err != nil {
		return fmt.Errorf("wait for the crew: %w", err)
	}
	if err := happen(ctx, &d); err != nil {
		return err
	}
	diff, err := d.pulse.end(ctx)
	if err != nil {
		return err
	}
	l.say("%s: %v", d.crew.name, diff)
	d.book.note(figure{"all of these" + d.mark, figureLost, 0, 0, ""}, float64(diff.Lost))
	d.book.note(figure{"all of these" + d.mark, figureTwice, 0, 0, ""}, float64(diff.Extra+diff.Disordered))
	for _, moves := range d.needless {
		d.book.note(figure{"all of these" + d.mark, "partitions moved that need not", 0, 0, ""}, moves)
	}
	return nil
}

// shares is how many partitions each worker has that has any; nothing unless all partitions have an owner.
func (d *drill) shares(ctx context.Context) ([]int, error) {
	owners, err := d.crew.owners(ctx, d.pulse.topic)
	if err != nil || len(owners) < d.pulse.partitions {
		return nil, err
	}
	count := map[string]int{}
	for _, id := range owners {
		count[id]++
	}
	var shares []int
	for _, n := range count {
		shares = append(shares, n)
	}
	return shares, nil
}

// toll is what an incident cost. Gaps are seconds in which a partition's copy did not grow.
type toll struct {
	moved    int     // partitions that have another owner
	resumed  float64 // from the incident until the last of these advanced again
	paused   float64 // longest gap of one that moved
	others   float64 // longest gap of one that did not, beyond what is usual
	repeated float64 // records that came twice
}

// suffer has something happen that takes about so long and waits until owners are as they shall be and all partitions advance.
func (d *drill) suffer(ctx context.Context, lasts time.Duration, happen func() error, over func(owners map[int]string) bool) (toll, error) {
	calm := time.Now()
	if err := pause(ctx, lasts+d.size.calm); err != nil {
		return toll{}, err
	}
	before, err := d.crew.owners(ctx, d.pulse.topic)
	if err != nil {
		return toll{}, err
	}
	repeats, at := d.pulse.repeats(), time.Now()
	if err := happen(); err != nil {
		return toll{}, err
	}
	var after map[int]string
	if err := until(ctx, d.crew.session+settleWithin, func() (bool, error) {
		var err error
		after, err = d.crew.owners(ctx, d.pulse.topic)
		return len(after) == d.pulse.partitions && over(after), err
	}); err != nil {
		return toll{}, fmt.Errorf("wait until partitions have moved: %w", err)
	}
	settled := time.Now()
	if err := until(ctx, settleWithin, func() (bool, error) { return d.pulse.beatsSince(settled) }); err != nil {
		return toll{}, fmt.Errorf("wait until all partitions advance: %w", err)
	}
	if err := pause(ctx, aftermath); err != nil {
		return toll{}, err
	}
	if after, err = d.crew.owners(ctx, d.pulse.topic); err != nil {
		return toll{}, err
	}
	t := d.gaps(before, after, calm, at, time.Now())
	t.repeated = float64(d.pulse.repeats() - repeats)
	return t, nil
}

// gaps sums up the time from an incident to now, against that from calm on.
func (d *drill) gaps(before, after map[int]string, calm, at, now time.Time) toll {
	var t toll
	usual := 0.0
	if equal := at.Add(at.Sub(now)); equal.After(calm) { // the longest of few gaps is shorter than that of many
		calm = equal
	}
	for p := range d.pulse.partitions {
		gap, _ := d.pulse.gap(p, calm, at)
		usual = max(usual, gap.Seconds())
	}
	for p := range d.pulse.partitions {
		gap, end := d.pulse.gap(p, at, now)
		if before[p] == after[p] {
			t.others = max(t.others, gap.Seconds()-usual)
			continue
		}
		t.moved++
		t.resumed, t.paused = max(t.resumed, end.Sub(at).Seconds()), max(t.paused, gap.Seconds())
	}
	return t
}

// noteOthers notes what is to be nothing after each incident.
func (d *drill) noteOthers(event string, t toll, needless int) {
	d.book.note(figure{event, "pause of other partitions beyond the usual, s", 2, noise, ""}, t.others)
	d.needless = append(d.needless, float64(needless))
}

// gone says that a worker has nothing.
func gone(id string) func(map[int]string) bool {
	return func(owners map[int]string) bool {
		for _, owner := range owners {
			if owner == id {
				return false
			}
		}
		return true
	}
}

// owned counts a worker's partitions.
func owned(owners map[int]string, id string) int {
	n := 0
	for _, owner := range owners {
		if owner == id {
			n++
		}
	}
	return n
}

// kill ends a worker with SIGKILL.
func (d *drill) kill(ctx context.Context, id string) error {
	owners, err := d.crew.owners(ctx, d.pulse.topic)
	if err != nil {
		return err
	}
	t, err := d.suffer(ctx, d.crew.session, d.crew.member(id).program.Kill, gone(id))
	if err != nil {
		return fmt.Errorf("worker killed: %w", err)
	}
	event := "worker killed -9" + d.mark
	d.book.note(figure{event, "until all its partitions advance again, s", 1, d.crew.session.Seconds() + 3, "26 (session 20, delay 5)"}, t.resumed)
	d.book.note(figure{event, figureDuplicates, 0, 0, "26,647"}, t.repeated)
	d.noteOthers(event, t, t.moved-owned(owners, id))
	return nil
}

// terminate ends a worker with SIGTERM.
func (d *drill) terminate(ctx context.Context, id string) error {
	owners, err := d.crew.owners(ctx, d.pulse.topic)
	if err != nil {
		return err
	}
	t, err := d.suffer(ctx, 0, d.crew.member(id).program.Stop, gone(id))
	if err != nil {
		return fmt.Errorf("worker terminated: %w", err)
	}
	event := "worker terminated" + d.mark
	d.book.note(figure{event, "longest pause of its partitions, s", 2, 3, "5.2 (delay 5)"}, t.paused)
	d.book.note(figure{event, figureDuplicates, 0, 0, "0"}, t.repeated)
	d.noteOthers(event, t, t.moved-owned(owners, id))
	return nil
}

// join starts a worker and waits until it has a share. How much that is to be depends on how much flows through each partition at that moment;
// that anything moves to or from others is never needed, nor that the new one gets more than they have.
func (d *drill) join(ctx context.Context, id string) error {
	start := func() error { return d.crew.start(kindWorker, id, usualMemory) }
	var owners map[int]string
	t, err := d.suffer(ctx, 0, start, func(now map[int]string) bool { owners = now; return owned(now, id) > 0 })
	if err != nil {
		return fmt.Errorf("worker joins: %w", err)
	}
	event := "worker joins" + d.mark
	d.book.note(figure{event, "longest pause of partitions that move, s", 2, 3, "1.0–1.2"}, t.paused)
	d.book.note(figure{event, figureDuplicates, 0, 0, "17,582"}, t.repeated)
	d.noteOthers(event, t, t.moved-min(owned(owners, id), d.pulse.partitions/len(drillWorkers())))
	return nil
}

// behead kills the controller that leads and writes by the other one.
func (d *drill) behead(ctx context.Context) (err error) {
	leads, standsBy, err := d.crew.leader(ctx)
	if err != nil {
		return err
	}
	d.doors++
	door := fmt.Sprintf("%s-door-%d", d.crew.name, d.doors)
	l := d.crew.l
	if err := errors.Join(l.source.createTopic(ctx, door, 1, 1), l.target.createTopic(ctx, door+copySuffix, 1, 1)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.source.clean(ctx, door), l.target.clean(ctx, door)) }()
	wrote := 0.0
	t, err := d.suffer(ctx, d.crew.session, func() error {
		began := time.Now()
		if err := leads.program.Kill(); err != nil {
			return err
		}
		post := request{http.MethodPost, "/api/v1/topics", fmt.Sprintf(`{"topic":%q,"partitions":1}`, door)}
		err := untilEvery(ctx, outcomeEvery, d.crew.session+settleWithin, func() (bool, error) {
			status, err := d.crew.call(ctx, standsBy, post, nil)
			return status == http.StatusCreated || status == http.StatusConflict, err // of an attempt whose answer was lost
		})
		wrote = time.Since(began).Seconds()
		return err
	}, func(map[int]string) bool { return true })
	if err != nil {
		return fmt.Errorf("leader killed: %w", err)
	}
	event := "leading controller killed -9" + d.mark
	d.book.note(figure{event, "until a write by REST succeeds, s", 1, d.crew.session.Seconds() + 2, ""}, wrote)
	d.book.note(figure{event, figureDuplicates, 0, 0, ""}, t.repeated)
	d.noteOthers(event, t, t.moved)
	if _, err := d.crew.call(ctx, standsBy, request{method: http.MethodDelete, path: "/api/v1/topics/" + door}, nil); err != nil {
		return err
	}
	return d.crew.start(kindController, leads.id, usualMemory)
}
