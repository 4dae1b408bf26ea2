package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/causeway-mirror/causeway/api"
	"github.com/causeway-mirror/causeway/cluster"
	"github.com/causeway-mirror/causeway/cmd/internal/engine"
	"github.com/causeway-mirror/causeway/cmd/internal/httpd"
	"github.com/causeway-mirror/causeway/cmd/internal/program"
	"github.com/causeway-mirror/causeway/connector"
	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/handler"
	"github.com/causeway-mirror/causeway/internal/native"
	"github.com/causeway-mirror/causeway/letters"
	"github.com/causeway-mirror/causeway/offsets/bolt"
	"github.com/causeway-mirror/causeway/operator"
	"github.com/causeway-mirror/causeway/route"
)

// mirrorer is what moves the data: the connector, or a fake in tests.
type mirrorer interface {
	// Run returns after drain and commit, once ctx has ended.
	Run(ctx context.Context) error
	// Add is idempotent and returns at once.
	Add(parts ...route.Partition)
	// Snapshot, Excluded, WaitCaughtUp: see api.Mirror.
	Snapshot() api.Snapshot
	Excluded() []api.Excluded
	WaitCaughtUp(ctx context.Context, topic string, lag int64) (present int64, ok bool, err error)
	// Configure, Retry, Reset, PutBack, DeadLetters: see connector.Connector.
	Configure(topic string, t operator.Topic)
	Retry(p route.Partition) bool
	Reset(ctx context.Context, p route.Partition, r connector.Reset) error
	PutBack(ctx context.Context, source string) (topic string, r letters.Result, err error)
	DeadLetters(ctx context.Context, source string) ([]letters.Letter, error)
	httpd.Dictionary
}

// service is a whole mirror in one process: discovery, mirror, store and HTTP.
type service struct {
	settings  settings
	log       hclog.Logger
	listener  net.Listener
	store     *bolt.Store
	admins    []*cluster.Admin
	mirror    mirrorer
	desk      *desk
	discovery *discovery
	history   *engine.History
	server    *api.Server
	draining  atomic.Bool
}

// newLogger writes to w as the settings say.
func newLogger(s *settings, w io.Writer) hclog.Logger { return s.Logger("causeway", w) }

// openService takes what the process needs of its surroundings: port, folder, files. What it cannot have it names, all at once. The caller
// calls run, which closes everything, or close.
func openService(ctx context.Context, s settings, log hclog.Logger, build func(settings, engine.Deps) (mirrorer, error)) (*service, error) {
	v := &service{settings: s, log: log}
	var faults []error
	var err error
	if v.listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", s.Server.Listen); err != nil {
		faults = append(faults, fault("server.listen (--listen)", s.Server.Listen, err.Error()))
	}
	if v.store, err = bolt.Open(s.Offsets.Dir); err != nil {
		faults = append(faults, fault(s.stateKey, s.Offsets.Dir, err.Error()))
	}
	h, err := handler.New(s.Route.Topics.Config, s.Route.Source.Name, s.Route.Target.Name)
	if err != nil {
		faults = append(faults, native.TopicFaults(err))
	}
	if err = errors.Join(faults...); err == nil {
		err = v.assemble(ctx, h, build)
	}
	if err != nil {
		return nil, errors.Join(err, v.close())
	}
	return v, nil
}

// assemble builds the parts, in the order in which they need each other.
func (v *service) assemble(ctx context.Context, h *handler.Handler, build func(settings, engine.Deps) (mirrorer, error)) error {
	s := &v.settings
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		engine.NewCertificates(s.RouteName().String(), s.Route.Source, s.Route.Target), engine.NewDisk(s.RouteName().String(), s.Offsets.Dir))
	log := events.NewLog(s.RouteName(), s.worker(), engine.KeptEvents, v.log.Named("events"), registry)
	filter, err := s.filter()
	if err != nil {
		return err
	}
	v.history = engine.NewHistory(log, v.store, v.log.Named("events"))
	if err = v.history.Load(ctx); err != nil {
		return err
	}
	if v.mirror, err = build(*s, engine.Deps{Log: v.log, Registerer: registry, Store: v.store, Events: log, Handler: h}); err != nil {
		return err
	}
	if v.desk, err = openDesk(s.Offsets.Dir, v.mirror, v.log.Named("desk")); err != nil {
		return err
	}
	source := cluster.NewAdmin(s.Route.Source, v.log.Named("source"))
	target := cluster.NewAdmin(s.Route.Target, v.log.Named("target"))
	v.admins = []*cluster.Admin{source, target}
	v.discovery = &discovery{
		source: source, target: target, sourceName: partName("source", s.Route.Source), targetName: partName("target", s.Route.Target),
		mirror: v.mirror, store: v.store, mapper: h, filter: filter, events: log, log: v.log.Named("discovery"),
		interval: s.Route.Topics.DiscoverInterval.Duration(), oneCluster: native.SameCluster(s.Route.Source.Bootstrap, s.Route.Target.Bootstrap),
	}
	for _, c := range []cluster.Config{s.Route.Source, s.Route.Target} {
		if len(c.Ignored) > 0 {
			v.log.Warn("properties that have no bearing here are ignored", "cluster", c.Name, "keys", strings.Join(c.Ignored, ","))
		}
	}
	v.server, err = api.New(httpd.Config(s.Server), api.Deps{
		Log: v.log.Named("api"), Mirror: v, Events: v.history, Registry: registry, Operator: v.desk, Translator: httpd.Translator{Dictionary: v.mirror},
		Identity: api.Identity{Role: "standalone", Version: version, Revision: program.BuiltFrom(revision), Worker: s.worker(), Route: s.RouteName(), Started: time.Now()},
	})
	return err
}

