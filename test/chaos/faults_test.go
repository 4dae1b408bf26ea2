package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/causeway-mirror/causeway/internal/kafkad"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// Kinds of faults.
const (
	killed     = "killed"
	terminated = "terminated"
	paused     = "paused"
	refused    = "refused"    // nobody listens
	swallowed  = "swallowed"  // all is held, both ways
	unanswered = "unanswered" // what comes back is held
	cut        = "cut"
	delayed    = "delayed"
	moved      = "moved"
	deleted    = "records deleted"
	remade     = "made anew"
	cutOff     = "all refused" // of every broker of a cluster: what outlasts overflow_timeout is spilled
	filled     = "full"
)

// everything is what may happen where so many clusters of brokers (1: source and target in one), workers and disks are.
func everything(clusters, workers, disks int) (all []subject) {
	const beyond = session * 2 // longer than a session lives
	process := []kind{
		{killed, 0, 2 * time.Second},
		{terminated, 0, 2 * time.Second},
		{paused, time.Second, beyond},
		{refused, time.Second, beyond},
		{swallowed, time.Second, beyond},
		{unanswered, time.Second, beyond},
	}
	for i := range workers {
		all = append(all, subject{fmt.Sprintf("worker-%d", i+1), process, 10 * time.Second})
	}
	for i := range 2 {
		all = append(all, subject{fmt.Sprintf("controller-%d", i+1), process, 15 * time.Second})
	}
	all = append(all,
		subject{"zookeeper", []kind{{killed, 0, beyond}, {paused, time.Second, beyond}}, 30 * time.Second},
		subject{"topics", []kind{{deleted, 0, 0}, {remade, 0, 0}}, 10 * time.Second},
	)
	for i := range clusters {
		all = append(all,
			subject{fmt.Sprintf("brokers-%d", i), []kind{
				{killed, 0, 3 * time.Second}, {terminated, 0, 3 * time.Second}, {paused, time.Second, 7 * time.Second},
			}, 15 * time.Second},
			subject{fmt.Sprintf("links-%d", i), []kind{
				{cut, 0, 0},
				{refused, 0, 4 * time.Second},
				{swallowed, 0, 4 * time.Second},
				{unanswered, 0, 4 * time.Second},
				{delayed, time.Second, 10 * time.Second},
				{cutOff, time.Second, 6 * time.Second},
			}, 8 * time.Second},
			subject{fmt.Sprintf("leaders-%d", i), []kind{{moved, 0, 0}}, 10 * time.Second},
		)
	}
	for i := range disks {
		all = append(all, subject{fmt.Sprintf("disk-%d", i+1), []kind{{filled, time.Second, 5 * time.Second}}, 8 * time.Second})
	}
	return all
}

// strike does what an action says and returns when it is over and mended.
func (s *stage) strike(ctx context.Context, a action) error {
	class, number, _ := strings.Cut(a.subject, "-")
	switch class {
	case "worker":
		return strikeProcess(ctx, s.workers[number[0]-'1'], a)
	case "controller":
		return strikeProcess(ctx, s.controllers[number[0]-'1'], a)
	case "zookeeper":
		return server(ctx, s.zookeeper, a)
	case "brokers":
		return strikeBroker(ctx, s.clusters[number[0]-'0'], a)
	case "links":
		return strikeLinks(ctx, s.clusters[number[0]-'0'].Brokers(), a)
	case "disk":
		return s.disks[number[0]-'1'].strike(ctx, a)
	case "leaders":
		return moveLeaders(ctx, s.clusters[number[0]-'0'])
	case "topics":
		if a.kind == deleted {
			return s.purge(ctx, int32(a.choice%partitions))
		}
		return s.remake(ctx)
	}
	return fmt.Errorf("nobody knows %s", a.subject)
}

// strikeProcess strikes a worker or controller.
func strikeProcess(ctx context.Context, of *actor, a action) error {
	if err := of.alive(); err != nil {
		return err
	}
	of.sample()
	switch a.kind {
	case killed:
		if err := of.Kill(); err != nil {
			return err
		}
		await(ctx, a.lasting)
		return of.Start()
	case terminated:
		if err := of.Stop(); err != nil {
			return err
		}
		if code := of.ExitCode(); code != 0 {
			return fmt.Errorf("%s: exit code %d after SIGTERM", of.id, code)
		}
		await(ctx, a.lasting)
		return of.Start()
	case paused:
		if err := of.Pause(); err != nil {
			return err
		}
		await(ctx, a.lasting)
		return of.Resume()
	default:
		return link(ctx, of.link, a)
	}
}

// serving is a server that comes back with what it had.
type serving interface {
	Kill() error
	Stop() error
	Pause() error
	Resume() error
	Start(ctx context.Context) error
}

func server(ctx context.Context, of serving, a action) error {
	end := map[string]func() error{killed: of.Kill, terminated: of.Stop, paused: of.Pause}[a.kind]
	if err := end(); err != nil {
		return err
	}
	await(ctx, a.lasting)
	if a.kind == paused {
		return of.Resume()
	}
	return of.Start(ctx)
}

