package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"

	"github.com/causeway-mirror/causeway/cluster"
	"github.com/causeway-mirror/causeway/gateway"
)

// defaultPorts is how many ports brokers have without --port-range.
const defaultPorts = 100

// lastPort is the highest that there is.
const lastPort = 65535

// gatewayCommand shows a cluster on one host.
type gatewayCommand struct {
	settingFlags // of which it has those of the log

	cfg                                           gateway.Config
	upstream, upstreamConfig, listen, ports, page string
	file                                          string
	perAddress                                    []string
}

func newGateway(stdout, stderr io.Writer) *cobra.Command {
	c := &gatewayCommand{cfg: gateway.DefaultConfig()}
	cmd := &cobra.Command{
		Use: "gateway", Short: "Show a Kafka cluster on one host: a port for each broker, or a name for each on one TLS port", Args: asUsed,
		Example: `  causeway gateway --upstream kafka-1:9092,kafka-2:9092 --listen :9092 --advertise gate.example.com --port-range 9100-9119
  causeway gateway --upstream kafka-1:9092 --listen :9093 --advertise kafka.lan --broker-names 'b{id}.kafka.lan' --tls-cert g.pem --tls-key g.key`,
	}
	cmd.RunE = action(func(ctx context.Context) error { return c.run(ctx, stdout, stderr) })
	set := cmd.Flags()
	c.set = set
	set.StringVar(&c.file, "config", "", "YAML `FILE` with these settings, _ in place of -; what is given here goes before it")
	set.StringVar(&c.upstream, "upstream", "", "brokers to ask first, `HOST:PORT,...`")
	set.StringVar(&c.upstreamConfig, "upstream-config", "", "Kafka client properties `FILE` for the brokers (TLS; SASL is the clients')")
	set.StringVar(&c.listen, "listen", ":9092", "`HOST:PORT` where clients find the cluster")
	set.StringVar(&c.cfg.Advertise, "advertise", "", "`HOST` that clients are told to connect to")
	set.StringVar(&c.ports, "port-range", "", "`FIRST-LAST` port of the brokers; the 100 behind that of --listen if not given")
	set.StringVar(&c.cfg.Names, "broker-names", "", "`HOST` of a broker with {id} in it: all on the port of --listen, told apart by TLS (SNI)")
	set.StringVar(&c.cfg.TLS.CertFile, "tls-cert", "", "PEM `FILE` with the certificate for clients")
	set.StringVar(&c.cfg.TLS.KeyFile, "tls-key", "", "PEM `FILE` with its key")
	set.StringVar(&c.cfg.TLS.ClientCAFile, "tls-client-ca", "", "PEM `FILE` with the authorities of clients' certificates, which are demanded then")
	set.IntVar(&c.cfg.Connections.Total, "max-connections", c.cfg.Connections.Total, "connections of all clients")
	set.IntVar(&c.cfg.Connections.PerAddress, "max-connections-per-address", c.cfg.Connections.PerAddress, "connections of one address")
	set.StringArrayVar(&c.perAddress, "max-connections-of", nil, "in place of it for one address, `ADDRESS=N`; may be given again")
	set.IntVar(&c.cfg.MaxInFlight, "max-in-flight", c.cfg.MaxInFlight, "unanswered requests of one connection")
	set.DurationVar(&c.cfg.IdleTimeout, "idle-timeout", c.cfg.IdleTimeout, "for how long nothing may move on a connection")
	set.DurationVar(&c.cfg.DrainTimeout, "drain-timeout", c.cfg.DrainTimeout, "for answers to what is in flight at the end")
	set.StringVar(&c.page, "metrics", "", "`HOST:PORT` of /metrics and /healthz; none if not given")
	c.logFlags(cmd)
	return cmd
}

// run serves until ctx ends.
func (c *gatewayCommand) run(ctx context.Context, stdout, stderr io.Writer) (err error) {
	if c.file != "" {
		if err := readGatewayFile(c.file, c.set); err != nil {
			return err
		}
	}
	s := defaultSettings()
	over(&c.settingFlags, "log-level", c.logLevel, &s.Log.Level)
	over(&c.settingFlags, "log-format", c.logFormat, &s.Log.Format)
	bounds, err := c.portBounds()
	if err = errors.Join(c.cluster(), c.quotas(), err, c.judge(), s.ValidateLog()); err != nil {
		return err
	}
	d, err := c.open(ctx, bounds)
	if err != nil {
		return err
	}
	screen, logs, finish := openConsole(stdout, stderr)
	defer finish()
	log := newLogger(&s, logs)
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	g := gateway.New(c.cfg, gateway.Deps{Log: log, Reg: reg, Route: "gateway"})
	screen.say("will show %s at %s as %s", strings.Join(c.cfg.Upstream.Bootstrap, ","), d.front.Addr(), c.shown(d))
	serving, stop := context.WithCancel(ctx)
	defer stop()
	var wg sync.WaitGroup
	var pageErr error
	if d.page != nil {
		screen.say("metrics at http://%s/metrics", d.page.Addr())
		wg.Go(func() {
			if pageErr = servePage(serving, d.page, reg, log); pageErr != nil {
				stop() // what nobody can watch must not go on unnoticed
			}
		})
	}
	err = g.Run(serving, d.front, d.brokers)
	stop()
	wg.Wait()
	return errors.Join(err, pageErr)
}

