package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// extent is how large the part is.
type extent struct {
	partitions int // under load
	rate       int // records a second into all of them
	// Incidents are repeated with the short session timeout; those that take about as long as it also happen once with the default.
	short, usual time.Duration
	rounds       int
	calm         time.Duration // before each incident, beyond what it takes
	rest         time.Duration // before all partitions are watched
	topics       int           // of the large cluster
	more         int           // topics that are added to it one by one
	idle         time.Duration // how long idle partitions are watched
}

func (l *lab) extent() extent {
	if l.opts.quick {
		return extent{
			partitions: 6, rate: 200, short: 4 * time.Second, usual: 6 * time.Second, rounds: 1, calm: time.Second, rest: time.Second,
			topics: 20, more: 1, idle: 3 * time.Second,
		}
	}
	return extent{
		partitions: 12, rate: 600, short: 6 * time.Second, usual: 30 * time.Second, rounds: min(l.opts.pairs, 3), calm: 5 * time.Second, rest: 10 * time.Second,
		topics: 1000, more: 5, idle: time.Minute,
	}
}

// crowdPartitions is how many partitions each topic of the large cluster has.
const crowdPartitions = 10

// cluster asks what happens to a cluster of workers when processes come and go under load, and how it does with thousands of partitions.
func (l *lab) cluster(ctx context.Context) (rep *report, err error) {
	if err := l.build(ctx, "cmd/worker", "cmd/controller"); err != nil {
		return nil, err
	}
	zookeeper, err := kafkatest.OpenZooKeeper(ctx, l.dir)
	if err != nil {
		return nil, fmt.Errorf("start zookeeper: %w", err)
	}
	defer func() { err = errors.Join(err, zookeeper.Close()) }()
	size := l.extent()
	steps := []struct {
		name string
		do   func(name string, book *ledger) error
	}{
		{"short", func(name string, book *ledger) error {
			return l.drill(ctx, drill{crew: l.newCrew(zookeeper, name, size.short), book: book, size: size}, repeatedly(size.rounds))
		}},
		{"usual", func(name string, book *ledger) error {
			return l.drill(ctx, drill{crew: l.newCrew(zookeeper, name, size.usual), book: book, size: size}, once)
		}},
		{"crowd", func(name string, book *ledger) error {
			return l.crowd(ctx, masses{crew: l.newCrew(zookeeper, name, size.usual), book: book, size: size})
		}},
	}
	books, errs := make([]*ledger, len(steps)), make([]error, len(steps))
	var running sync.WaitGroup
	for i, step := range steps {
		books[i] = newLedger()
		running.Go(func() {
			if err := step.do(step.name, books[i]); err != nil {
				l.say("%s: %v", step.name, err)
				errs[i] = fmt.Errorf("%s: %w", step.name, err)
			}
		})
		if !l.opts.quick {
			running.Wait() // a quick run's figures say nothing, and all at once it is over soon
		}
	}
	running.Wait()
	book := newLedger()
	for _, b := range books {
		book.take(b)
	}
	return &report{about: size.about(), figures: book.table()}, errors.Join(errs...)
}

func (e extent) about() string {
	return fmt.Sprintf("Two controllers, three workers and one ZooKeeper, all with their defaults but the session timeout. Incidents: %d records/s in %d partitions; "+
		"a consumer of the target notes when each partition advances. A pause counts as none when the longest gap of any partition is at most %.1f s longer than "+
		"the longest in as much time before the incident. Thousands: %d topics of %d partitions, one controller. uReplicator's figures are what the real one did on another day and a machine of this kind.",
		e.rate, e.partitions, noise, e.topics, crowdPartitions)
}

// repeatedly has each incident happen so many times.
func repeatedly(rounds int) func(context.Context, *drill) error {
	return func(ctx context.Context, d *drill) error {
		for round := range rounds {
			d.crew.l.say("%s: round %d", d.crew.name, round+1)
			id := drillWorkers()[round%len(drillWorkers())]
			for _, step := range []func() error{
				func() error { return d.kill(ctx, id) },
				func() error { return d.join(ctx, id) },
				func() error { return d.terminate(ctx, id) },
				func() error { return d.join(ctx, id) },
				func() error { return d.behead(ctx) },
			} {
				if err := step(); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// once has a worker and a leader killed.
func once(ctx context.Context, d *drill) error {
	return errors.Join(d.kill(ctx, drillWorkers()[0]), d.behead(ctx))
}
