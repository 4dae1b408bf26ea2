package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/causeway-mirror/causeway/api"
	"github.com/causeway-mirror/causeway/controller"
	"github.com/causeway-mirror/causeway/operator"
	"github.com/causeway-mirror/causeway/route"
)

// leadership shows the controller to the API.
type leadership struct {
	controller *controller.Controller
	crew       *crew
	office     *postOffice
	compares   bool
	interval   time.Duration // between two measurements of lag
}

// Fleet implements api.Leadership.
func (l *leadership) Fleet() (api.Fleet, bool) {
	t, err := l.controller.Term()
	if err != nil {
		return nil, false
	}
	return &fleet{Term: t, crew: l.crew, office: l.office, compares: l.compares, interval: l.interval}, true
}

// Leader implements api.Leadership.
func (l *leadership) Leader(ctx context.Context) (id, address string) {
	leader, err := l.controller.Leader(ctx)
	if err != nil {
		return "", ""
	}
	return leader.ID, leader.Address
}

// fleet is a term of leadership as the API sees it. What the two have in common is the term's own.
type fleet struct {
	*controller.Term

	crew     *crew
	office   *postOffice
	compares bool
	interval time.Duration
}

// meaning gives the controller's errors the API's meaning.
func meaning(err error) error {
	var (
		exists  *controller.ExistsError
		gone    *controller.NotFoundError
		absent  *controller.AbsentError
		already *controller.AlreadyError
		invalid *controller.InvalidError
	)
	var kind error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &exists):
		kind = api.ErrExists
	case errors.As(err, &gone):
		kind = api.ErrNotFound
	case errors.As(err, &absent):
		kind = api.ErrAbsent
	case errors.As(err, &already):
		kind = api.ErrAlready
	case errors.As(err, &invalid):
		kind = api.ErrInvalid
	case errors.Is(err, controller.ErrNoSource):
		kind = api.ErrNoSource
	case errors.Is(err, controller.ErrNotLeader):
		kind = api.ErrNoLeader
	default:
		return err
	}
	return fmt.Errorf("%w: %w", kind, err)
}

// Topic implements api.Fleet.
func (f *fleet) Topic(name string) (api.FleetTopic, bool) {
	topic, view, err := f.Term.Topic(name)
	return api.FleetTopic{Partitions: topic.Partitions, Ideal: topic.Assigned, External: view}, err == nil
}

// Add implements api.Fleet.
func (f *fleet) Add(ctx context.Context, topic string, partitions int32) error {
	return meaning(f.Term.Add(ctx, topic, partitions))
}

// AddFromSource implements api.Fleet.
func (f *fleet) AddFromSource(ctx context.Context, topic string) (int32, error) {
	if !f.compares {
		return 0, api.ErrNoSource
	}
	n, err := f.Term.AddFromSource(ctx, topic)
	return n, meaning(err)
}

// InSource implements api.Fleet.
func (f *fleet) InSource(ctx context.Context, topic string) (int32, error) {
	n, err := f.Term.InSource(ctx, topic)
	return n, meaning(err)
}

// SetBalancing implements api.Fleet.
func (f *fleet) SetBalancing(ctx context.Context, on bool) error {
	return meaning(f.Term.SetBalancing(ctx, on))
}

// Expand implements api.Fleet.
func (f *fleet) Expand(ctx context.Context, topic string, partitions int32) error {
	return meaning(f.Term.Expand(ctx, topic, partitions))
}

// Delete implements api.Fleet.
func (f *fleet) Delete(ctx context.Context, topic string) error {
	return meaning(f.Term.Delete(ctx, topic))
}

// TakeOff implements api.Fleet.
func (f *fleet) TakeOff(ctx context.Context, p route.Partition, off bool) error {
	return meaning(f.Term.TakeOff(ctx, p, off))
}

// RetryDeadLetters implements api.Operator.
func (f *fleet) RetryDeadLetters(ctx context.Context, topic string) (api.DeadLetters, error) {
	if _, _, err := f.Term.Topic(topic); err != nil {
		return api.DeadLetters{}, meaning(err)
	}
	return f.office.putBack(ctx, topic)
}

// DeadLetters implements api.Operator.
func (f *fleet) DeadLetters(ctx context.Context, topic string) ([]api.DeadLetter, error) {
	if _, _, err := f.Term.Topic(topic); err != nil {
		return nil, meaning(err)
	}
	return f.office.list(ctx, topic)
}

// PausePartition implements api.Operator.
func (f *fleet) PausePartition(ctx context.Context, p route.Partition, on bool) error {
	if err := f.TakeOff(ctx, p, on); !errors.Is(err, api.ErrAlready) { // else what is asked for holds
		return err
	}
	return nil
}

