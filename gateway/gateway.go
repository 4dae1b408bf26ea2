package gateway

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"sync"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"

	"github.com/causeway-mirror/causeway/network"
)

// Deps are what a gateway needs of its surroundings.
type Deps struct {
	Log   hclog.Logger
	Reg   prometheus.Registerer
	Route string // label of the metrics
}

// Gateway shows a cluster on one host.
type Gateway struct {
	cfg         Config
	log         hclog.Logger
	metrics     *metrics
	connections *network.Metrics
	may         map[int16]span
	room        *semaphore.Weighted // bytes of answers that are read whole
	dir         *directory          // set by Run
}

// New builds one of a valid configuration; nothing runs before Run.
func New(cfg Config, deps Deps) *Gateway {
	return &Gateway{
		cfg: cfg, log: deps.Log, metrics: newMetrics(deps.Route, deps.Reg),
		connections: network.NewMetrics("gateway", deps.Route, deps.Reg), may: spans(), room: semaphore.NewWeighted(cfg.MaxAnswers),
	}
}

// wholeCluster is the index of what stands for no broker in particular.
const wholeCluster = -1

// Run serves until ctx ends, and then lets what is in flight be answered. front is where clients find the cluster, and brokers is where they
// find each broker, none if brokers have names. It closes the listeners. One that fails ends it.
func (g *Gateway) Run(ctx context.Context, front net.Listener, brokers []net.Listener) error {
	frontPort, err := portOf(front)
	ports := make([]int32, len(brokers))
	for i := range brokers {
		port, errPort := portOf(brokers[i])
		ports[i], err = port, errors.Join(err, errPort)
	}
	if err != nil {
		return err
	}
	g.dir = newDirectory(g.cfg, frontPort, ports, g.log, g.metrics)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	first := network.NewListener(front, g.cfg.Connections, g.connections)
	errs := make([]error, 1+len(brokers))
	var wg sync.WaitGroup
	serve := func(i int, l *network.Listener) {
		wg.Go(func() {
			errs[i] = network.Serve(ctx, l, g.cfg.DrainTimeout, func(ctx, stop context.Context, conn net.Conn) {
				g.serve(ctx, stop, way{l, int32(i - 1), conn})
			})
			cancel()
		})
	}
	serve(0, first)
	for i, l := range brokers {
		serve(i+1, first.Beside(l))
	}
	wg.Wait()
	return errors.Join(errs...)
}

// portOf is the port of a listener.
func portOf(l net.Listener) (int32, error) {
	at, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return 0, fmt.Errorf("listen on %s: it has no port", l.Addr())
	}
	return int32(at.Port), nil
}

// way is how a client came.
type way struct {
	listener *network.Listener
	index    int32 // of the broker's spot; wholeCluster
	raw      net.Conn
}

// serve serves a connection to its end.
func (g *Gateway) serve(ctx, stop context.Context, w way) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	log := g.log.With("client", w.raw.RemoteAddr().String())
	conn, name, err := g.secure(ctx, w.raw)
	if err != nil {
		log.Debug("handshake", "err", err)
		return
	}
	if id, ok := g.dir.named(name); ok {
		w.index = id
	}
	p := &pipe{
		gateway: g, way: w, log: log, cancel: cancel,
		client: network.NewFrames(conn, network.Limits{Frame: g.cfg.MaxRequest, Give: g.cfg.FrameTimeout, Take: g.cfg.IdleTimeout}),
		window: network.NewWindow[asked](g.cfg.MaxInFlight, func(idle bool) { w.listener.SetIdle(w.raw, idle) }),
	}
	defer context.AfterFunc(stop, p.client.Stop)()
	defer context.AfterFunc(ctx, p.cut)()
	p.told(p.run(ctx))
}

// brokerLimits: an answer is as long as the client allowed it to be.
func (g *Gateway) brokerLimits() network.Limits {
	return network.Limits{Frame: math.MaxInt32, Give: g.cfg.IdleTimeout, Take: g.cfg.IdleTimeout}
}
