package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/causeway-mirror/causeway/connector"
	"github.com/causeway-mirror/causeway/helix"
	"github.com/causeway-mirror/causeway/internal/backoff"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/operator"
	"github.com/causeway-mirror/causeway/route"
)

// hands carry out what an operator asks; *engine.Engine has them. See connector.Connector.
type hands interface {
	Configure(topic string, t operator.Topic)
	Has(p route.Partition) bool
	Retry(p route.Partition) bool
	Reset(ctx context.Context, p route.Partition, r connector.Reset) error
}

// desk is where operators' wishes arrive: it keeps the settings of topics as they stand in the cluster's tree, and has each command carried out
// once, by the worker that runs the partition, which then removes it. A command whose partition runs nowhere waits.
type desk struct {
	log     hclog.Logger
	cluster helix.Cluster
	hands   hands
	arrived chan struct{} // rung when a partition has come

	mu    sync.Mutex
	known chan struct{} // guarded by mu; closed once the settings were read in this session

	topics map[string]operator.Topic // as configured last; used by serve alone
	odd    map[string]int32          // versions of records that can't be read and were told; used by serve alone
}

func newDesk(cluster helix.Cluster, hands hands, log hclog.Logger) *desk {
	return &desk{
		log: log.Named("desk"), cluster: cluster, hands: hands, arrived: make(chan struct{}, 1), known: make(chan struct{}),
		topics: map[string]operator.Topic{}, odd: map[string]int32{},
	}
}

// settled is closed once the settings were read in this session.
func (d *desk) settled() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.known
}

// settle says that settings are known, or (false) that what is known may be outdated: between two sessions nobody follows what operators set.
func (d *desk) settle(known bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	select {
	case <-d.known:
		if !known {
			d.known = make(chan struct{})
		}
	default:
		if known {
			close(d.known)
		}
	}
}

// ready waits until settings are known: a partition that begins before might copy what is paused.
func (d *desk) ready(ctx context.Context) error {
	select {
	case <-d.settled():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// arrive says that a partition has come: commands may wait for it.
func (d *desk) arrive() {
	select {
	case d.arrived <- struct{}{}:
	default:
	}
}

// serve works until ctx ends, which it does with the session.
func (d *desk) serve(ctx context.Context, s *helix.Session) {
	defer d.settle(false)
	pause := backoff.New(retryBase, retryLimit, rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())))
	for {
		err := d.follow(ctx, s)
		if ctx.Err() != nil {
			return
		}
		d.log.Warn("what operators ask can't be read and is tried again", "err", err)
		d.settle(true) // what is known must do: partitions do not wait for it
		if pause.Wait(ctx) != nil {
			return
		}
	}
}

// follow is serve until something can't be read.
func (d *desk) follow(ctx context.Context, s *helix.Session) error {
	settings := helix.NewSubtree(s, d.cluster.Property("causeway", "topics"), 1, d.log)
	commands := helix.NewSubtree(s, d.cluster.Property("causeway", "commands"), 2, d.log)
	var work sync.WaitGroup
	defer work.Wait()
	ctx, cancel := context.WithCancel(ctx) // what is under way ends with what is read
	defer cancel()
	running, ended := map[string]bool{}, make(chan string)
	for {
		select {
		case <-settings.Changed():
			if err := settings.Refresh(ctx); err != nil {
				return err
			}
			d.configure(settings.Records())
			d.settle(true)
			continue
		case <-commands.Changed():
			if err := commands.Refresh(ctx); err != nil {
				return err
			}
		case at := <-ended:
			delete(running, at)
			if err := commands.Refresh(ctx); err != nil { // or it would be carried out again
				return err
			}
		case <-d.arrived:
		case <-ctx.Done():
			return ctx.Err()
		}
		for at, v := range commands.Records() {
			task, ok := d.task(at, v)
			if !ok || running[at] || !d.hands.Has(task.partition) {
				continue
			}
			running[at] = true
			work.Go(func() {
				task.run(ctx, s)
				select {
				case ended <- at:
				case <-ctx.Done():
				}
			})
		}
	}
}

