package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/causeway-mirror/causeway/api"
	"github.com/causeway-mirror/causeway/cmd/internal/httpd"
	"github.com/causeway-mirror/causeway/cmd/internal/program"
	"github.com/causeway-mirror/causeway/controller"
	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/internal/graphite"
	"github.com/causeway-mirror/causeway/internal/lines"
	"github.com/causeway-mirror/causeway/internal/native"
	"github.com/causeway-mirror/causeway/offsets/zk"
)

const (
	keptEvents = 10_000
	lookEvery  = 5 * time.Second // at what the workers do
)

// service is the process: a controller and its API.
type service struct {
	settings   settings
	log        hclog.Logger
	listener   net.Listener
	helix      *controller.Helix
	peers      *http.Transport // the way to the APIs of workers and other controllers
	kafkas     []*kafka
	positions  *zk.Store
	controller *controller.Controller
	events     *events.Log
	view       *view
	beginners  *beginners // nil: an old owner ends before the new one begins
	happened   *happened  // nil: the workers' errors are not known
	server     *api.Server
}

// serve runs until ctx ends.
func serve(ctx context.Context, s settings, stderr io.Writer) error {
	queue := lines.NewQueue()
	defer queue.Serve()(program.LastWords)
	log := s.logger(queue.To(stderr))
	for _, warning := range s.warnings {
		log.Warn("an option is not what it seems", "warning", warning)
	}
	v, err := open(ctx, s, log)
	if err != nil {
		return err
	}
	log.Info("serving", "api", v.address(), "cluster", s.coordination.Cluster, "id", s.coordination.Name, "version", version)
	return v.run(ctx)
}

// open takes what the process needs of its surroundings. ZooKeeper and Kafka may be down: both are waited for.
func open(ctx context.Context, s settings, log hclog.Logger) (*service, error) {
	v := &service{settings: s, log: log}
	var err error
	if v.listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", s.server.Listen); err != nil {
		return nil, native.Fault("server.listen", s.server.Listen, err.Error())
	}
	if err = v.assemble(ctx); err != nil {
		v.close()
		return nil, err
	}
	return v, nil
}

// assemble builds the parts, in the order in which they need each other.
func (v *service) assemble(ctx context.Context) error {
	s := &v.settings
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	log := events.NewLog(s.route, s.coordination.Name, keptEvents, v.log.Named("events"), registry)
	v.events = log
	labelled := prometheus.WrapRegistererWith(prometheus.Labels{"route": s.route.String()}, registry)
	if s.coordination.Overlap {
		s.coordination.Begun = func(topic, partition, worker string) bool { return v.beginners.Begun(topic, partition, worker) }
	}
	v.helix = controller.NewHelix(s.coordination, v.address(), v.log.Named("helix"), labelled)
	v.peers = api.NewPeers(s.server.TLS.CAFile)
	workers := newCrew(v.helix, &http.Client{Timeout: workerTimeout, Transport: v.peers}, v.log.Named("workers"))
	if s.coordination.Overlap {
		v.beginners = newBeginners(v.helix, &http.Client{Timeout: workerTimeout, Transport: v.peers}, v.log.Named("beginners"))
	}
	deps := controller.Deps{
		Log: v.log.Named("controller"), Registerer: registry, Route: s.route, ID: s.coordination.Name, Coordinator: v.helix, Events: log,
		Workload: workers, Pulse: workers,
	}
	if s.source.known() {
		deps.Source = v.kafka(s.source, "source")
	}
	if s.target.known() {
		deps.Target = v.kafka(s.target, "target")
	}
	if s.positions.Address != "" {
		var err error
		if v.positions, err = zk.Open(ctx, s.positions, v.log.Named("offsets")); err != nil {
			return fmt.Errorf("open the store of positions: %w", err)
		}
		deps.Positions = v.positions
	}
	if s.chaperone != "" {
		deps.Workload = &chaperone{address: s.chaperone, tier: s.route.Source, client: &http.Client{Timeout: workerTimeout}, topics: v.topics}
	}
	var err error
	if v.controller, err = controller.New(s.controller, deps); err != nil {
		return err
	}
	shown := api.Events(log)
	if v.positions != nil {
		v.happened = &happened{own: log, store: v.positions, log: v.log.Named("events")}
		shown = v.happened
	}
	v.view = &view{controller: v.controller, crew: workers, mapped: s.mapped}
	lead := &leadership{controller: v.controller, crew: workers, office: newPostOffice(s, v.log.Named("letters")), compares: s.compares, interval: s.controller.Lag.Interval}
	if v.positions == nil || !s.source.known() {
		lead.interval = 0
	}
	s.compat.Advertise, s.compat.Peers = s.coordination.Name, v.peers
	v.server, err = api.New(httpd.Config(s.server), api.Deps{
		Log: v.log.Named("api"), Mirror: v.view, Events: shown, Registry: registry, Leadership: lead, Peers: v.peers,
		Fallback: api.NewCompat(s.compat, lead, v.log.Named("api")),
		Identity: api.Identity{Role: "controller", Version: version, Revision: program.BuiltFrom(revision), Worker: s.coordination.Name, Route: s.route, Started: time.Now()},
	})
	return err
}

func (v *service) kafka(at endpoint, name string) *kafka {
	k := newKafka(at, v.settings.committed, v.log.Named(name))
	v.kafkas = append(v.kafkas, k)
	return k
}

// topics gives what is mirrored, with partition counts.
func (v *service) topics() map[string]int32 {
	out := map[string]int32{}
	if t, err := v.controller.Term(); err == nil {
		for name, topic := range t.State().Topics {
			out[name] = topic.Partitions
		}
	}
	return out
}

// address is where others reach the API.
func (v *service) address() string {
	return httpd.Address(v.listener.Addr(), v.settings.server, v.settings.hostname)
}

// run leads and serves until ctx ends. The API is the last to stop. What is not there is waited for, so an error is the process's own fault.
func (v *service) run(ctx context.Context) error {
	defer v.close()
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServing()
	working, stopWorking := context.WithCancel(ctx)
	defer stopWorking()
	var (
		parts    sync.WaitGroup
		serveErr error
	)
	parts.Go(func() {
		if serveErr = v.server.Run(serving, v.listener); serveErr != nil {
			stopWorking()
		}
	})
	parts.Go(func() { v.view.look(working, lookEvery) })
	if v.beginners != nil {
		parts.Go(func() { v.beginners.run(working) })
	}
	if v.happened != nil {
		parts.Go(func() { v.happened.follow(working, lookEvery) })
	}
	if v.settings.graphite.Address != "" {
		parts.Go(func() {
			graphite.New(v.settings.graphite, v.log.Named("graphite"), newFigures(v.controller, time.Now()).read).Run(serving)
		})
	}
	context.AfterFunc(working, func() { v.view.draining.Store(true) })
	err := v.controller.Run(working)
	stopWorking()
	stopServing()
	parts.Wait()
	if err = errors.Join(err, serveErr); err != nil {
		return fmt.Errorf("%w: %w", program.ErrFault, err)
	}
	v.log.Info("stopped")
	return nil
}

// close lets go of what was opened; what is not open is passed over.
func (v *service) close() {
	if v.events != nil {
		v.events.Close()
	}
	if v.helix != nil {
		v.helix.Close()
	}
	for _, k := range v.kafkas {
		k.close()
	}
	if v.positions != nil {
		_ = v.positions.Close()
	}
	if v.listener != nil {
		_ = v.listener.Close()
	}
	if v.peers != nil {
		v.peers.CloseIdleConnections()
	}
}
