package main

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/causeway-mirror/causeway/api"
	"github.com/causeway-mirror/causeway/connector"
)

// engine is the connector in the API's words.
type engine struct {
	*connector.Connector

	worker string
}

// newMirror builds the data path of a route.
func newMirror(s settings, deps mirrorDeps) (mirrorer, error) {
	cfg, err := connectorConfig(s, time.Now())
	if err != nil {
		return nil, err
	}
	c, err := connector.New(cfg, connector.Deps{
		Log: deps.log, Registerer: deps.registerer, Route: s.RouteName(), Worker: s.worker(), Source: s.Route.Source, Target: s.Route.Target,
		Store: deps.store, Events: deps.events, Handler: deps.handler,
	})
	if err != nil {
		return nil, err
	}
	return &engine{Connector: c, worker: s.worker()}, nil
}

// connectorConfig maps the settings; now is what a start some time back is counted from.
func connectorConfig(s settings, now time.Time) (connector.Config, error) {
	inFlight, err := s.InFlight()
	if err != nil {
		return connector.Config{}, err
	}
	cfg := connector.DefaultConfig()
	cfg.Streams, cfg.Fetchers, cfg.MemoryBytes = s.Worker.Streams, s.Worker.Fetchers, int64(s.Worker.Memory)
	cfg.InFlightBytes, cfg.AckWindow = inFlight, s.Worker.AckWindow
	cfg.CommitInterval, cfg.ShutdownTimeout = s.Worker.CommitInterval.Duration(), s.Worker.ShutdownTimeout.Duration()
	cfg.Isolation, cfg.Delivery, cfg.CreateTopics = s.Route.Isolation, s.Route.Delivery, s.Route.Topics.Create
	cfg.Start = s.Route.Start
	if back, err := time.ParseDuration(s.Route.Start); err == nil {
		cfg.Start = now.Add(-back).UTC().Format(time.RFC3339)
	}
	return cfg, nil
}

// Snapshot translates the connector's status.
func (e *engine) Snapshot() api.Snapshot {
	status := e.Status()
	s := api.Snapshot{State: status.State, Reason: status.Reason, Partitions: make([]api.Partition, len(status.Partitions))}
	for i := range status.Partitions {
		p := &status.Partitions[i]
		s.Partitions[i] = api.Partition{
			Topic: p.Source.Topic, Partition: p.Source.Partition, TargetTopic: p.Target.Topic, TargetPartition: p.Target.Partition,
			Worker: e.worker, State: p.State, Reason: p.Reason,
			SourceStart: p.SourceStart, SourceEnd: p.SourceEnd, SourceLastStable: p.SourceLastStable,
			Position: p.Position, Acked: p.Acked, Committed: p.Committed, TargetEnd: p.TargetEnd,
			LagRecords: p.LagRecords, LagSeconds: p.LagSeconds, RecordsPerSecond: p.RecordsPerSecond, BytesPerSecond: p.BytesPerSecond,
			Path: p.Path, LastError: p.LastError,
		}
	}
	return s
}

// WaitCaughtUp asks the connector, for every topic at once if none is named. Then lag holds for each topic, and present is their sum.
func (e *engine) WaitCaughtUp(ctx context.Context, topic string, lag int64) (present int64, ok bool, err error) {
	if topic != "" {
		return e.Connector.WaitCaughtUp(ctx, topic, lag)
	}
	names := map[string]struct{}{}
	for _, p := range e.Status().Partitions {
		names[p.Source.Topic] = struct{}{}
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
	err = group.Wait()
	ok = err == nil
	for _, a := range answers {
		present += a.present
		ok = ok && a.ok
	}
	return present, ok, err
}