// shown is where clients find brokers.
func (c *gatewayCommand) shown(d doors) string {
	if c.cfg.Names != "" {
		return c.cfg.Names
	}
	at := func(l net.Listener) string {
		_, port, _ := net.SplitHostPort(l.Addr().String()) // what is listened on has a port
		return port
	}
	return fmt.Sprintf("%s:%s, brokers at %s to %s", c.cfg.Advertise, at(d.front), at(d.brokers[0]), at(d.brokers[len(d.brokers)-1]))
}

// cluster reads how the brokers are reached.
func (c *gatewayCommand) cluster() error {
	up := cluster.Config{Name: "upstream"}
	err := c.applyCluster(&up, "upstream", c.upstream, c.upstreamConfig)
	c.cfg.Upstream = up
	return err
}

// judge gives the faults of the configuration the names of flags.
func (c *gatewayCommand) judge() error {
	return flagged(errors.Join(c.cfg.Validate(), c.cfg.TLS.Check()))
}

func flagged(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var faults []error
		for _, part := range joined.Unwrap() {
			faults = append(faults, flagged(part))
		}
		return errors.Join(faults...)
	}
	if wrong, ok := errors.AsType[*gateway.ConfigError](err); ok {
		return fault("--"+wrong.Key, wrong.Value, wrong.Reason)
	}
	return err
}

// quotas reads --max-connections-of.
func (c *gatewayCommand) quotas() error {
	var faults []error
	c.cfg.Connections.Overrides = map[string]int{}
	for _, text := range c.perAddress {
		host, number, _ := strings.Cut(text, "=")
		address, errAddress := netip.ParseAddr(host)
		n, errNumber := strconv.Atoi(number)
		if errAddress != nil || errNumber != nil || n < 0 {
			faults = append(faults, fault("--max-connections-of", text, "must be an IP address, = and a number of at least 0"))
			continue
		}
		c.cfg.Connections.Overrides[address.String()] = n // as connections have it
	}
	return errors.Join(faults...)
}

// bounds are the brokers' ports, first and last; both 0: any that are free.
type bounds struct{ first, last int }

// String is the form of --port-range.
func (b bounds) String() string { return fmt.Sprintf("%d-%d", b.first, b.last) }

// portBounds reads --port-range.
func (c *gatewayCommand) portBounds() (b bounds, err error) {
	_, text, _ := net.SplitHostPort(c.listen) // its fault is told by open
	front, _ := strconv.Atoi(text)
	switch {
	case c.cfg.Names != "" && c.ports != "":
		return b, fault("--port-range", c.ports, "has no meaning with --broker-names: all are on one port")
	case c.ports == "" && front == 0:
		return b, nil
	case c.ports == "" && c.cfg.Names == "" && front >= lastPort:
		return b, fault("--listen", c.listen, "has no ports behind it that brokers could have: give --port-range")
	case c.ports == "":
		return bounds{front + 1, min(front+defaultPorts, lastPort)}, nil
	}
	first, last, _ := strings.Cut(c.ports, "-")
	low, errLow := strconv.ParseUint(first, 10, 16)
	high, errHigh := strconv.ParseUint(last, 10, 16)
	b = bounds{int(low), int(high)}
	if errLow != nil || errHigh != nil || b.first == 0 || b.last < b.first {
		return b, fault("--port-range", c.ports, "must be FIRST-LAST, two ports of which the first is not larger")
	}
	if front >= b.first && front <= b.last {
		return b, fault("--port-range", c.ports, fmt.Sprintf("must not hold %d, where clients find the cluster", front))
	}
	return b, nil
}

// doors are what a gateway listens on.
type doors struct {
	front   net.Listener   // where clients find the cluster
	brokers []net.Listener // none if brokers have names
	page    net.Listener   // nil without --metrics
}

// open takes all ports, or names those that are not to be had.
func (c *gatewayCommand) open(ctx context.Context, b bounds) (d doors, err error) {
	var all []net.Listener
	var faults []error
	listen := func(flag, value, at string) net.Listener {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", at)
		if err != nil {
			faults = append(faults, fault(flag, value, err.Error()))
			return nil
		}
		all = append(all, l)
		return l
	}
	d.front = listen("--listen", c.listen, c.listen)
	host, _, _ := net.SplitHostPort(c.listen) // its fault was told by listen
	switch {
	case d.front == nil: // it may be the host: one line is enough
	case c.cfg.Names != "":
	case b == bounds{}:
		for range defaultPorts {
			d.brokers = append(d.brokers, listen("--listen", c.listen, net.JoinHostPort(host, "0")))
		}
	default:
		for port := b.first; port <= b.last; port++ {
			d.brokers = append(d.brokers, listen("--port-range", b.String(), net.JoinHostPort(host, strconv.Itoa(port))))
		}
	}
	if c.page != "" {
		d.page = listen("--metrics", c.page, c.page)
	}
	if err = errors.Join(faults...); err != nil {
		for _, l := range all {
			_ = l.Close() // unused
		}
	}
	return d, err
}

// servePage serves metrics until ctx ends.
func servePage(ctx context.Context, l net.Listener, reg *prometheus.Registry, log hclog.Logger) error {
	const patience = 10 * time.Second
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	server := &http.Server{
		Handler: mux, ReadHeaderTimeout: patience, WriteTimeout: patience,
		ErrorLog: log.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}),
	}
	closing := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer closing()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve metrics: %w", err)
	}
	return nil
}
