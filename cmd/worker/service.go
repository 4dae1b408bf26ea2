package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
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
	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/handler"
	"github.com/causeway-mirror/causeway/internal/backoff"
	"github.com/causeway-mirror/causeway/internal/graphite"
	"github.com/causeway-mirror/causeway/internal/lines"
	"github.com/causeway-mirror/causeway/internal/native"
	"github.com/causeway-mirror/causeway/mirror"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/offsets/bolt"
	"github.com/causeway-mirror/causeway/offsets/zk"
	"github.com/causeway-mirror/causeway/statemodel"
)

// store is what a worker needs of a store of positions.
type store interface {
	offsets.Store
	offsets.EventReader
}

// distant is a store that may be out of reach.
type distant interface {
	// Trouble is why it was, at the last try.
	Trouble() error
}

// service is the process: the data path, its place in the cluster, and the API.
type service struct {
	settings settings
	log      hclog.Logger
	listener net.Listener // nil: no HTTP is served
	store    store
	registry *prometheus.Registry
	engine   *engine.Engine
	model    *statemodel.Model
	member   *member
	history  *engine.History
	server   *api.Server
	draining atomic.Bool
}

// serve runs until ctx ends.
func serve(ctx context.Context, s settings, stderr io.Writer) error {
	queue := lines.NewQueue()
	defer queue.Serve()(program.LastWords)
	log := s.Logger("causeway", queue.To(stderr))
	for _, warning := range s.warnings {
		log.Warn("an option is not what it seems", "warning", warning)
	}
	v, err := openService(ctx, s, log)
	if err != nil {
		return err
	}
	log.Info("worker starts", "api", v.address(), "cluster", s.Coordination.Cluster, "id", s.id, "version", version)
	return v.run(ctx)
}

// openService takes what the process needs of its surroundings. ZooKeeper and Kafka may be down: both are waited for. The caller calls run, which
// closes everything.
func openService(ctx context.Context, s settings, log hclog.Logger) (*service, error) {
	v := &service{settings: s, log: log, registry: prometheus.NewRegistry()}
	var faults []error
	var err error
	if !s.mute {
		if v.listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", s.Server.Listen); err != nil {
			faults = append(faults, native.Fault("server.listen", s.Server.Listen, err.Error()))
		}
	}
	if err = v.openStore(ctx); err != nil {
		faults = append(faults, err)
	}
	h, err := handler.New(s.Route.Topics.Config, s.Route.Source.Name, s.Route.Target.Name)
	if err != nil {
		faults = append(faults, native.Prefixed(err, "route.topics."))
	}
	if err = errors.Join(faults...); err == nil {
		err = v.assemble(h)
	}
	if err != nil {
		return nil, errors.Join(err, v.close())
	}
	return v, nil
}

func (v *service) openStore(ctx context.Context) error {
	s := &v.settings
	if s.Offsets.Store == native.StoreFile {
		kept, err := bolt.Open(s.Offsets.Dir)
		if err != nil {
			return native.Fault("offsets.dir", s.Offsets.Dir, err.Error())
		}
		v.store = kept
		return nil
	}
	cfg := zk.DefaultConfig()
	cfg.Address, cfg.Group, cfg.SessionTimeout = s.OffsetsZooKeeper(), s.Group(), max(s.Coordination.SessionTimeout.Duration(), leastSession)
	kept, err := zk.Open(ctx, cfg, v.log.Named("offsets"))
	if err != nil {
		return native.Prefixed(err, "offsets.")
	}
	v.store = kept
	return nil
}

// leastSession is the shortest session that the store of positions can do with; it needs none that is short, since it holds nothing in it.
const leastSession = 10 * time.Second

