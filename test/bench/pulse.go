package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

const (
	// copySuffix makes the name of a copy.
	copySuffix = ".copy"
	// numberDigits begin each value: the record's number.
	numberDigits = 12
	// pulseDay is more seconds than any pulse beats.
	pulseDay = 24 * 3600
)

// pulse is a steady stream of numbered records into a topic of the source, and a reader of the copy that notes when each partition advances.
// It owns two goroutines, which end waits for.
type pulse struct {
	l          *lab
	topic      string
	partitions int
	reader     *kgo.Client
	stopFeed   context.CancelFunc
	stopRead   context.CancelFunc
	feeding    sync.WaitGroup
	reading    sync.WaitGroup

	mu       sync.Mutex
	beats    [][]time.Time // guarded by mu; by partition: when records came
	last     []int         // guarded by mu; by partition: number of the last record
	repeated int           // guarded by mu; records that are not behind the one before, as a second copy is
	faults   []error       // guarded by mu
}

// startPulse creates the topics and begins with rate records a second.
func (l *lab) startPulse(ctx context.Context, topic string, partitions, rate int) (*pulse, error) {
	p := &pulse{l: l, topic: topic, partitions: partitions, beats: make([][]time.Time, partitions), last: make([]int, partitions)}
	for i := range p.last {
		p.last[i] = -1
	}
	if err := l.source.createTopic(ctx, topic, partitions, 1); err != nil {
		return nil, err
	}
	if err := l.target.createTopic(ctx, topic+copySuffix, partitions, 1); err != nil {
		return nil, err
	}
	var err error
	p.reader, err = kgo.NewClient(kgo.SeedBrokers(l.target.Bootstrap()...), kgo.ConsumeTopics(topic+copySuffix),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(time.Second))
	if err != nil {
		return nil, fmt.Errorf("create consumer: %w", err)
	}
	var feed, read context.Context
	feed, p.stopFeed = context.WithCancel(ctx)
	read, p.stopRead = context.WithCancel(ctx)
	p.feeding.Go(func() {
		_, err := kafkatest.Generate(feed, l.source.Bootstrap(), kafkatest.LoadOptions{Topic: topic, Records: pulseDay * rate, Rate: rate})
		if !errors.Is(err, context.Canceled) {
			p.fail(fmt.Errorf("write to %s: %w", topic, err))
		}
	})
	p.reading.Go(func() { p.read(read) })
	return p, nil
}

func (p *pulse) read(ctx context.Context) {
	for ctx.Err() == nil {
		fetches := p.reader.PollFetches(ctx)
		now := time.Now()
		if err := fetches.Err(); err != nil && ctx.Err() == nil {
			p.fail(fmt.Errorf("read %s%s: %w", p.topic, copySuffix, err))
			return
		}
		p.mu.Lock()
		fetches.EachPartition(func(part kgo.FetchTopicPartition) { p.noteLocked(part, now) })
		p.mu.Unlock()
	}
}

func (p *pulse) noteLocked(part kgo.FetchTopicPartition, now time.Time) {
	if len(part.Records) == 0 {
		return
	}
	p.beats[part.Partition] = append(p.beats[part.Partition], now)
	for _, r := range part.Records {
		number, err := strconv.Atoi(string(r.Value[:min(numberDigits, len(r.Value))]))
		if err != nil {
			p.faults = append(p.faults, fmt.Errorf("number of a record of %s: %w", p.topic, err))
			continue
		}
		if number <= p.last[part.Partition] {
			p.repeated++
		}
		p.last[part.Partition] = max(number, p.last[part.Partition])
	}
}

func (p *pulse) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, err)
}

// repeats is how many records came that had come before.
func (p *pulse) repeats() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.repeated
}

// beatsSince says whether each partition has advanced after a moment.
func (p *pulse) beatsSince(at time.Time) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, beats := range p.beats {
		if len(beats) == 0 || beats[len(beats)-1].Before(at) {
			return false, errors.Join(p.faults...)
		}
	}
	return true, errors.Join(p.faults...)
}

// gap is the longest time within a span in which a partition did not advance, and the end of that. What had begun before the span counts
// from its beginning on.
func (p *pulse) gap(partition int, from, to time.Time) (longest time.Duration, end time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return longestGap(p.beats[partition], from, to)
}

// longestGap is gap on beats in the order in which they came.
func longestGap(beats []time.Time, from, to time.Time) (longest time.Duration, end time.Time) {
	first, _ := slices.BinarySearchFunc(beats, from, time.Time.Compare)
	last := from
	for _, at := range append(slices.Clone(beats[first:]), to) {
		if at.After(to) {
			at = to
		}
		if d := at.Sub(last); d > longest {
			longest, end = d, at
		}
		last = at
	}
	return longest, end
}

// end stops writing, waits until all is on the target, and compares the copy with the source.
func (p *pulse) end(ctx context.Context) (kafkatest.Diff, error) {
	p.stopFeed()
	p.feeding.Wait()
	err := until(ctx, topicReady, func() (bool, error) {
		written, err := p.l.source.count(ctx, p.topic)
		copied, err2 := p.l.target.count(ctx, p.topic+copySuffix)
		return copied >= written, errors.Join(err, err2)
	})
	if err != nil {
		return kafkatest.Diff{}, fmt.Errorf("wait for the rest of %s: %w", p.topic, err)
	}
	diff, err := kafkatest.CompareTopics(ctx, kafkatest.Comparison{
		Source: p.l.source.Bootstrap(), Target: p.l.target.Bootstrap(), Topic: p.topic, ToTopic: p.topic + copySuffix,
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	return diff, errors.Join(append(p.faults, err)...)
}

// close ends what end has not ended, and removes the topics.
func (p *pulse) close(ctx context.Context) error {
	p.stopFeed()
	p.stopRead()
	p.feeding.Wait()
	p.reading.Wait()
	p.reader.Close()
	return errors.Join(p.l.source.clean(ctx, p.topic), p.l.target.clean(ctx, p.topic))
}

// count is how many records a topic without transactions holds.
func (s *site) count(ctx context.Context, topic string) (int64, error) {
	ends, err := s.adm.ListEndOffsets(ctx, topic)
	if err != nil {
		return 0, fmt.Errorf("list end offsets of %s: %w", topic, err)
	}
	sum := int64(0)
	ends.Each(func(end kadm.ListedOffset) { sum += end.Offset })
	return sum, ends.Error()
}