func clusterName(c cluster.Config) string {
	return c.Name + " (" + strings.Join(c.Bootstrap, ",") + ")"
}

// partName is clusterName with the cluster's part in the route, which is its name if nobody has given it another one.
func partName(part string, c cluster.Config) string {
	if c.Name == part {
		return clusterName(c)
	}
	return part + " " + clusterName(c)
}

// address is where the API listens.
func (v *service) address() string {
	if v.settings.Server.TLS.On() {
		return "https://" + v.listener.Addr().String()
	}
	return "http://" + v.listener.Addr().String()
}

// run mirrors until ctx ends or the mirror fails, and closes everything. The API is the last to stop: while the mirror drains, people and
// probes want to see it.
func (v *service) run(ctx context.Context) error {
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServing()
	working, stopWorking := context.WithCancel(ctx)
	defer stopWorking()
	var (
		wg       sync.WaitGroup
		serveErr error
	)
	wg.Go(func() {
		if serveErr = v.server.Run(serving, v.listener); serveErr != nil {
			stopWorking() // a mirror that nobody can watch must not go on unnoticed
		}
	})
	wg.Go(func() { v.discovery.run(working) })
	wg.Go(func() { v.desk.run(working) })
	wg.Go(func() {
		if err := v.history.Keep(serving); err != nil {
			v.log.Error("errors are no longer kept over a restart", "err", err)
		}
	})
	err := v.runMirror(working)
	stopWorking()
	stopServing()
	wg.Wait()
	return errors.Join(err, asExit(serveErr), asExit(v.close()))
}

// runMirror runs the mirror and waits for its drain, but not for ever.
func (v *service) runMirror(ctx context.Context) error {
	done := make(chan error, 1)
	go func() { done <- v.mirror.Run(ctx) }() // owned by runMirror, unless it does not stop in time: then the process ends
	var err error
	select {
	case err = <-done:
		if err != nil && ctx.Err() == nil {
			return &exitError{exitFault, fmt.Errorf("mirror stopped: %w", err)}
		}
		return nil
	case <-ctx.Done():
	}
	v.draining.Store(true)
	v.log.Info("draining")
	limit := v.settings.Worker.ShutdownTimeout.Duration() + engine.StopGrace
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err = <-done:
	case <-timer.C:
		return &exitError{exitFault, fmt.Errorf("mirror did not stop within %s", limit)}
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		return &exitError{exitFault, fmt.Errorf("stop mirror: %w", err)}
	}
	v.log.Info("stopped")
	return nil
}

// close lets go of what was opened, in reverse order; what is not open is passed over.
func (v *service) close() error {
	var errs []error
	for _, a := range v.admins {
		errs = append(errs, a.Close())
	}
	if v.history != nil {
		v.history.Close()
	}
	if v.store != nil {
		errs = append(errs, v.store.Close())
	}
	if v.listener != nil {
		if err := v.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Snapshot is the mirror's, seen with what discovery knows: before the first discovery the route is starting, whatever the mirror says, and
// topics that cannot be mirrored stand halted among the others.
func (v *service) Snapshot() api.Snapshot {
	s := v.mirror.Snapshot()
	s.Partitions = slices.Concat(s.Partitions, v.discovery.halted())
	ready, trouble := v.discovery.state()
	switch {
	case v.draining.Load():
		s.State, s.Reason = api.StateDraining, "shutting down"
	case !ready && trouble == "":
		s.State, s.Reason = api.StateStarting, "asking both clusters for their topics"
	case !ready:
		s.State, s.Reason = api.StateStarting, trouble
	case trouble != "" && s.State == api.StateMirroring:
		s.State, s.Reason = api.StateDegraded, trouble
	}
	return s
}

// Excluded is discovery's, and what the mirror itself leaves out of what it was given.
func (v *service) Excluded() []api.Excluded {
	return slices.Concat(v.discovery.Excluded(), v.mirror.Excluded())
}

// WaitCaughtUp is the mirror's, but before the first discovery nothing is known to wait for, and what cannot be mirrored never catches up.
func (v *service) WaitCaughtUp(ctx context.Context, topic string, lag int64) (present int64, ok bool, err error) {
	select {
	case <-v.discovery.found(): // even if there is no time left to ask more
	default:
		select {
		case <-v.discovery.found():
		case <-ctx.Done():
			return 0, false, errors.New("the topics of the source are not known yet")
		}
	}
	if err = v.discovery.lacking(topic); err != nil {
		return 0, false, err
	}
	return v.mirror.WaitCaughtUp(ctx, topic, lag)
}