// PauseTopic implements api.Operator.
func (f *fleet) PauseTopic(ctx context.Context, topic string, on bool) error {
	return meaning(f.Term.PauseTopic(ctx, topic, on))
}

// LimitTopic implements api.Operator.
func (f *fleet) LimitTopic(ctx context.Context, topic string, l operator.Limits) error {
	return meaning(f.Term.LimitTopic(ctx, topic, l))
}

// LimitPartition implements api.Operator.
func (f *fleet) LimitPartition(ctx context.Context, p route.Partition, l operator.Limits) error {
	return meaning(f.Term.LimitPartition(ctx, p, l))
}

// Reset implements api.Operator.
func (f *fleet) Reset(ctx context.Context, p route.Partition, to operator.Place) error {
	return meaning(f.Term.Reset(ctx, p, to))
}

// Retry implements api.Operator.
func (f *fleet) Retry(ctx context.Context, p route.Partition) error {
	return meaning(f.Term.Retry(ctx, p))
}

// Drain implements api.Fleet.
func (f *fleet) Drain(ctx context.Context, worker string, on bool) error {
	return meaning(f.Term.Drain(ctx, worker, on))
}

// Rebalance implements api.Fleet.
func (f *fleet) Rebalance(ctx context.Context) error {
	_, err := f.Term.Rebalance(ctx)
	return meaning(err)
}

// Move implements api.Fleet.
func (f *fleet) Move(ctx context.Context, p route.Partition, worker string) error {
	return meaning(f.Term.Move(ctx, p, worker))
}

// Backup implements api.Fleet.
func (f *fleet) Backup() ([]byte, error) { return json.Marshal(f.Save()) }

// Restore implements api.Fleet.
func (f *fleet) Restore(ctx context.Context, backup []byte) error {
	var saved controller.Saved
	if err := json.Unmarshal(backup, &saved); err != nil {
		return fmt.Errorf("%w: it is no backup: %w", api.ErrInvalid, err)
	}
	return meaning(f.Term.Restore(ctx, saved))
}

// Workers implements api.Fleet.
func (f *fleet) Workers() []api.FleetWorker {
	loads := f.Loads()
	out := make([]api.FleetWorker, 0, len(loads))
	for _, l := range loads {
		w := api.FleetWorker{
			ID: l.Worker.ID, Live: l.Worker.Live, Draining: l.Worker.Draining, Standby: l.Standby, Partitions: l.Partitions,
			Rates: map[route.Partition]api.FleetRate{},
		}
		if w.Live {
			w.Silent = f.crew.quiet(w.ID)
		}
		for _, p := range l.Partitions {
			if rate, ok := f.Rate(p); ok && w.Silent == 0 { // what it was is not what it is
				w.Rates[p] = api.FleetRate{Bytes: rate.Bytes, Messages: rate.Messages}
			}
		}
		out = append(out, w)
	}
	return out
}

// Validation implements api.Fleet.
func (f *fleet) Validation() api.FleetValidation {
	v := f.Validate()
	return api.FleetValidation{
		Topics: v.Topics, ErrorTopics: v.ErrorTopics, Partitions: v.Partitions, Online: v.Online, Offline: v.Offline, Error: v.Error,
		Ideal: v.Ideal, External: v.External,
	}
}

// Compare implements api.Fleet.
func (f *fleet) Compare(ctx context.Context) (api.FleetDiscrepancy, error) {
	if !f.compares {
		return api.FleetDiscrepancy{}, api.ErrNoSource
	}
	d, err := f.Term.Compare(ctx)
	return api.FleetDiscrepancy{Missing: d.Missing, Partitions: d.Partitions, Mismatched: d.Mismatched}, meaning(err)
}

// Lag implements api.Fleet.
func (f *fleet) Lag(p route.Partition) (api.FleetLag, bool) {
	s, ok := f.Term.Lag(p)
	if !ok {
		return api.FleetLag{}, false
	}
	late, lagging := f.Lagging(p)
	if lagging {
		s = late
	}
	return api.FleetLag{At: s.At, End: s.End, Committed: s.Committed, Records: s.Records, Time: s.Time, Lagging: lagging}, true
}

// lateRuns is how many intervals without a measurement are unhealthy.
const lateRuns = 2

// Healthy implements api.Fleet. Before the first measurement is due nothing is wrong yet.
func (f *fleet) Healthy() bool {
	if f.interval <= 0 {
		return true
	}
	at, _ := f.LagRun()
	if at.IsZero() {
		at = f.Began()
	}
	return time.Since(at) < max(lateRuns*f.interval, askTimeout)
}
