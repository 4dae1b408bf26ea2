package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

const (
	latencyRate       = 5000 // records a second
	latencyPartitions = 8
	// latencyWarmUp passes before records count; Java compiles its hot paths meanwhile.
	latencyWarmUp = 10 * time.Second
	latencyValue  = 200 // bytes
	// latencyArrival is how long the last records of a run may be on their way.
	latencyArrival = 15 * time.Second
)

// latency asks how old a record is when a consumer of the target gets it, under a steady light load, compared with a consumer of the source.
func (l *lab) latency(ctx context.Context) (*report, error) {
	return l.late(ctx, time.Minute, entrant{name: "source"}, l.floor("floor", "-follow"), l.causeway("causeway", "", "--start", "latest"), l.mirrorMaker())
}

// late asks it of some entrants, each for so long a time.
func (l *lab) late(ctx context.Context, length time.Duration, entrants ...entrant) (*report, error) {
	if l.opts.quick {
		length = 5 * time.Second
	}
	rep := &report{
		about: fmt.Sprintf("%d records/s of %d bytes in %d partitions, lz4, one replica; %v each run after %v of warming up. From the call of the producer to the consumer that has the record, in milliseconds: medians of the runs' quantiles. `source` is no mirror but a consumer of the source topic.",
			latencyRate, latencyValue, latencyPartitions, length, latencyWarmUp),
		figures: table{head: []string{"case", "mirror", "p50 ms", "p99 ms", "p99.9 ms", "largest ms", "% of a core", "resident MB", "runs", "remarks"}},
	}
	results := map[string][]delays{}
	var err error
	for round := range l.opts.pairs {
		for i := range entrants {
			e := entrants[(round+i)%len(entrants)]
			d := l.delay(ctx, e, length)
			l.say("latency: round %d, %s: p50 %s ms, p99 %s ms %s", round+1, e.name, decimal(d.p50, 1), decimal(d.p99, 1), d.note)
			results[e.name] = append(results[e.name], d)
		}
		if err = ctx.Err(); err != nil {
			break
		}
	}
	for _, e := range entrants {
		rep.addDelays(fmt.Sprintf("%d/s", latencyRate), e.name, results[e.name])
	}
	return rep, err
}

// delays is the outcome of one run, in milliseconds. Missing figures are NaN.
type delays struct {
	p50, p99, p999, largest float64
	result
}

func (r *report) addDelays(name, entrant string, all []delays) {
	pick := func(figure func(delays) float64) float64 {
		var values []float64
		for _, d := range all {
			values = append(values, figure(d))
		}
		return median(known(values))
	}
	var results []result
	for _, d := range all {
		results = append(results, d.result)
	}
	r.figures.add(name, entrant,
		decimal(pick(func(d delays) float64 { return d.p50 }), 1), decimal(pick(func(d delays) float64 { return d.p99 }), 1),
		decimal(pick(func(d delays) float64 { return d.p999 }), 1), decimal(pick(func(d delays) float64 { return d.largest }), 1),
		decimal(pick(func(d delays) float64 { return 100 * d.rate / d.perCPU }), 1), // records/s ÷ records per CPU s is CPU s a second
		thousands(pick(func(d delays) float64 { return d.resident })), strconv.Itoa(len(all)), notes(results))
}

func noDelays(err error) delays {
	return delays{math.NaN(), math.NaN(), math.NaN(), math.NaN(), failed(err)}
}

// delay runs one entrant on a new topic; one that has no start is the source itself.
func (l *lab) delay(ctx context.Context, e entrant, length time.Duration) delays {
	t, err := l.newTurn(l.job("latency", latencyPartitions, "lz4", 0))
	if err != nil {
		return noDelays(err)
	}
	t.topic = "latency-" + t.name
	d := l.delayed(ctx, t, e, length)
	err = errors.Join(l.source.clean(ctx, t.topic, "mm2-"), l.target.clean(ctx, t.copied(), "mm2-"), os.RemoveAll(t.dir))
	if err != nil && d.note == "" {
		d.note = "cleaning up failed: " + err.Error()
	}
	return d
}

func (l *lab) delayed(ctx context.Context, t turn, e entrant, length time.Duration) delays {
	if err := l.source.createTopic(ctx, t.topic, t.partitions, 1); err != nil {
		return noDelays(err)
	}
	s := stopwatch{from: t.from, at: t.from, topic: t.topic, read: t.topic, length: length}
	var mirror *kafkatest.Program
	if e.start != nil {
		if err := l.target.createTopic(ctx, t.copied(), t.partitions, 1); err != nil {
			return noDelays(err)
		}
		var err error
		if mirror, err = e.start(t); err != nil {
			return noDelays(err)
		}
		defer func() { _ = mirror.Kill() }() // ended or not, it is gone
		s.at, s.read = t.to, t.copied()
	}
	ctx, cancel := context.WithTimeout(ctx, l.opts.limit)
	defer cancel()
	d, err := s.run(ctx, mirror)
	if mirror != nil && !mirror.Running() {
		err = errors.Join(errors.New("the process ended by itself: "+lastLine(mirror.Log())), err)
	}
	if err != nil {
		return noDelays(err)
	}
	return d
}

// stopwatch writes records that carry the time and reads them elsewhere.
type stopwatch struct {
	from, at    []string // bootstrap addresses to write to and read from
	topic, read string
	length      time.Duration // of what counts, after warming up
}