// assemble builds the parts, in the order in which they need each other.
func (v *service) assemble(h *handler.Handler) error {
	s := &v.settings
	v.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		engine.NewCertificates(s.RouteName().String(), s.Route.Source, s.Route.Target))
	if s.Offsets.Store == native.StoreFile {
		v.registry.MustRegister(engine.NewDisk(s.RouteName().String(), s.Offsets.Dir))
	}
	log := events.NewLog(s.RouteName(), s.id, engine.KeptEvents, v.log.Named("events"), v.registry)
	v.history = engine.NewHistory(log, v.store, v.log.Named("events"))
	for _, c := range []cluster.Config{s.Route.Source, s.Route.Target} {
		if len(c.Ignored) > 0 {
			v.log.Warn("properties that have no bearing here are ignored", "cluster", c.Name, "keys", strings.Join(c.Ignored, ","))
		}
	}
	var err error
	deps := engine.Deps{Log: v.log, Registerer: v.registry, Store: v.store, Events: log, Handler: h, Share: true}
	if v.engine, err = engine.New(&s.File, s.id, deps); err != nil {
		return err
	}
	v.model = statemodel.New(statemodel.DefaultConfig(), statemodel.Deps{Partitions: v.engine, Events: log, Log: v.log.Named("states")})
	if v.member, err = newMember(s, memberDeps{log: v.log, reg: v.registry, model: v.model, hands: v.engine, address: v.address()}); err != nil {
		return err
	}
	v.server, err = api.New(httpd.Config(s.Server), api.Deps{
		Log: v.log.Named("api"), Mirror: v, Events: v.history, Registry: v.registry, Fallback: v.fallback(), Session: v.member.session,
		Translator: httpd.Translator{Dictionary: v.engine},
		Identity:   api.Identity{Role: "worker", Version: version, Revision: program.BuiltFrom(revision), Worker: s.id, Route: s.RouteName(), Started: time.Now()},
	})
	return err
}

// fallback is uReplicator's own REST of a worker.
func (v *service) fallback() http.Handler {
	limits := v.settings.Route.Limits
	return api.NewRateLimiter(func(recordsPerSecond float64) error {
		if !v.settings.rateable {
			return errNoLimiter
		}
		v.engine.SetLimits(mirror.Limits{RecordsPerSecond: recordsPerSecond, BytesPerSecond: float64(limits.BytesPerSecond)})
		v.log.Info("rate set", "records_per_second", recordsPerSecond)
		return nil
	})
}

// errNoLimiter is what uReplicator's worker refuses, too.
var errNoLimiter = errors.New("no rate limiter: consumer.num.of.messages.rate is not set")

// address is where others reach the API; empty without HTTP.
func (v *service) address() string {
	if v.listener == nil {
		return ""
	}
	return httpd.Address(v.listener.Addr(), v.settings.Server, v.settings.hostname)
}

// run takes part in the cluster until ctx ends, and closes everything. First the partitions go and the cluster is left, while the data path and
// the store still work; the API is the last to stop: while partitions drain, people and probes want to see it.
func (v *service) run(ctx context.Context) error {
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServing()
	mirroring, stopMirroring := context.WithCancel(context.WithoutCancel(ctx))
	defer stopMirroring()
	working, stopWorking := context.WithCancel(ctx)
	defer stopWorking()
	var (
		parts    sync.WaitGroup
		serveErr error
	)
	if v.listener != nil {
		parts.Go(func() {
			if serveErr = v.server.Run(serving, v.listener); serveErr != nil {
				stopWorking() // a mirror that nobody can watch must not go on unnoticed
			}
		})
	}
	parts.Go(func() { v.remember(serving) })
	if v.settings.graphite.Address != "" {
		parts.Go(func() {
			graphite.New(v.settings.graphite, v.log.Named("graphite"), newFigures(v, time.Now()).read).Run(serving)
		})
	}
	mirrored := make(chan error, 1)
	go func() { // owned by run, unless it does not stop in time: then the process ends
		err := v.engine.Run(mirroring)
		stopWorking()
		mirrored <- err
	}()
	err := v.takePart(working, v.member.run, stopMirroring, mirrored)
	stopServing()
	parts.Wait()
	if err = errors.Join(err, serveErr, v.close()); err == nil {
		v.log.Info("stopped")
	}
	return err
}

