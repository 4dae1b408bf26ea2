package controller

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/causeway-mirror/causeway/helix"
	"github.com/causeway-mirror/causeway/internal/backoff"
)

// Nodes of the property store below "causeway", and fields of their records.
const (
	propertyFolder    = "causeway"
	controllersFolder = "controllers" // <id>, ephemeral: where the leader's API is
	workersFolder     = "workers"     // <id>, ephemeral: where a worker's API is
	pinsFolder        = "pins"        // <topic>/<partition>: the worker that it belongs on
	topicsFolder      = "topics"      // <topic>: what operators have set
	commandsFolder    = "commands"    // <topic>/<partition>: what shall be done once; removed by the worker that did it
	fieldAddress      = "address"     // base URL
	fieldWorker       = "worker"
)

// Helix is the Coordinator over ZooKeeper.
type Helix struct {
	cfg     helix.ControllerConfig
	address string
	log     hclog.Logger
	reg     prometheus.Registerer

	connecting chan struct{} // holds one token while nobody connects

	mu         sync.Mutex
	controller *helix.Controller // nil before Campaign
	session    *helix.Session    // for looking, beside the one that stands for election
	closed     bool
	trouble    error // why the cluster could not be set up at the last attempt
}

// NewHelix gives a coordinator that does nothing until Campaign. address is the base URL under which others reach this controller's API. The
// config must be valid.
func NewHelix(cfg helix.ControllerConfig, address string, log hclog.Logger, reg prometheus.Registerer) *Helix {
	h := &Helix{cfg: cfg, address: address, log: log, reg: reg, connecting: make(chan struct{}, 1)}
	h.cfg.Waiting = h.suffer
	h.connecting <- struct{}{}
	return h
}

// suffer notes why ZooKeeper can't be reached.
func (h *Helix) suffer(trouble error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.trouble = trouble
}

// Close ends what Leader and Workers use.
func (h *Helix) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	if h.session != nil {
		h.session.Close()
		h.session = nil
	}
}

// Bounds of the wait for a ZooKeeper that does not answer at the start.
const (
	setUpBase  = 200 * time.Millisecond
	setUpLimit = 5 * time.Second
	// setUpPatience is how long one attempt may take before it is told that there is no answer.
	setUpPatience = 10 * time.Second
)

// Campaign implements Coordinator. It waits for ZooKeeper for as long as it takes, and makes the cluster if it is not there.
func (h *Helix) Campaign(ctx context.Context, lead func(ctx context.Context, c Cluster) error) error {
	pause := backoff.New(setUpBase, setUpLimit, rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())))
	for {
		err := h.setUp(ctx)
		h.suffer(err)
		if err == nil {
			break
		}
		if pause.Failures() == 0 {
			h.log.Warn("the cluster can't be set up yet", "cluster", h.cfg.Cluster, "error", err)
		}
		if err = pause.Wait(ctx); err != nil {
			return err
		}
	}
	c := helix.NewController(h.cfg, helix.ControllerDeps{Log: h.log, Registerer: h.reg, Lead: func(ctx context.Context, t *helix.Term) error {
		return h.lead(ctx, t, lead)
	}})
	h.mu.Lock()
	h.controller = c
	h.mu.Unlock()
	return c.Run(ctx)
}

// setUp makes what is missing of the cluster.
func (h *Helix) setUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, setUpPatience)
	defer cancel()
	s, err := h.look(ctx)
	if err != nil {
		return err
	}
	err = helix.NewAdmin(s, h.cfg.Cluster).CreateCluster(ctx, map[string]string{
		"allowParticipantAutoJoin": "true", "STATE_TRANSITION.maxThreads": "100",
	})
	if errors.Is(err, helix.ErrMalformed) {
		h.log.Warn("the cluster's settings are malformed and stay so", "cluster", h.cfg.Cluster, "err", err)
		return nil // all else is there
	}
	return err
}

// look gives a session for looking; a new one when the last is over. One caller connects, and the others wait for him or for their ctx's end.
func (h *Helix) look(ctx context.Context) (*helix.Session, error) {
	if s := h.looking(); s != nil {
		return s, nil
	}
	select {
	case <-h.connecting:
		defer func() { h.connecting <- struct{}{} }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s := h.looking(); s != nil {
		return s, nil
	}
	s, err := helix.Open(ctx, h.cfg.Config, h.log.Named("look"))
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		s.Close()
		return nil, helix.ErrClosed
	}
	if h.session != nil {
		h.session.Close()
	}
	h.session, h.trouble = s, nil
	return s, nil
}

