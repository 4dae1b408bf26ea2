package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/causeway-mirror/causeway/api"
)

// How often the progress is shown: redrawn often on a terminal, seldom where each is a line in a log.
const (
	progressTerminal = 500 * time.Millisecond
	progressPlain    = 5 * time.Second
)

// progress turns snapshots into one line.
type progress struct {
	lastLag int64
	lastAt  time.Time
	// drain is by how many records a second the lag has shrunk of late, smoothed.
	drain float64
}

// line describes a snapshot taken at now.
func (p *progress) line(s api.Snapshot, now time.Time) string {
	var (
		lag            int64
		records, bytes float64
		halted, dark   int
		n              = len(s.Partitions)
	)
	for i := range s.Partitions {
		part := &s.Partitions[i]
		lag += max(part.LagRecords, 0)
		if part.LagRecords < 0 {
			dark++
		}
		records += part.RecordsPerSecond
		bytes += part.BytesPerSecond
		if part.State == api.StateHalted {
			halted++
		}
	}
	p.observe(lag, now)
	behind := count(lag)
	if dark == n && (n > 0 || s.State != api.StateMirroring) {
		behind = "unknown"
	}
	text := fmt.Sprintf("%s  %s  lag %s  %s records/s  %s", s.State, plural(n, "partition"), behind, short(records), megabytes(bytes))
	switch {
	case s.State != api.StateMirroring || behind == "unknown": // the lag is what was known last
	case dark > 0 && lag == 0:
		text += fmt.Sprintf("  lag of %d unknown", dark)
	default:
		text += "  " + p.catchUp(n, lag, records)
	}
	if halted > 0 {
		text += fmt.Sprintf("  %d halted", halted)
	}
	if s.Reason != "" {
		text += "  (" + s.Reason + ")"
	}
	return text
}

func (p *progress) observe(lag int64, now time.Time) {
	if elapsed := now.Sub(p.lastAt).Seconds(); !p.lastAt.IsZero() && elapsed > 0 {
		weight := 1 - math.Exp(-elapsed/5) // about the last five seconds
		p.drain += weight * (float64(p.lastLag-lag)/elapsed - p.drain)
	}
	p.lastLag, p.lastAt = lag, now
}

// catchUp says when the lag is gone if it goes on shrinking as it does. What is copied within a second is on its way, and no lag.
func (p *progress) catchUp(partitions int, lag int64, perSecond float64) string {
	switch {
	case partitions == 0:
		return "no topic to mirror yet"
	case float64(lag) <= perSecond, lag == 0:
		return "caught up"
	case p.drain < 1:
		return "not gaining"
	default:
		return "caught up in " + seconds(float64(lag)/p.drain)
	}
}

// showProgress shows the line until ctx ends, and once more then.
func showProgress(ctx context.Context, s *screen, snapshot func() api.Snapshot) {
	every := progressPlain
	if s.terminal {
		every = progressTerminal
	}
	var p progress
	for pause(ctx, every) {
		s.show(p.line(snapshot(), time.Now()))
	}
	s.finish()
}
