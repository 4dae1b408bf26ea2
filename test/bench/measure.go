package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

const (
	// measureFrom is the share of the records that may pass before measuring begins: until then a mirror may be starting.
	measureFrom = 0.1
	pollEvery   = 20 * time.Millisecond
)

// result is one run of one mirror. Missing figures are NaN.
type result struct {
	rate     float64 // records a second
	perCPU   float64 // records a CPU second of the mirror's process
	resident float64 // MB at the end
	peak     float64 // MB
	note     string  // what was the matter, if anything
}

func failed(err error) result {
	first, _, _ := strings.Cut(strings.TrimSpace(err.Error()), "\n")
	if !errors.Is(err, errMissing) {
		first = "failed: " + first
	}
	return result{rate: math.NaN(), perCPU: math.NaN(), resident: math.NaN(), peak: math.NaN(), note: first}
}

// sample is the state of a copy at one instant.
type sample struct {
	at      time.Time
	records int64 // on the target
	usage
}

// between is what happened from a to b.
func between(a, b sample) result {
	seconds, cpu, records := b.at.Sub(a.at).Seconds(), b.cpu-a.cpu, float64(b.records-a.records)
	r := result{rate: records / seconds, perCPU: records / cpu, resident: b.resident, peak: b.peak}
	if records <= 0 {
		r.rate, r.perCPU, r.note = math.NaN(), math.NaN(), "over before it could be measured"
	} else if cpu <= 0 {
		r.perCPU, r.note = math.NaN(), "used less CPU time than can be measured"
	}
	return r
}

// watch measures a running mirror from outside until the target topic holds so many records. A run that takes longer than the limit is
// measured as far as it came.
func watch(ctx context.Context, adm *kadm.Client, topic string, mirror *kafkatest.Program, job watched) result {
	deadline := time.Now().Add(job.limit)
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	var first sample
	for {
		now, err := take(ctx, adm, topic, mirror)
		if err != nil {
			return failed(err)
		}
		if first.at.IsZero() && float64(now.records) >= measureFrom*float64(job.records) {
			first = now
		}
		switch {
		case now.records >= job.records:
			return between(first, now)
		case now.at.Before(deadline):
		case first.at.IsZero():
			return failed(fmt.Errorf("%d of %d records after %v", now.records, job.records, job.limit))
		default:
			r := between(first, now)
			r.note = fmt.Sprintf("stopped after %v at %.0f %%", job.limit, 100*float64(now.records)/float64(job.records))
			return r
		}
		select {
		case <-ctx.Done():
			return failed(ctx.Err())
		case <-tick.C:
		}
	}
}

// watched says when a run is over.
type watched struct {
	records int64
	limit   time.Duration
}

// take reads the target and the process. Few questions to the target fail; the next ones are answered.
func take(ctx context.Context, adm *kadm.Client, topic string, mirror *kafkatest.Program) (sample, error) {
	if !mirror.Running() {
		return sample{}, errors.New("the process ended by itself: " + lastLine(mirror.Log()))
	}
	ends, err := adm.ListEndOffsets(ctx, topic)
	if err != nil {
		return sample{}, fmt.Errorf("list end offsets of %s: %w", topic, err)
	}
	s := sample{at: time.Now()}
	ends.Each(func(end kadm.ListedOffset) {
		if end.Err == nil {
			s.records += end.Offset
		}
	})
	s.usage, err = usageOf(mirror.Pid())
	return s, err
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}