// looking is the session for looking; nil when there is none that lives.
func (h *Helix) looking() *helix.Session {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.session != nil && h.session.Err() == nil {
		return h.session
	}
	return nil
}

// lead is a term.
func (h *Helix) lead(ctx context.Context, t *helix.Term, lead func(ctx context.Context, c Cluster) error) error {
	c := newHelixCluster(t, h.cfg.Cluster, h.log)
	if err := c.prepare(ctx); err != nil {
		return err
	}
	if err := h.publish(ctx, t.Session()); err != nil {
		return err
	}
	var jobs sync.WaitGroup
	defer jobs.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	jobs.Go(func() { c.follow(ctx) })
	return lead(ctx, c)
}

// publish says where the leader's API is, for as long as its session lives.
func (h *Helix) publish(ctx context.Context, s *helix.Session) error {
	record := helix.NewRecord(h.cfg.Name)
	record.Simple[fieldAddress] = h.address
	text, err := record.Encode()
	if err != nil {
		return err
	}
	at := h.cfg.Cluster.Property(propertyFolder, controllersFolder, h.cfg.Name)
	if err = s.CreateAll(ctx, path.Dir(at), nil); err != nil && !errors.Is(err, helix.ErrExists) {
		return fmt.Errorf("publish the API's address: %w", err)
	}
	err = s.CreateEphemeral(ctx, at, text)
	if errors.Is(err, helix.ErrExists) { // of an earlier term, or of a session that is not forgotten yet
		if err = s.Delete(ctx, at, helix.AnyVersion); err == nil || errors.Is(err, helix.ErrNotFound) {
			err = s.CreateEphemeral(ctx, at, text)
		}
	}
	if err != nil {
		return fmt.Errorf("publish the API's address: %w", err)
	}
	return nil
}

// Leader implements Coordinator.
func (h *Helix) Leader(ctx context.Context) (Leader, error) {
	h.mu.Lock()
	c, trouble := h.controller, h.trouble
	h.mu.Unlock()
	if c == nil {
		return Leader{}, trouble
	}
	id := c.Leader()
	switch id {
	case "":
		return Leader{}, c.Trouble()
	case h.cfg.Name:
		return Leader{ID: id, Address: h.address}, nil
	}
	s, err := h.look(ctx)
	if err != nil {
		return Leader{ID: id}, err
	}
	at, err := h.addressAt(ctx, s, controllersFolder, id)
	return Leader{ID: id, Address: at.Address}, err
}

// Whereabouts are where a worker's API is, and who said so.
type Whereabouts struct {
	Address string // base URL
	Session string // the worker's id with ZooKeeper at that time
}

// Workers gives the APIs of live workers that published theirs, by id.
func (h *Helix) Workers(ctx context.Context) (map[string]Whereabouts, error) {
	s, err := h.look(ctx)
	if err != nil {
		return nil, err
	}
	names, err := s.Children(ctx, h.cfg.Cluster.Property(propertyFolder, workersFolder), nil)
	if errors.Is(err, helix.ErrNotFound) {
		return map[string]Whereabouts{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the workers' addresses: %w", err)
	}
	out := make(map[string]Whereabouts, len(names))
	for _, name := range names {
		at, err := h.addressAt(ctx, s, workersFolder, name)
		if err != nil {
			return nil, err
		}
		if at.Address != "" {
			out[name] = at
		}
	}
	return out, nil
}

// addressAt reads a published address; empty when there is none that can be read.
func (h *Helix) addressAt(ctx context.Context, s *helix.Session, folder, id string) (Whereabouts, error) {
	record, stat, err := s.GetRecord(ctx, h.cfg.Cluster.Property(propertyFolder, folder, id), nil)
	switch {
	case errors.Is(err, helix.ErrNotFound), errors.Is(err, helix.ErrMalformed), errors.Is(err, helix.ErrEmpty):
		return Whereabouts{}, nil
	case err != nil:
		return Whereabouts{}, fmt.Errorf("read the address of %s: %w", id, err)
	}
	return Whereabouts{Address: record.Simple[fieldAddress], Session: stat.Owner}, nil
}
