package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/causeway-mirror/causeway/helix"
	"github.com/causeway-mirror/causeway/internal/backoff"
	"github.com/causeway-mirror/causeway/internal/native"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/statemodel"
)

// member is the worker's place in the cluster: it passes on what the controller wants, in the words of the state model.
type member struct {
	log         hclog.Logger
	cfg         helix.ParticipantConfig
	participant *helix.Participant
	model       *statemodel.Model
	desk        *desk
	address     string    // of the API; empty if there is none
	warned      time.Time // when the log said last what the cluster lacks

	mu  sync.Mutex
	why string // guarded by mu; why it is none yet
}

// memberDeps are what a member acts on.
type memberDeps struct {
	log     hclog.Logger
	reg     prometheus.Registerer
	model   *statemodel.Model
	hands   hands
	address string // of the API; empty if there is none
}

// newMember builds the participant; it does no IO.
func newMember(s *settings, deps memberDeps) (*member, error) {
	log := deps.log
	m := &member{log: log.Named("member"), cfg: helix.DefaultParticipantConfig(), model: deps.model, address: deps.address}
	m.cfg.ZooKeeper, m.cfg.Cluster = s.Coordination.ZooKeeper, helix.Cluster(s.Coordination.Cluster)
	m.cfg.SessionTimeout, m.cfg.Instance = s.Coordination.SessionTimeout.Duration(), s.id
	if err := m.cfg.Validate(); err != nil {
		return nil, native.Prefixed(err, "coordination: ")
	}
	m.cfg.Waiting = func(trouble error) {
		why := fmt.Sprintf("zookeeper %s does not answer", m.cfg.ZooKeeper)
		if trouble != nil {
			why += ": " + trouble.Error()
		}
		m.tell(why)
	}
	m.participant = helix.NewParticipant(m.cfg, helix.ParticipantDeps{
		Handler: m, Log: log.Named("helix"), Joined: m.joined, NotSetUp: m.notSetUp,
		Registerer: prometheus.WrapRegistererWith(prometheus.Labels{"route": s.RouteName().String()}, deps.reg),
	})
	m.desk = newDesk(m.cfg.Cluster, deps.hands, log)
	m.tell(fmt.Sprintf("zookeeper %s has not let it join the cluster %s yet", m.cfg.ZooKeeper, m.cfg.Cluster))
	return m, nil
}

// run takes part until ctx ends; then all partitions are offline and the cluster is left. Errors: *helix.TakenError. A ZooKeeper that does not
// answer, and a cluster that is not there yet, are waited for.
func (m *member) run(ctx context.Context) error { return m.participant.Run(ctx) }

// remindAfter is how often the log says again what the cluster lacks.
const remindAfter = time.Minute

// notSetUp tells what the cluster lacks. It is called by one goroutine, every few seconds.
func (m *member) notSetUp(err error) {
	why := err.Error()
	var missing *helix.MissingError
	if errors.As(err, &missing) && missing.Whole && missing.What == "cluster "+string(m.cfg.Cluster) {
		why = fmt.Sprintf("%s is not set up in zookeeper %s: no controller has started yet", missing.What, m.cfg.ZooKeeper)
		if missing.Root != "" {
			why = missing.Error() + ": no controller has started yet, or the path is wrong"
		}
	}
	m.tell(why)
	if time.Since(m.warned) >= remindAfter {
		m.warned = time.Now()
		m.log.Warn("the cluster can't be joined yet", "err", why)
	}
}

func (m *member) tell(why string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.why = why
}

// state says whether the worker is a member of the cluster, or why not.
func (m *member) state() (joined bool, why string) {
	if m.participant.Session() != nil {
		return true, ""
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return false, m.why
}

// session is the id of the one in which the worker is a member of the cluster; empty while it is none.
func (m *member) session() string {
	if s := m.participant.Session(); s != nil {
		return s.ID()
	}
	return ""
}

// trouble is why ZooKeeper can't be reached, as far as known of the session that it has joined in.
func (m *member) trouble() error {
	if s := m.participant.Session(); s != nil {
		return s.Trouble()
	}
	return nil
}

// joined does what lives as long as the membership: it follows what operators ask, and publishes where the API is.
func (m *member) joined(ctx context.Context, s *helix.Session) {
	var serving sync.WaitGroup
	defer serving.Wait()
	serving.Go(func() { m.desk.serve(ctx, s) })
	m.tell("out of the cluster " + string(m.cfg.Cluster) + "; it joins again when zookeeper answers")
	if m.address != "" {
		m.publish(ctx, s)
	}
}

// Bounds of the pauses between attempts at what ZooKeeper does not let happen yet.
const (
	retryBase  = 200 * time.Millisecond
	retryLimit = 5 * time.Second
)

// publish writes the API's address where controllers look for it. It goes with the session.
func (m *member) publish(ctx context.Context, s *helix.Session) {
	at := m.cfg.Cluster.Property("causeway", "workers", m.cfg.Instance)
	record := helix.NewRecord(m.cfg.Instance)
	record.Simple["address"] = m.address
	pause := backoff.New(retryBase, retryLimit, rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())))
	for {
		err := announce(ctx, s, at, record)
		if err == nil || ctx.Err() != nil {
			return
		}
		m.log.Warn("the address of the API can't be published yet", "path", at, "err", err)
		if pause.Wait(ctx) != nil {
			return
		}
	}
}

// announce creates the node. One of a former session goes: the live node says that this process has the name.
func announce(ctx context.Context, s *helix.Session, at string, record *helix.Record) error {
	data, err := record.Encode()
	if err != nil {
		return err
	}
	if err = s.CreateAll(ctx, path.Dir(at), nil); err != nil && !errors.Is(err, helix.ErrExists) {
		return err
	}
	found, stat, err := s.Exists(ctx, at, nil)
	switch {
	case err != nil:
		return err
	case found && stat.Owner == s.ID():
		return nil
	case found:
		if err = s.Delete(ctx, at, helix.AnyVersion); err != nil && !errors.Is(err, helix.ErrNotFound) {
			return err
		}
	}
	return s.CreateEphemeral(ctx, at, data)
}

// Transition implements helix.Handler.
func (m *member) Transition(ctx context.Context, t helix.Transition) error {
	p, err := partitionOf(t.Partition)
	if err != nil {
		return err
	}
	if t.To == helix.Online {
		if err := m.desk.ready(ctx); err != nil {
			return err
		}
		defer m.desk.arrive()
	}
	return m.model.Transition(ctx, p, statemodel.State(t.From), statemodel.State(t.To))
}

// Reset implements helix.Handler.
func (m *member) Reset(ctx context.Context, partitions []helix.Partition) {
	parts := make([]route.Partition, 0, len(partitions))
	for _, one := range partitions {
		if p, err := partitionOf(one); err == nil { // others never got anywhere
			parts = append(parts, p)
		}
	}
	m.model.Reset(ctx, parts)
}

// Suspend implements helix.Handler.
func (m *member) Suspend() { m.model.Suspend() }

// Resume implements helix.Handler.
func (m *member) Resume() { m.model.Resume() }

// partitionOf reads a resource as a topic: its partitions are numbers.
func partitionOf(p helix.Partition) (route.Partition, error) {
	n, err := strconv.ParseInt(p.Name, 10, 32)
	if err != nil || n < 0 {
		return route.Partition{}, fmt.Errorf("%s: a topic's partitions are numbers from 0 on", p)
	}
	return route.Partition{Topic: p.Resource, Partition: int32(n)}, nil
}
