package statemodel

import (
	"context"
	"slices"
	"time"

	"github.com/causeway-mirror/causeway/route"
)

// Recover has partitions leave ERROR, each when its pause is over, until ctx ends. reset asks the cluster for the step from ERROR to OFFLINE,
// which then comes as every other step; what fails is asked for again after the longest pause.
func (m *Model) Recover(ctx context.Context, reset func(ctx context.Context, p route.Partition) error) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.retry:
		case <-timer.C:
		}
		due, next := m.due()
		for _, p := range due {
			if err := reset(ctx, p); err != nil && ctx.Err() == nil {
				m.deps.Log.Warn("partition can't leave error yet", "partition", p.String(), "err", err)
			}
		}
		if next > 0 {
			timer.Reset(next)
		}
	}
}

// due lists the partitions to be tried anew, and when the next one will be due; 0: there is none.
func (m *Model) due() (due []route.Partition, next time.Duration) {
	now := m.deps.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	for p, e := range m.entries {
		if e.state != Error {
			continue
		}
		if !e.retryAt.After(now) {
			due = append(due, p)
			e.retryAt = now.Add(m.cfg.RetryMost)
		}
		if wait := e.retryAt.Sub(now); next == 0 || wait < next {
			next = wait
		}
	}
	slices.SortFunc(due, route.Partition.Compare)
	return due, next
}
