package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// race is one case: entrants that do the same job in turn.
type race struct {
	name     string
	job      job
	batch    int // bytes of a source batch before compression
	pairs    int
	entrants []entrant
	compare  [][2]string // which ratios to report, by entrant
	target   *site
}

// series is the outcome of a race.
type series struct {
	name    string
	order   []string
	results map[string][]result // by entrant, in the order of the rounds
	compare [][2]string
}

// race fills the source topic, lets every entrant copy it in each round, and removes it. Who begins changes with each round. The first copy
// of all is not counted: it warms the brokers up. An entrant's failure is its result; an error is one of the place.
func (l *lab) race(ctx context.Context, c race) (*series, error) {
	l.races++
	c.job.topic = fmt.Sprintf("%s-%d", c.job.topic, l.races) // a name of its own: brokers take their time to forget one
	s := &series{name: c.name, results: map[string][]result{}, compare: c.compare}
	for _, e := range c.entrants {
		s.order = append(s.order, e.name)
	}
	if err := l.diskFree(); err != nil {
		return s, err
	}
	l.say("%s: writing %d records to the source", c.name, c.job.records)
	if err := l.fill(ctx, c); err != nil {
		return s, err
	}
	warm := l.attempt(ctx, c, c.entrants[0])
	if warm.note != "" {
		l.say("%s: warming up: %s", c.name, warm.note)
	}
	for round := range c.pairs {
		for i := range c.entrants {
			e := c.entrants[(round+i)%len(c.entrants)]
			r := l.attempt(ctx, c, e)
			l.say("%s: round %d, %s: %s records/s, %s records per CPU s, %s MB %s", c.name, round+1, e.name, thousands(r.rate), thousands(r.perCPU), thousands(r.resident), r.note)
			s.results[e.name] = append(s.results[e.name], r)
			if ctx.Err() != nil {
				return s, ctx.Err()
			}
		}
	}
	return s, l.source.clean(ctx, c.job.topic)
}

// fill creates the source topic and writes the records.
func (l *lab) fill(ctx context.Context, c race) error {
	if err := l.source.createTopic(ctx, c.job.topic, c.job.partitions, 1); err != nil {
		return err
	}
	_, err := kafkatest.Generate(ctx, l.source.Bootstrap(), kafkatest.LoadOptions{
		Topic: c.job.topic, Records: int(c.job.records), ValueBytes: valueSize, Codec: c.job.codec, BatchBytes: c.batch,
	})
	if err != nil {
		return fmt.Errorf("fill topic %s: %w", c.job.topic, err)
	}
	return nil
}

// attempt is one run of one entrant, from an empty target topic to the removal of what it left.
func (l *lab) attempt(ctx context.Context, c race, e entrant) result {
	if err := l.diskFree(); err != nil {
		return failed(err)
	}
	r, err := l.newTurn(c.job)
	if err != nil {
		return failed(err)
	}
	if err := c.target.createTopic(ctx, r.copied(), r.partitions, r.replicas); err != nil {
		return failed(err)
	}
	syscall.Sync() // what the run before wrote must not be this one's burden
	res := l.measure(ctx, c, r, e)
	err = errors.Join(c.target.clean(ctx, r.copied(), "mm2-"), l.source.clean(ctx, "mm2-"), os.RemoveAll(r.dir))
	if err != nil && res.note == "" {
		res.note = "cleaning up failed: " + err.Error()
	}
	return res
}

func (l *lab) newTurn(j job) (turn, error) {
	l.runs++
	r := turn{job: j, name: fmt.Sprintf("run%d", l.runs)}
	r.dir = filepath.Join(l.dir, r.name)
	if err := os.Mkdir(r.dir, 0o750); err != nil {
		return r, fmt.Errorf("create folder of the run: %w", err)
	}
	return r, nil
}

func (l *lab) measure(ctx context.Context, c race, r turn, e entrant) result {
	mirror, err := e.start(r)
	if err != nil {
		return failed(err)
	}
	res := watch(ctx, c.target.adm, r.copied(), mirror, watched{records: r.records, limit: l.opts.limit})
	if err := mirror.Kill(); err != nil && res.note == "" {
		res.note = err.Error()
	}
	return res
}
