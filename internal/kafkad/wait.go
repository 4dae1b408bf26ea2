package kafkad

import (
	"context"
	"fmt"
	"strings"
	"time"
)

const (
	// ReadyWithin is how long a server may take until it serves. It is generous: several Java servers may be starting on two cores.
	ReadyWithin = 2 * time.Minute
	// StartTries bounds how often a start is repeated with other ports.
	StartTries = 3
	// tailLines is how much of a server's log Tail gives.
	tailLines = 40
)

// Until waits until probe succeeds, and gives up at once when the process has ended.
func (p *Process) Until(ctx context.Context, probe func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	err := Poll(ctx, ReadyWithin, func(ctx context.Context) error {
		if !p.Running() {
			cancel(fmt.Errorf("%s ended before it served", p.Name))
			return context.Cause(ctx)
		}
		return probe(ctx)
	})
	if err != nil {
		return fmt.Errorf("start %s: %w\n%s", p.Name, err, p.Tail())
	}
	return nil
}

// Unlucky says whether the process ended for a reason that another start may not have: somebody else listens on its port, or the machine
// was so busy that its session with ZooKeeper was over before it had begun.
func (p *Process) Unlucky() bool {
	log := p.Log()
	return strings.Contains(log, "Address already in use") || p.LostSession()
}

// LostSession says whether the process ended, now or at an earlier start, because its session with ZooKeeper was over too soon.
func (p *Process) LostSession() bool {
	log := p.Log()
	return strings.Contains(log, "Session expired either before or while waiting") || strings.Contains(log, "KeeperErrorCode = Session expired")
}

// Poll calls probe until it returns nil, ctx ends or the time is over; then it returns what probe said last.
func Poll(ctx context.Context, within time.Duration, probe func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		err := probe(ctx)
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil { // an end of time says less than what was the matter before
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (waited: %w)", last, context.Cause(ctx))
		case <-tick.C:
		}
	}
}
