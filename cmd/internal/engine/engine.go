package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/causeway-mirror/causeway/api"
	"github.com/causeway-mirror/causeway/connector"
	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/handler"
	"github.com/causeway-mirror/causeway/internal/native"
	"github.com/causeway-mirror/causeway/loops"
	"github.com/causeway-mirror/causeway/mirror"
	"github.com/causeway-mirror/causeway/offsets"
)

// KeptEvents is how many events stay in memory.
const KeptEvents = 10_000

// StopGrace is what a mirror gets on top of its own shutdown timeout before it is given up.
const StopGrace = 5 * time.Second

// Deps are what an Engine is built from besides the file.
type Deps struct {
	Log        hclog.Logger
	Registerer prometheus.Registerer
	Store      offsets.Store
	Events     *events.Log
	Handler    *handler.Handler
	Share      bool // other workers run the partitions that this one does not
}

// Engine is the data path of a route on one worker: the connector in the API's words.
type Engine struct {
	*connector.Connector

	worker string
}

// New builds the data path; it does no IO.
func New(f *native.File, worker string, deps Deps) (*Engine, error) {
	cfg, err := Config(f, time.Now())
	if err != nil {
		return nil, err
	}
	cfg.Share = deps.Share
	c, err := connector.New(cfg, connector.Deps{
		Log: deps.Log, Registerer: deps.Registerer, Route: f.RouteName(), Worker: worker, Source: f.Route.Source, Target: f.Route.Target,
		Store: deps.Store, Events: deps.Events, Handler: deps.Handler,
	})
	if err != nil {
		return nil, err
	}
	return &Engine{Connector: c, worker: worker}, nil
}

// Config maps the file; now is what a start some time back is counted from.
func Config(f *native.File, now time.Time) (connector.Config, error) {
	inFlight, err := f.InFlight()
	if err != nil {
		return connector.Config{}, err
	}
	cfg := connector.DefaultConfig()
	cfg.Streams, cfg.Fetchers, cfg.MemoryBytes = f.Worker.Streams, f.Worker.Fetchers, int64(f.Worker.Memory)
	cfg.InFlightBytes, cfg.AckWindow = inFlight, f.Worker.AckWindow
	cfg.CommitInterval, cfg.ShutdownTimeout = f.Worker.CommitInterval.Duration(), f.Worker.ShutdownTimeout.Duration()
	cfg.Isolation, cfg.CreateTopics = f.Route.Isolation, f.Route.Topics.Create
	cfg.Limits = mirror.Limits{RecordsPerSecond: f.Route.Limits.RecordsPerSecond, BytesPerSecond: float64(f.Route.Limits.BytesPerSecond)}
	cfg.Selection = Selection(f)
	cfg.DropLoops = f.Route.Loops == native.LoopsDrop
	cfg.LoopInterval = f.Route.Topics.DiscoverInterval.Duration()
	cfg.On = mirror.PoliciesOf(f.Route.On)
	cfg.Spill = f.Spill()
	cfg.DeadLetter = f.Route.DeadLetter.Topic
	cfg.Company = company(f)
	cfg.Start = f.Route.Start
	if back, err := time.ParseDuration(f.Route.Start); err == nil {
		cfg.Start = now.Add(-back).UTC().Format(time.RFC3339)
	}
	return cfg, nil
}

// company says of a topic who else may have one of its partitions at the same time.
func company(f *native.File) func(topic string) mirror.Company {
	return func(topic string) mirror.Company {
		switch {
		case f.Replicas(topic) > 1:
			return mirror.Standby
		case f.Controller.Rebalance.Handover == native.HandoverOverlap:
			return mirror.FormerOwner
		default:
			return mirror.Alone
		}
	}
}

// Selection is what the route takes of its source by name.
func Selection(f *native.File) loops.Selection {
	return loops.Selection{Include: f.Route.Topics.Include, Exclude: f.Route.Topics.Exclude, Rename: f.Renamed()}
}

// Snapshot translates the connector's status.
func (e *Engine) Snapshot() api.Snapshot {
	status := e.Status()
	s := api.Snapshot{State: status.State, Reason: status.Reason, Partitions: make([]api.Partition, len(status.Partitions))}
	for i := range status.Partitions {
		p := &status.Partitions[i]
		s.Partitions[i] = api.Partition{
			Topic: p.Source.Topic, Partition: p.Source.Partition, TargetTopic: p.Target.Topic, TargetPartition: p.Target.Partition,
			Worker: e.worker, State: p.State, Reason: p.Reason,
			Extent:   api.Extent{SourceStart: p.Extent.Start, SourceEnd: p.Extent.End, SourceLastStable: p.Extent.LastStable},
			Position: p.Position, Acked: p.Acked, Committed: p.Committed, TargetEnd: p.TargetEnd,
			LagRecords: p.LagRecords, LagBytes: p.LagBytes, LagSeconds: p.LagSeconds, RecordsPerSecond: p.RecordsPerSecond, BytesPerSecond: p.BytesPerSecond,
			SpilledBytes: p.SpilledBytes, Path: p.Path, LastError: p.LastError,
		}
	}
	return s
}

// Excluded lists the topics that are not copied since they would come back to where they come from.
func (e *Engine) Excluded() []api.Excluded {
	circling := e.Circling()
	out := make([]api.Excluded, 0, len(circling))
	for _, topic := range slices.Sorted(maps.Keys(circling)) {
		out = append(out, api.Excluded{Topic: topic, Reason: circling[topic]})
	}
	return out
}

// WaitCaughtUp asks the connector, for every topic at once if none is named. Then lag holds for each topic, and present is their sum.
func (e *Engine) WaitCaughtUp(ctx context.Context, topic string, lag int64) (present int64, ok bool, err error) {
	names := map[string]struct{}{topic: {}}
	if topic == "" {
		clear(names)
		for _, p := range e.Status().Partitions {
			names[p.Source.Topic] = struct{}{}
		}
	}
	type answer struct {
		present int64
		ok      bool
	}
	answers := make([]answer, len(names))
	i := 0
	group, waiting := errgroup.WithContext(ctx)
	for name := range names {
		at := &answers[i]
		i++
		group.Go(func() (err error) {
			at.present, at.ok, err = e.Connector.WaitCaughtUp(waiting, name, lag)
			return err
		})
	}
	if err = group.Wait(); err != nil {
		return 0, false, fmt.Errorf("read the source's ends: %w", err)
	}
	ok = true
	for _, a := range answers {
		present += a.present
		ok = ok && a.ok
	}
	return present, ok, nil
}
