package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/causeway-mirror/causeway/network"
)

// Config are the server's bounds. The zero value is not useful; begin with DefaultConfig.
type Config struct {
	HeaderTimeout time.Duration // from the connection's first byte to the end of the request's headers
	WriteTimeout  time.Duration // for an answer that does not wait; waits add their own time
	IdleTimeout   time.Duration // a kept connection without a request is closed after this
	MaxWait       time.Duration // the longest wait that a client may ask for
	DrainTimeout  time.Duration // how long open answers may go on after Run's context has ended

	Connections       network.Quotas
	MaxRequests       int    // answered at the same time, but for those that wait
	MaxWaits          int    // requests that wait for something at the same time
	CertFile, KeyFile string // PEM, read again when they are replaced; without them connections are not encrypted
	TokenFile         string // without what it holds nothing is changed; empty: whoever reaches the port may
	ReadOnly          bool   // nobody may
}

// DefaultConfig returns bounds that suit browsers, scrapers and scripts.
func DefaultConfig() Config {
	return Config{
		HeaderTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 5 * time.Minute,
		MaxWait: 10 * time.Minute, DrainTimeout: 2 * time.Second,
		Connections: network.Quotas{PerAddress: 100, Total: 1000}, MaxRequests: 200, MaxWaits: 1000,
	}
}

// Validate names every bound that is not positive. Files are read by New.
func (c Config) Validate() error {
	var faults []error
	for name, d := range map[string]time.Duration{
		"header_timeout": c.HeaderTimeout, "write_timeout": c.WriteTimeout, "idle_timeout": c.IdleTimeout,
		"max_wait": c.MaxWait, "drain_timeout": c.DrainTimeout,
	} {
		if d <= 0 {
			faults = append(faults, fmt.Errorf("server.%s: %s: must be more than 0", name, d))
		}
	}
	for name, n := range map[string]int{
		"max_connections_per_address": c.Connections.PerAddress, "max_connections": c.Connections.Total,
		"max_requests": c.MaxRequests, "max_waits": c.MaxWaits,
	} {
		if n <= 0 {
			faults = append(faults, fmt.Errorf("server.%s: %d: must be at least 1", name, n))
		}
	}
	return errors.Join(faults...)
}

// Deps are what the server shows and where it registers its own metrics.
type Deps struct {
	Log      hclog.Logger
	Identity Identity
	Mirror   Mirror
	Events   Events
	Registry *prometheus.Registry // served at /metrics; the server's own metrics are registered here too
	Fallback http.Handler         // answers what is none of the server's own paths; nil: that is refused
	// Leadership is set where a cluster of workers is led: the leader answers for it.
	Leadership Leadership
	Peers      http.RoundTripper // the way to the leader, see NewPeers; needed beside Leadership
	// Operator does what people ask of topics and partitions where there is no Leadership; nil: that is refused.
	Operator Operator
	// Translator finds source offsets on the target; nil: that is not served.
	Translator Translator
	// Session is the one with ZooKeeper in which a worker is a member of its cluster, empty while it is none; it goes with each answer. nil: there
	// is no cluster.
	Session func() string
}

// SessionHeader names a worker's session. What answers at an address may be another process than the one that told others of it.
const SessionHeader = "Causeway-Session"

// Server answers HTTP.
type Server struct {
	cfg     Config
	deps    Deps
	metrics *metrics
	admits  *admission
	mux     *router
	pass    *forwarder // to the leader, where there is one
	guard   *guard
	audit   *audit
	cert    *certificate // nil: connections are not encrypted
	history *history
}

// New builds the server and reads the files that the config names; nothing is opened before Run.
func New(cfg Config, deps Deps) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s := &Server{
		cfg: cfg, deps: deps, metrics: newMetrics(deps.Registry, deps.Identity), admits: newAdmission(cfg, deps),
		guard:   &guard{readOnly: cfg.ReadOnly, tokenFile: cfg.TokenFile, origins: http.NewCrossOriginProtection(), log: deps.Log},
		audit:   &audit{log: deps.Log.Named("audit")},
		history: newHistory(),
	}
	if cfg.CertFile != "" {
		var err error
		if s.cert, err = newCertificate(cfg.CertFile, cfg.KeyFile, deps.Log); err != nil {
			return nil, err
		}
		watchCertificate(deps.Registry, deps.Identity, s.cert)
	}
	if deps.Leadership != nil {
		s.pass = newForwarder(deps.Identity.Worker, deps.Leadership, deps.Peers, deps.Log, refuseLeaderless)
	}
	s.mux = s.routes()
	return s, nil
}