// takePart is a member of the cluster until ctx ends. Then all partitions are drained, the cluster is left, and the data path is stopped: together
// within the shutdown timeout and a little grace.
func (v *service) takePart(ctx context.Context, member func(context.Context) error, stopMirroring func(), mirrored <-chan error) error {
	var err error
	left := make(chan struct{})
	go func() { // owned by takePart, unless it does not stop in time: then the process ends
		defer close(left)
		err = member(ctx)
	}()
	select {
	case <-left:
	case <-ctx.Done():
	}
	v.draining.Store(true)
	v.log.Info("draining")
	limit := v.settings.Worker.ShutdownTimeout.Duration() + engine.StopGrace
	over := time.NewTimer(limit)
	defer over.Stop()
	select {
	case <-left:
	case <-over.C:
		return fmt.Errorf("%w: partitions did not leave within %s", program.ErrFault, limit)
	}
	stopMirroring()
	select {
	case end := <-mirrored:
		return errors.Join(err, v.mirrorEnd(end))
	case <-over.C:
		return errors.Join(err, fmt.Errorf("%w: mirror did not stop within %s", program.ErrFault, limit))
	}
}

// mirrorEnd is what the end of the data path means: an error of its own is the process's fault.
func (v *service) mirrorEnd(err error) error {
	switch {
	case err == nil, errors.Is(err, context.Canceled):
		return nil
	case errors.Is(err, offsets.ErrUnavailable): // what could not be stored is found again at the next start
		v.log.Warn("the last positions could not be stored", "err", err)
		return nil
	}
	return fmt.Errorf("%w: mirror stopped: %w", program.ErrFault, err)
}

// remember stores errors as they come, and shows those that are stored already as soon as the store can be read.
func (v *service) remember(ctx context.Context) {
	var loading sync.WaitGroup
	defer loading.Wait()
	loading.Go(func() {
		pause := backoff.New(time.Second, 30*time.Second, rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())))
		for err := v.history.Load(ctx); err != nil; err = v.history.Load(ctx) {
			if !errors.Is(err, offsets.ErrUnavailable) && ctx.Err() == nil {
				v.log.Warn("events of earlier processes can't be read", "err", err)
				return
			}
			if pause.Wait(ctx) != nil {
				return
			}
		}
	})
	if err := v.history.Keep(ctx); err != nil {
		v.log.Error("errors are no longer kept over a restart", "err", err)
	}
}

// close lets go of what was opened; what is not open is passed over.
func (v *service) close() error {
	var errs []error
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

// Snapshot is the data path's, seen with what is known of the cluster.
func (v *service) Snapshot() api.Snapshot {
	s := v.engine.Snapshot()
	joined, why := v.member.state()
	_, suspended := v.model.Suspended()
	switch {
	case v.draining.Load():
		s.State, s.Reason = api.StateDraining, "shutting down"
	case suspended:
		s.State, s.Reason = api.StateSuspended, "zookeeper is silent, and partitions may be given to another worker"
		if trouble := v.member.trouble(); trouble != nil {
			s.Reason += ": " + trouble.Error()
		}
	case !joined:
		s.State, s.Reason = api.StateStarting, why
	case s.State == api.StateMirroring:
		if err := v.storeTrouble(); err != nil {
			s.State, s.Reason = api.StateDegraded, "positions: "+err.Error()
		}
	}
	return s
}

// storeTrouble is why positions can be neither read nor stored: partitions wait for them without another word.
func (v *service) storeTrouble() error {
	if kept, ok := v.store.(distant); ok {
		return kept.Trouble()
	}
	return nil
}

// Excluded are those of the topics given to this worker that it does not copy as a whole.
func (v *service) Excluded() []api.Excluded { return v.engine.Excluded() }

// WaitCaughtUp is the data path's.
func (v *service) WaitCaughtUp(ctx context.Context, topic string, lag int64) (present int64, ok bool, err error) {
	return v.engine.WaitCaughtUp(ctx, topic, lag)
}
