package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// handoverGoal is how many ms longer a pause may be than the longest of undisturbed time.
const handoverGoal = 50

// handover asks how long the copy of a partition pauses when its owner changes and two workers may have it at once.
func (l *lab) handover(ctx context.Context) (rep *report, err error) {
	if err := l.build(ctx, "cmd/worker", "cmd/controller"); err != nil {
		return nil, err
	}
	zookeeper, err := kafkatest.OpenZooKeeper(ctx, l.dir)
	if err != nil {
		return nil, fmt.Errorf("start zookeeper: %w", err)
	}
	defer func() { err = errors.Join(err, zookeeper.Close()) }()
	size := l.extent()
	book := newLedger()
	moves := l.newCrew(zookeeper, "overlap", size.short)
	moves.handover = "overlap"
	deaths := l.newCrew(zookeeper, "standby", size.short)
	deaths.replicas = 2
	err = errors.Join(
		l.drill(ctx, drill{crew: moves, book: book, size: size}, func(ctx context.Context, d *drill) error {
			return errors.Join(d.warm(ctx), l.eachRound((*drill).swap)(ctx, d))
		}),
		l.drill(ctx, drill{crew: deaths, book: book, size: size}, l.eachRound((*drill).widow)),
	)
	return &report{about: size.aboutHandover(), figures: book.table()}, err
}

func (e extent) aboutHandover() string {
	return fmt.Sprintf("Two controllers, three workers, %d records/s in %d partitions, session timeout %v. A pause is the longest time in which the copy of any partition did "+
		"not grow; the undisturbed stretch lies right before the incident and is as long. Planned move: every partition goes to another worker at once, with "+
		"`controller.rebalance.handover: overlap`; the first moves are not counted, in which brokers compile what they do for the first time. Killed worker: of a topic with `replicas: 2`, by SIGKILL; the stretch ends before its session does, so that nobody but the standby can have acted.",
		e.rate, e.partitions, e.short)
}

// warmUp is how often each partition moves before it counts.
const warmUp = 3

// warm moves everything without counting it.
func (d *drill) warm(ctx context.Context) error {
	counted := d.book
	defer func() { d.book = counted }()
	d.book = newLedger()
	for round := range warmUp {
		if err := d.swap(ctx, round); err != nil {
			return err
		}
	}
	return nil
}

// eachRound has something happen once a pair.
func (l *lab) eachRound(happen func(*drill, context.Context, int) error) func(context.Context, *drill) error {
	return func(ctx context.Context, d *drill) error {
		for round := range l.opts.pairs {
			l.say("%s: round %d", d.crew.name, round+1)
			if err := happen(d, ctx, round); err != nil {
				return err
			}
		}
		return nil
	}
}

// stretch compares the longest pause of any partition while something happens with that of as much time before.
func (d *drill) stretch(ctx context.Context, event string, lasts time.Duration, happen func() error) error {
	calm := time.Now()
	if err := pause(ctx, lasts); err != nil {
		return err
	}
	at := time.Now()
	if err := happen(); err != nil {
		return err
	}
	if err := pause(ctx, time.Until(at.Add(lasts))); err != nil {
		return err
	}
	var usual, longest time.Duration
	for p := range d.pulse.partitions {
		before, _ := d.pulse.gap(p, calm, at)
		after, _ := d.pulse.gap(p, at, at.Add(lasts))
		usual, longest = max(usual, before), max(longest, after)
	}
	ms := func(d time.Duration) float64 { return d.Seconds() * 1000 }
	d.book.note(figure{event, "longest pause beyond that of the undisturbed stretch, ms", 0, handoverGoal, ""}, ms(longest-usual))
	d.book.note(figure{event, "longest pause, ms", 0, none, ""}, ms(longest))
	d.book.note(figure{event, "longest pause of the undisturbed stretch, ms", 0, none, ""}, ms(usual))
	return nil
}

// swap moves every partition to the next worker.
func (d *drill) swap(ctx context.Context, _ int) error {
	before, err := d.crew.owners(ctx, d.pulse.topic)
	if err != nil {
		return err
	}
	leads, _, err := d.crew.leader(ctx)
	if err != nil {
		return err
	}
	next := map[string]string{}
	for i, id := range drillWorkers() {
		next[id] = drillWorkers()[(i+1)%len(drillWorkers())]
	}
	return d.stretch(ctx, "planned move, overlapping", d.crew.session, func() error {
		for p, id := range before {
			path := fmt.Sprintf("/api/v1/topics/%s/partitions/%d/move", d.pulse.topic, p)
			status, err := d.crew.call(ctx, leads, request{http.MethodPost, path, fmt.Sprintf(`{"worker":%q}`, next[id])}, nil)
			if err != nil || status != http.StatusAccepted {
				return fmt.Errorf("move partition %d: status %d: %w", p, status, err)
			}
		}
		return nil
	})
}

// paired says that each partition is mirrored by as many workers as it is to be.
func (d *drill) paired(ctx context.Context) (bool, error) {
	n, err := d.crew.mirroring(ctx)
	return n == d.crew.replicas*d.pulse.partitions, err
}

// widow kills a worker of a topic with hot standbys, and starts it again when others have its place.
func (d *drill) widow(ctx context.Context, round int) error {
	if err := until(ctx, settleWithin, func() (bool, error) { return d.paired(ctx) }); err != nil {
		return fmt.Errorf("wait for the pairs: %w", err)
	}
	id := drillWorkers()[round%len(drillWorkers())]
	lasts := d.crew.session * 3 / 4
	if err := d.stretch(ctx, "worker of a hot standby topic killed -9", lasts, d.crew.member(id).program.Kill); err != nil {
		return err
	}
	if err := pause(ctx, d.crew.session); err != nil { // its place is another's then
		return err
	}
	if err := d.crew.start(kindWorker, id, usualMemory); err != nil {
		return err
	}
	return pause(ctx, d.crew.session)
}
