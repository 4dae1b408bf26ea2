package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/causeway-mirror/causeway/api"
	"github.com/causeway-mirror/causeway/controller"
	"github.com/causeway-mirror/causeway/route"
)

// joinTimeout bounds the question who leads.
const joinTimeout = 2 * time.Second

// view is the route as its controller shows it: what should be mirrored and how far it is, with what the workers say of it.
type view struct {
	controller *controller.Controller
	mapped     func(topic string) string // a topic's name on the target; empty if only the workers know it
	crew       *crew
	draining   atomic.Bool
	joined     atomic.Bool // it has known a leader
}

// look asks the workers until ctx ends.
func (v *view) look(ctx context.Context, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		if _, err := v.controller.Term(); err == nil {
			_, _ = v.crew.look(ctx) // what does not answer is looked at again
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Snapshot implements api.Mirror.
func (v *view) Snapshot() api.Snapshot {
	if v.draining.Load() {
		return api.Snapshot{State: api.StateDraining, Reason: "shutting down"}
	}
	t, err := v.controller.Term()
	if err != nil {
		ctx, cancel := context.WithTimeout(context.Background(), joinTimeout)
		defer cancel()
		return v.standingBy(v.controller.Leader(ctx))
	}
	v.joined.Store(true)
	s := t.State()
	known := v.crew.seen()
	out := api.Snapshot{State: api.StateMirroring}
	for _, name := range t.Topics() {
		topic := s.Topics[name]
		for p := range topic.Partitions {
			out.Partitions = append(out.Partitions, v.partition(t, s, topic, route.Partition{Topic: name, Partition: p}, known))
		}
	}
	taken := func(p api.Partition) bool { return p.State != api.StateUnassigned }
	if n := len(out.Partitions); n > 0 && !slices.ContainsFunc(out.Partitions, taken) {
		out.State, out.Reason = api.StateDegraded, fmt.Sprintf("no worker can take any of its partitions, of which there are %d", n)
	}
	return out
}

// standingBy is what one that does not lead says, by who does as far as it knows.
func (v *view) standingBy(leader controller.Leader, err error) api.Snapshot {
	if err == nil && leader.ID != "" {
		v.joined.Store(true)
		return api.Snapshot{State: api.StateStandby, Reason: leader.ID + " leads"}
	}
	out := api.Snapshot{State: api.StateStarting, Reason: "nobody leads the cluster, or ZooKeeper does not answer"}
	if err != nil {
		out.Reason = "the cluster can't be reached: " + err.Error()
	}
	if v.joined.Load() {
		out.State = api.StateSuspended
	}
	return out
}

// partition is one as it should be and as it is.
func (v *view) partition(t *controller.Term, s *controller.State, topic controller.Topic, p route.Partition, known map[route.Partition]reports) api.Partition {
	one, told := v.shown(s, topic, p, known[p].of(topic.Owner(p.Partition)))
	if other := topic.Standby(p.Partition); other != "" && one.State == api.StateMirroring && one.Reason == "" {
		one.Reason = "hot standby: " + other
	}
	if lag, ok := t.Lag(p); ok && (!told || one.LagRecords < 0 || one.State == api.StatePaused) { // a paused one looks at nothing
		one.SourceLastStable, one.Committed = lag.End, lag.Committed
		one.LagRecords, one.LagSeconds = lag.Records, lag.Time.Seconds()
		if one.LagBytes = 0; lag.Records != 0 {
			one.LagBytes = -1 // only a worker that has copied some knows about how large they are
		}
	}
	return one
}

// shown is a partition by what its worker last said, as long as that is the owner, which told says; else by what should be. Where it goes on the
// target any worker knows that ever had it.
func (v *view) shown(s *controller.State, topic controller.Topic, p route.Partition, last api.Partition) (one api.Partition, told bool) {
	owner := topic.Owner(p.Partition)
	if one, told = last, last.Worker != "" && last.Worker == owner; !told {
		one = api.Partition{
			Topic: p.Topic, Partition: p.Partition, TargetPartition: p.Partition, Worker: owner,
			Extent:   api.Extent{SourceStart: route.NoOffset, SourceEnd: route.NoOffset, SourceLastStable: route.NoOffset},
			Position: route.NoOffset, Acked: route.NoOffset, TargetEnd: route.NoOffset, Committed: route.NoOffset,
			LagRecords: -1, LagBytes: -1,
		}
		one.State, one.Reason = standing(s, topic, p, owner)
		if quiet := v.crew.quiet(owner); quiet > 0 && one.State == api.StateMirroring {
			one.State, one.Reason = api.StateDegraded, "its worker "+owner+" has not answered for "+quiet.String()
		}
		if last.TargetTopic != "" {
			one.TargetTopic, one.TargetPartition = last.TargetTopic, last.TargetPartition
		}
	}
	if one.TargetTopic == "" {
		one.TargetTopic = v.mapped(p.Topic)
	}
	return one, told
}

// standing says how a partition is, as far as ideal state and external view tell.
func standing(s *controller.State, topic controller.Topic, p route.Partition, owner string) (state, reason string) {
	switch {
	case owner == "":
		return api.StateUnassigned, "no worker can take it"
	case !s.Workers[owner].Live:
		return api.StateUnassigned, "its worker " + owner + " is gone"
	case topic.Off(p.Partition):
		return api.StatePaused, "it is blacklisted"
	case s.Paused(p.Topic):
		return api.StatePaused, "its topic is paused"
	}
	switch s.Views[p.Topic][p.Partition][owner] {
	case controller.Online:
		return api.StateMirroring, ""
	case controller.Failed:
		return api.StateHalted, "its worker reports ERROR"
	}
	return api.StateStarting, "its worker has not begun yet"
}

// Excluded implements api.Mirror. What is given to workers and not copied by them stands beside what is not mirrored at all.
func (v *view) Excluded() []api.Excluded {
	out := []api.Excluded{}
	if t, err := v.controller.Term(); err == nil {
		reasons := maps.Clone(v.crew.excluded())
		if reasons == nil {
			reasons = map[string]string{}
		}
		maps.Copy(reasons, t.Excluded())
		for topic, reason := range reasons {
			out = append(out, api.Excluded{Topic: topic, Reason: reason})
		}
	}
	slices.SortFunc(out, func(a, b api.Excluded) int { return strings.Compare(a.Topic, b.Topic) })
	return out
}

// WaitCaughtUp implements api.Mirror.
func (v *view) WaitCaughtUp(ctx context.Context, topic string, lag int64) (present int64, ok bool, err error) {
	t, err := v.controller.Term()
	if err != nil {
		return 0, false, errors.New("this controller does not lead")
	}
	return t.CaughtUp(ctx, topic, lag)
}