// Run serves on l, and samples the history, until ctx ends, lets open answers finish within the drain time and returns. It closes l. Waiting
// requests are answered at once when ctx ends. A listener that fails is an error.
func (s *Server) Run(ctx context.Context, l net.Listener) error {
	sampling, stopSampling := context.WithCancel(ctx)
	sampled := make(chan struct{})
	go func() { // owned by Run, which waits for it
		defer close(sampled)
		s.sample(sampling)
	}()
	defer func() {
		stopSampling()
		<-sampled
	}()
	srv := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: s.cfg.HeaderTimeout,
		ReadTimeout:       s.cfg.WriteTimeout,
		WriteTimeout:      s.cfg.WriteTimeout,
		IdleTimeout:       s.cfg.IdleTimeout,
		ErrorLog:          s.deps.Log.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}),
		// Requests inherit ctx, so that long polls end with it; Shutdown alone would wait for them.
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	served := make(chan error, 1)
	bounded := network.NewListener(l, s.cfg.Connections, s.metrics.listener)
	srv.ConnState = func(c net.Conn, state http.ConnState) {
		bounded.SetIdle(c, state == http.StateNew || state == http.StateIdle)
	}
	go func() { served <- s.serve(srv, bounded) }() // owned by Run: it returns after Shutdown or Close, and Run reads its answer
	select {
	case err := <-served:
		return fmt.Errorf("serve http on %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.DrainTimeout)
	defer cancel()
	err := srv.Shutdown(drain)
	if errors.Is(err, context.DeadlineExceeded) {
		err = srv.Close() // a client that does not read must not hold the process
	}
	<-served
	return err
}

// serve takes connections, encrypted if there is a certificate.
func (s *Server) serve(srv *http.Server, l net.Listener) error {
	if s.cert == nil {
		return srv.Serve(l)
	}
	srv.TLSConfig = s.cert.config()
	return srv.ServeTLS(l, "", "")
}

// ServeHTTP makes the server usable without a listener.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.deps.Session != nil {
		w.Header().Set(SessionHeader, cmp.Or(s.deps.Session(), "none"))
	}
	counted := &countingWriter{ResponseWriter: w}
	w = counted
	h, pattern := s.mux.Handler(r)
	other := s.deps.Fallback != nil && !native(r)
	if pattern == "" && !other { // a method or a path that is not there is not there for anybody
		s.refuse(w, r, h)
		s.metrics.count("none", counted.status())
		return
	}
	answered := s.audit.watch(r)
	defer func() { answered(counted.status()) }()
	if !s.guard.admits(w, r) {
		s.metrics.count("guard", counted.status())
		return
	}
	if pool := s.admits.poolOf(r); pool != nil {
		if !pool.Take() {
			refuseBusy(w)
			s.metrics.count("busy", counted.status())
			return
		}
		defer pool.Give()
	}
	if other {
		s.deps.Fallback.ServeHTTP(w, r)
		s.metrics.count("compatible", counted.status())
		return
	}
	w.Header().Set("X-Content-Type-Options", "nosniff")
	s.mux.ServeHTTP(w, r)
	s.metrics.count(pattern, counted.status())
}

// native says that a path is the server's own. The root is for browsers; everybody else always found nothing there.
func native(r *http.Request) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch first {
	case "api", "healthz", "readyz", "metrics", "ui":
		return true
	}
	return r.URL.Path == "/" && preferred(r.Header.Get("Accept")) == "text/html"
}

// refuse answers a request that no pattern takes. The mux decides between 404 and 405 (and names the methods); the body becomes ours.
func (*Server) refuse(w http.ResponseWriter, r *http.Request, h http.Handler) {
	verdict := &headOnly{header: http.Header{}}
	h.ServeHTTP(verdict, r)
	switch verdict.code {
	case http.StatusMethodNotAllowed:
		allow := verdict.header.Get("Allow")
		w.Header().Set("Allow", allow)
		fail(w, verdict.code, "method_not_allowed", r.Method+" is not possible here; possible: "+allow)
	case http.StatusNotFound:
		fail(w, verdict.code, "not_found", "nothing is at "+r.URL.Path)
	default: // a redirect to the clean path
		h.ServeHTTP(w, r)
	}
}

// headOnly keeps an answer's status and headers and drops its body.
type headOnly struct {
	header http.Header
	code   int
}

// Header gives the headers that were set.
func (h *headOnly) Header() http.Header { return h.header }

// WriteHeader keeps the status.
func (h *headOnly) WriteHeader(code int) { h.code = code }

// Write drops the body.
func (*headOnly) Write(body []byte) (int, error) { return len(body), nil }

// countingWriter remembers the status for the metrics.
type countingWriter struct {
	http.ResponseWriter

	code int
}

// WriteHeader remembers the first status.
func (c *countingWriter) WriteHeader(code int) {
	if c.code == 0 {
		c.code = code
	}
	c.ResponseWriter.WriteHeader(code)
}

// Unwrap lets http.ResponseController reach the connection.
func (c *countingWriter) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *countingWriter) status() int {
	if c.code == 0 {
		return http.StatusOK
	}
	return c.code
}