// configure applies what has changed. A record that can't be read changes nothing.
func (d *desk) configure(records map[string]helix.Versioned) {
	for topic := range d.topics {
		if _, there := records[topic]; !there {
			d.hands.Configure(topic, operator.Topic{})
			delete(d.topics, topic)
		}
	}
	for topic, v := range records {
		t, err := operator.ReadTopic(v.Record.Simple, v.Record.Map)
		if err != nil {
			d.tellOdd("topics/"+topic, v.Version, err)
			continue
		}
		if !t.Equal(d.topics[topic]) {
			d.hands.Configure(topic, t)
			d.topics[topic] = t
		}
	}
}

// tellOdd tells once of a record that is skipped.
func (d *desk) tellOdd(at string, version int32, err error) {
	if told, ok := d.odd[at]; !ok || told != version {
		d.odd[at] = version
		d.log.Warn("what an operator asks can't be understood and is skipped", "path", at, "err", err)
	}
}

// task is a command to be carried out.
type task struct {
	log       hclog.Logger
	hands     hands
	path      string
	partition route.Partition
	command   operator.Command
	record    *helix.Record
	version   int32
}

// task reads a command; at is <topic>/<partition>.
func (d *desk) task(at string, v helix.Versioned) (*task, bool) {
	topic, name, _ := strings.Cut(at, "/")
	n, err := strconv.ParseInt(name, 10, 32)
	if err == nil && n < 0 {
		err = &operator.InvalidError{Key: "partition", Value: n, Reason: "must not be negative"}
	}
	command, err2 := operator.ReadCommand(v.Record.Simple)
	if err = errors.Join(err, err2); err != nil {
		d.tellOdd("commands/"+at, v.Version, err)
		return nil, false
	}
	return &task{
		log: d.log, hands: d.hands, path: d.cluster.Property("causeway", "commands", at), partition: route.Partition{Topic: topic, Partition: int32(n)},
		command: command, record: v.Record, version: v.Version,
	}, true
}

const (
	noteTimeout = 5 * time.Second // for a write that the data path waits for
	againAfter  = time.Second     // a command that could not be carried out is tried again after this
)

// run carries the command out and removes it, unless there is a newer one in its place by then.
func (t *task) run(ctx context.Context, s *helix.Session) {
	err := t.carryOut(ctx, s)
	if err == nil {
		err = s.DeleteUnchanged(ctx, t.path, t.version)
	}
	switch {
	case ctx.Err() != nil:
	case err == nil:
		t.log.Info("command carried out", "partition", t.partition.String(), "command", t.command.String())
	case errors.Is(err, helix.ErrBadVersion), errors.Is(err, helix.ErrNotFound):
		t.log.Info("command was replaced or taken back", "partition", t.partition.String())
	default:
		t.log.Warn("command can't be carried out yet", "partition", t.partition.String(), "err", err)
		wait := time.NewTimer(againAfter)
		defer wait.Stop()
		select {
		case <-wait.C:
		case <-ctx.Done():
		}
	}
}

func (t *task) carryOut(ctx context.Context, s *helix.Session) error {
	if t.command.To == nil {
		t.hands.Retry(t.partition)
		return nil
	}
	err := t.hands.Reset(ctx, t.partition, connector.Reset{
		To: *t.command.To, From: t.command.From,
		Note: func(ctx context.Context, from operator.Epoch) error { return t.note(ctx, s, from) },
	})
	if _, outside := errors.AsType[*connector.RangeError](err); outside || errors.Is(err, offsets.ErrMissing) {
		return nil // an event has told it
	}
	return err
}

// note stores in which epoch the reset began: whoever carries it out after us sees by it whether it is done.
func (t *task) note(ctx context.Context, s *helix.Session, from operator.Epoch) error {
	ctx, cancel := context.WithTimeout(ctx, noteTimeout)
	defer cancel()
	record := t.record.Clone()
	noted := t.command
	noted.From = &from
	noted.Write(record.Simple)
	text, err := record.Encode()
	if err != nil {
		return err
	}
	stat, err := s.Set(ctx, t.path, text, t.version)
	if err == nil {
		t.version = stat.Version // read by run, after Reset has returned
	}
	return err
}