// strikeBroker strikes one of a cluster's brokers and waits until every replica is in sync: with two away nobody could write.
func strikeBroker(ctx context.Context, of *kafkatest.Cluster, a action) error {
	brokers := of.Brokers()
	if err := server(ctx, brokers[a.choice%uint64(len(brokers))], a); err != nil {
		return err
	}
	return inSync(ctx, of)
}

// strikeLinks strikes the link to one of the brokers, or those to all of them.
func strikeLinks(ctx context.Context, of []*kafkatest.Broker, a action) error {
	if a.kind != cutOff {
		return link(ctx, of[a.choice%uint64(len(of))].Proxy(), a)
	}
	for _, b := range of {
		b.Proxy().Refuse()
	}
	await(ctx, a.lasting)
	var faults []error
	for _, b := range of {
		faults = append(faults, b.Proxy().Heal())
	}
	return errors.Join(faults...)
}

// link strikes a link and mends it.
func link(ctx context.Context, of *kafkatest.Proxy, a action) error {
	switch a.kind {
	case cut:
		of.Cut()
	case delayed:
		of.SetDelay(time.Duration(1+a.choice%100) * time.Millisecond)
	case refused:
		of.Refuse()
	case swallowed:
		of.Blackhole()
	default:
		of.HoldAnswers()
	}
	await(ctx, a.lasting)
	of.SetDelay(0)
	return of.Heal()
}

// admin calls f with a client of a cluster until it succeeds: brokers come and go meanwhile.
func admin(ctx context.Context, of *kafkatest.Cluster, f func(context.Context, *kadm.Client) error) error {
	cl, err := client(of)
	if err != nil {
		return err
	}
	defer cl.Close()
	return kafkad.Poll(ctx, healedWithin, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		return f(ctx, kadm.NewClient(cl))
	})
}

// client gives up a request soon, so that what is done by it is tried again.
func client(of *kafkatest.Cluster) (*kgo.Client, error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(of.Bootstrap()...), kgo.RetryTimeout(5*time.Second), kgo.MetadataMinAge(100*time.Millisecond))
	if err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	return cl, nil
}

// inSync waits until all replicas of all topics are in sync.
func inSync(ctx context.Context, of *kafkatest.Cluster) error {
	return admin(ctx, of, func(ctx context.Context, adm *kadm.Client) error {
		topics, err := adm.ListTopicsWithInternal(ctx)
		if err != nil {
			return fmt.Errorf("list topics: %w", err)
		}
		for _, topic := range topics {
			for _, p := range topic.Partitions {
				if p.Leader < 0 || len(p.ISR) < len(p.Replicas) {
					return fmt.Errorf("%s-%d: leader %d, in sync are %v of %v", p.Topic, p.Partition, p.Leader, p.ISR, p.Replicas)
				}
			}
		}
		return nil
	})
}

// moveLeaders gives each partition's leadership to the next of its replicas, as far as that one is in sync.
func moveLeaders(ctx context.Context, of *kafkatest.Cluster) error {
	return admin(ctx, of, func(ctx context.Context, adm *kadm.Client) error {
		topics, err := adm.ListTopics(ctx)
		if err != nil {
			return fmt.Errorf("list topics: %w", err)
		}
		var order kadm.AlterPartitionAssignmentsReq
		var all kadm.TopicsSet
		for _, topic := range topics {
			for _, p := range topic.Partitions {
				if len(p.Replicas) > 1 {
					order.Assign(p.Topic, p.Partition, append(slices.Clone(p.Replicas[1:]), p.Replicas[0]))
					all.Add(p.Topic, p.Partition)
				}
			}
		}
		if _, err := adm.AlterPartitionAssignments(ctx, order); err != nil {
			return fmt.Errorf("change the order of replicas: %w", err)
		}
		_, err = adm.ElectLeaders(ctx, kadm.ElectPreferredReplica, all) // a partition's own error is one that is being moved or remade
		return err
	})
}

// purge deletes all records that a partition of the purged topic holds.
func (s *stage) purge(ctx context.Context, partition int32) error {
	return admin(ctx, s.source(), func(ctx context.Context, adm *kadm.Client) error {
		var before kadm.Offsets
		before.AddOffset(purged, partition, -1, -1)
		answers, err := adm.DeleteRecords(ctx, before)
		return errors.Join(err, answers.Error())
	})
}

// remake deletes the reborn topic and makes it anew.
func (s *stage) remake(ctx context.Context) error {
	f := s.feeds[reborn]
	if err := f.end(); err != nil {
		return err
	}
	cl, err := client(s.source())
	if err != nil {
		return err
	}
	defer cl.Close()
	err = s.source().RemakeUnder(ctx, cl, reborn, partitions, healedWithin)
	f.mu.Lock()
	f.life++
	f.mu.Unlock()
	f.start(ctx)
	return err
}