// run waits until the first record arrives, so that the mirror's start does not count, and then measures. The mirror's own use is that of
// the time that counts.
func (s stopwatch) run(ctx context.Context, mirror *kafkatest.Program) (delays, error) {
	producer, err := kgo.NewClient(kgo.SeedBrokers(s.from...), kgo.DefaultProduceTopic(s.topic), kgo.ProducerLinger(0),
		kgo.ProducerBatchCompression(kgo.Lz4Compression()), kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))
	if err != nil {
		return delays{}, fmt.Errorf("create producer: %w", err)
	}
	defer producer.Close()
	consumer, err := kgo.NewClient(kgo.SeedBrokers(s.at...), kgo.ConsumeTopics(s.read), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return delays{}, fmt.Errorf("create consumer: %w", err)
	}
	defer consumer.Close()
	in := &arrivals{}
	ctx, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel(nil)
	wg.Go(func() { in.collect(ctx, consumer, cancel) })
	wg.Go(func() { in.send(ctx, producer, cancel) })
	if err := until(ctx, time.Minute, func() (bool, error) { return in.count() > 0, context.Cause(ctx) }); err != nil {
		return delays{}, fmt.Errorf("wait for the first record: %w", err)
	}
	before, after, err := s.window(ctx, mirror)
	if err != nil {
		return delays{}, err
	}
	var d delays
	err = until(ctx, latencyArrival, func() (bool, error) { // what was sent last may still be on its way
		var missed error
		d, missed = in.delays(before, after)
		return missed == nil, errors.Join(missed, context.Cause(ctx))
	})
	return d, err
}

// window lets the warm-up and then the time that counts pass, and returns the mirror's state at both ends of the latter.
func (s stopwatch) window(ctx context.Context, mirror *kafkatest.Program) (before, after sample, err error) {
	if err := pause(ctx, latencyWarmUp); err != nil {
		return before, after, err
	}
	if before, err = look(mirror); err != nil {
		return before, after, err
	}
	if err := pause(ctx, s.length); err != nil {
		return before, after, err
	}
	after, err = look(mirror)
	return before, after, err
}

// look notes the time and what the mirror, if there is one, has used.
func look(mirror *kafkatest.Program) (sample, error) {
	s := sample{at: time.Now()}
	if mirror == nil {
		s.usage = usage{cpu: math.NaN(), resident: math.NaN(), peak: math.NaN()}
		return s, nil
	}
	var err error
	s.usage, err = usageOf(mirror.Pid())
	return s, err
}

// send writes at latencyRate until ctx ends. Each value begins with the time of the call.
func (a *arrivals) send(ctx context.Context, producer *kgo.Client, fail context.CancelCauseFunc) {
	const every = time.Second / latencyRate
	began := time.Now()
	for i := 0; ctx.Err() == nil; i++ {
		if wait := time.Until(began.Add(time.Duration(i) * every)); wait > 0 && pause(ctx, wait) != nil {
			return
		}
		value := make([]byte, latencyValue)
		now := time.Now().UnixNano()
		binary.BigEndian.PutUint64(value, uint64(now))
		a.mu.Lock()
		a.sent = append(a.sent, now)
		a.mu.Unlock()
		producer.Produce(ctx, &kgo.Record{Value: value}, func(_ *kgo.Record, err error) {
			if err != nil && ctx.Err() == nil {
				fail(fmt.Errorf("produce: %w", err))
			}
		})
	}
}

// arrivals is what was sent and what came, and when.
type arrivals struct {
	mu   sync.Mutex
	sent []int64   // guarded by mu; Unix nanoseconds
	all  []arrival // guarded by mu
}

type arrival struct{ sent, came int64 } // in Unix nanoseconds

func (a *arrivals) collect(ctx context.Context, consumer *kgo.Client, fail context.CancelCauseFunc) {
	for ctx.Err() == nil {
		fetches := consumer.PollFetches(ctx)
		now := time.Now().UnixNano()
		if err := fetches.Err(); err != nil {
			if ctx.Err() == nil {
				fail(fmt.Errorf("consume: %w", err))
			}
			return
		}
		a.mu.Lock()
		fetches.EachRecord(func(r *kgo.Record) {
			a.all = append(a.all, arrival{int64(binary.BigEndian.Uint64(r.Value)), now})
		})
		a.mu.Unlock()
	}
}

func (a *arrivals) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.all)
}

// delays sums up the records that were sent in the window. Without those that are still missing the rest would look better than it was, so
// that all must have come.
func (a *arrivals) delays(before, after sample) (delays, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	within := func(sent int64) bool { return sent >= before.at.UnixNano() && sent < after.at.UnixNano() }
	sent := 0
	for _, at := range a.sent {
		if within(at) {
			sent++
		}
	}
	var ms []float64
	for _, r := range a.all {
		if within(r.sent) {
			ms = append(ms, float64(r.came-r.sent)/1e6)
		}
	}
	if len(ms) < sent {
		return delays{}, fmt.Errorf("only %d of %d records came", len(ms), sent)
	}
	after.records = int64(len(ms))
	d := delays{quantile(ms, 0.5), quantile(ms, 0.99), quantile(ms, 0.999), quantile(ms, 1), between(before, after)}
	if float64(sent) < 0.95*latencyRate*after.at.Sub(before.at).Seconds() {
		d.note = fmt.Sprintf("the writer only came to %s records/s", thousands(d.rate))
	}
	return d, nil
}

// pause lets time pass.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
