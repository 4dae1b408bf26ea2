package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

const (
	module    = "github.com/causeway-mirror/causeway"
	valueSize = 1000 // bytes
	// minFree is how much of the disk must be free before anything is written.
	minFree = 20 << 30
	// topicGone is how long a broker may take to forget a deleted topic, topicReady one to have leaders.
	topicGone  = time.Minute
	topicReady = time.Minute
)

// lab is the place where everything is measured: two clusters of one broker each, the programs, a folder.
type lab struct {
	opts    options
	stdout  io.Writer
	machine machine
	dir     string // programs, logs and states; removed at the end
	source  *site
	target  *site
	mm2Jars string // folder of MirrorMaker's jars; empty if there is none
	runs    int    // counts, for names
	races   int    // counts, for names
}

// site is one cluster and a client that asks about it.
type site struct {
	*kafkatest.Cluster

	adm *kadm.Client
}

func newLab(ctx context.Context, o options, stdout io.Writer) (*lab, error) {
	dir, err := os.MkdirTemp("", "causeway-bench-")
	if err != nil {
		return nil, fmt.Errorf("create folder: %w", err)
	}
	l := &lab{opts: o, stdout: stdout, machine: thisMachine(ctx), dir: dir}
	if err := l.open(ctx); err != nil {
		return nil, errors.Join(err, l.close())
	}
	return l, nil
}

func (l *lab) open(ctx context.Context) error {
	if err := l.diskFree(); err != nil {
		return err
	}
	l.say("building the programs")
	if err := l.build(ctx, "cmd/causeway", "test/bench/floor"); err != nil {
		return err
	}
	if l.opts.mm2 {
		jars, err := kafkatest.MirrorMakerLibs(kafkatest.Kafka3)
		if err != nil { // the tables say that it is missing
			l.say("no MirrorMaker 2: %v", err)
		}
		l.mm2Jars = jars
	}
	l.say("starting a source and a target broker")
	var err error
	if l.source, err = openSite(ctx, 1); err != nil {
		return err
	}
	l.target, err = openSite(ctx, 1)
	return err
}

// openSite starts a cluster whose brokers forget deleted topics at once.
func openSite(ctx context.Context, brokers int) (*site, error) {
	c, err := kafkatest.Open(ctx, kafkatest.Options{
		Version: kafkatest.Kafka3, Brokers: brokers, Proxy: brokers == 1, Heap: "1g",
		Config: map[string]string{
			"log.segment.delete.delay.ms": "1000", "num.network.threads": "3", "num.io.threads": "8", "num.replica.fetchers": "1",
		},
	})
	if err != nil {
		return nil, fmt.Errorf("start cluster: %w", err)
	}
	s, err := newSite(c)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return s, nil
}

func newSite(c *kafkatest.Cluster) (*site, error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.Bootstrap()...), kgo.MetadataMinAge(100*time.Millisecond))
	if err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	s := &site{Cluster: c, adm: kadm.NewClient(cl)}
	s.adm.SetTimeoutMillis(60_000) // a thousand partitions take their time
	return s, nil
}

// close ends the cluster, too.
func (s *site) close() error {
	if s == nil {
		return nil
	}
	s.adm.Close()
	return s.Cluster.Close()
}

func (l *lab) close() error {
	return errors.Join(l.source.close(), l.target.close(), os.RemoveAll(l.dir))
}

// build builds programs of this module, each by the name of its folder.
func (l *lab) build(ctx context.Context, paths ...string) error {
	for _, path := range paths {
		cmd := exec.CommandContext(ctx, "go", "build", "-o", l.program(filepath.Base(path)), module+"/"+path)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", path, err, out)
		}
	}
	return nil
}

func (l *lab) program(name string) string { return filepath.Join(l.dir, name) }

// diskFree refuses to go on where the disk would become full.
func (l *lab) diskFree() error {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(l.dir, &fs); err != nil {
		return fmt.Errorf("ask for free disk space: %w", err)
	}
	if free := fs.Bavail * uint64(fs.Bsize); free < minFree {
		return fmt.Errorf("only %d GB are free at %s, %d must be", free>>30, l.dir, uint64(minFree)>>30)
	}
	return nil
}

func (l *lab) say(format string, args ...any) {
	_, _ = fmt.Fprintf(l.stdout, "%s %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}

// records is how many a part writes: what was asked for, or its own number, or few in a quick run.
func (l *lab) records(own, quick int64) int64 {
	switch {
	case l.opts.records > 0:
		return l.opts.records
	case l.opts.quick:
		return quick
	default:
		return own
	}
}

// createTopic creates a topic and waits until each partition has a leader.
func (s *site) createTopic(ctx context.Context, topic string, partitions, replicas int) error {
	if _, err := s.adm.CreateTopic(ctx, int32(partitions), int16(replicas), nil, topic); err != nil {
		return fmt.Errorf("create topic %s: %w", topic, err)
	}
	return until(ctx, topicReady, func() (bool, error) {
		topics, err := s.adm.ListTopics(ctx, topic)
		if err != nil {
			return false, err
		}
		led := 0
		for _, p := range topics[topic].Partitions {
			if p.Err == nil && p.Leader >= 0 && len(p.ISR) == replicas {
				led++
			}
		}
		return led == partitions, nil
	})
}

// clean deletes the topics that begin with one of the prefixes and waits until the cluster has forgotten them.
func (s *site) clean(ctx context.Context, prefixes ...string) error {
	doomed := func() ([]string, error) {
		all, err := s.adm.ListTopics(ctx)
		if err != nil {
			return nil, err
		}
		return slices.DeleteFunc(all.Names(), func(name string) bool {
			return !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
		}), nil
	}
	names, err := doomed()
	if err != nil || len(names) == 0 {
		return err
	}
	if _, err := s.adm.DeleteTopics(ctx, names...); err != nil {
		return fmt.Errorf("delete topics: %w", err)
	}
	return until(ctx, topicGone, func() (bool, error) {
		left, err := doomed()
		return len(left) == 0, err
	})
}

// until asks until the answer is yes, and fails when the time is over.
func until(ctx context.Context, within time.Duration, ask func() (bool, error)) error {
	return untilEvery(ctx, 100*time.Millisecond, within, ask)
}

func untilEvery(ctx context.Context, every, within time.Duration, ask func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		ok, err := ask()
		if ok && err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, fmt.Errorf("waited %v in vain: %w", within, ctx.Err()))
		case <-tick.C:
		}
	}
}
