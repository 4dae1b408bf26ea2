package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/causeway-mirror/causeway/handler"
	"github.com/causeway-mirror/causeway/internal/conf"
)

const (
	demoBrokers = 3
	// demoCatchUp bounds the wait for the last records after the generator has stopped.
	demoCatchUp = time.Minute
	// demoKeep is how long an endless demo keeps records: its clusters live in memory.
	demoKeep = 5 * time.Minute
)

type demo struct {
	listen         string
	rate           int
	length         time.Duration
	dir            string
	kafka          bool
	flags          settingFlags // of logging only
	stdout, stderr io.Writer
}

func newDemo(stdout, stderr io.Writer) *cobra.Command {
	d := &demo{stdout: stdout, stderr: stderr}
	cmd := &cobra.Command{
		Use: "demo", Short: "Run two small clusters, a generator and a mirror between them", Args: cobra.NoArgs,
		Example: `  causeway demo
  causeway demo --for 10s --rate 20000`,
		RunE: action(d.run),
	}
	d.flags.set = cmd.Flags()
	set := cmd.Flags()
	set.StringVar(&d.listen, "listen", "127.0.0.1:8080", "`HOST:PORT` of API, metrics and UI")
	set.IntVar(&d.rate, "rate", 2000, "records per second")
	set.DurationVar(&d.length, "for", 0, "end after this time, compare both clusters and exit 0 when they are equal; 0s runs until interrupted")
	set.StringVar(&d.dir, "dir", "", "`DIR` for the demo's data: clusters and positions are kept there; without it in memory and a temporary folder")
	set.BoolVar(&d.kafka, "kafka", false, "use real Kafka brokers instead of embedded ones")
	d.flags.logFlags(cmd)
	return cmd
}

// demoClusters are the two clusters of a demo.
type demoClusters struct{ source, target *kfake.Cluster }

func (c demoClusters) close() {
	for _, k := range []*kfake.Cluster{c.source, c.target} {
		if k != nil {
			k.Close()
		}
	}
}

// startClusters starts both clusters. Without a folder they live in memory; with one they are kept, as the mirror's positions are.
func startClusters(ctx context.Context, dir string, endless bool) (demoClusters, error) {
	var c demoClusters
	var err error
	start := func(name string) (*kfake.Cluster, error) {
		opts := []kfake.Opt{kfake.NumBrokers(demoBrokers), kfake.ClusterID("demo-" + name)}
		if dir != "" {
			opts = append(opts, kfake.DataDir(filepath.Join(dir, name)))
		}
		cluster, startErr := newEmbedded(ctx, opts...)
		if startErr != nil {
			return nil, fmt.Errorf("start %s cluster: %w", name, startErr)
		}
		return cluster, nil
	}
	if c.source, err = start("source"); err != nil {
		return c, err
	}
	if c.target, err = start("target"); err != nil {
		return c, err
	}
	return c, c.createTopics(endless)
}

func (c demoClusters) createTopics(endless bool) error {
	configs := map[string]string{}
	if endless {
		configs["retention.ms"] = strconv.FormatInt(demoKeep.Milliseconds(), 10)
	}
	clusters := []*kfake.Cluster{c.source}
	if endless {
		clusters = append(clusters, c.target) // so that the target forgets too; else the mirror creates its topics
	}
	for _, t := range demoTopics() {
		for _, cluster := range clusters {
			if cluster.TopicInfo(t.name) != nil {
				continue // kept from an earlier demo in the same folder
			}
			if err := cluster.CreateTopic(t.name, t.partitions, configs); err != nil {
				return fmt.Errorf("create topic %s: %w", t.name, err)
			}
		}
	}
	return nil
}

// forget applies retention until ctx ends.
func (c demoClusters) forget(ctx context.Context) {
	for pause(ctx, demoKeep/10) {
		c.source.ApplyRetention()
		c.target.ApplyRetention()
	}
}

// settings are standalone's for the demo's clusters.
func (d *demo) settings(source, target []string, dir string) (settings, error) {
	s := defaultSettings()
	s.Route.Source.Bootstrap, s.Route.Target.Bootstrap = source, target
	for _, t := range demoTopics() {
		s.Route.Topics.Include = append(s.Route.Topics.Include, t.name)
	}
	s.Route.Topics.DiscoverInterval = conf.Duration(5 * time.Second)
	s.Worker.CommitInterval = conf.Duration(time.Second)
	s.Offsets.Dir, s.Server.Listen, s.Log.Level = dir, d.listen, "warn"
	over(&d.flags, "log-level", d.flags.logLevel, &s.Log.Level)
	over(&d.flags, "log-format", d.flags.logFormat, &s.Log.Format)
	faults := []error{s.validate()}
	if d.rate < 1 {
		faults = append(faults, fault("--rate", strconv.Itoa(d.rate), "must be at least 1"))
	}
	if d.length < 0 {
		faults = append(faults, fault("--for", d.length.String(), "must be 0s or more"))
	}
	return s, errors.Join(faults...)
}

func (d *demo) run(ctx context.Context) error {
	if d.kafka {
		return errors.New("--kafka: real brokers are started by `make kafka` and the tests for now; the demo cannot yet")
	}
	clusters, err := startClusters(context.WithoutCancel(ctx), d.dir, d.length == 0)
	defer clusters.close()
	if err != nil {
		return err
	}
	dir, removeDir, err := d.stateDir()
	if err != nil {
		return err
	}
	defer removeDir()
	s, err := d.settings(clusters.source.ListenAddrs(), clusters.target.ListenAddrs(), dir)
	if err != nil {
		return err
	}
	screen := newScreen(d.stdout)
	service, err := openService(ctx, s, newLogger(&s, screen.logWriter(d.stderr)), newMirror)
	if err != nil {
		return err
	}
	screen.say("source cluster  %s", strings.Join(s.Route.Source.Bootstrap, ","))
	screen.say("target cluster  %s", strings.Join(s.Route.Target.Bootstrap, ","))
	screen.say("API and UI      %s", service.address())
	screen.say("topics          %s", strings.Join(s.Route.Topics.Include, ", "))
	if d.length == 0 {
		background, stop := context.WithCancel(ctx)
		var wg sync.WaitGroup
		wg.Go(func() { clusters.forget(background) })
		defer wg.Wait()
		defer stop()
	}
	return d.play(ctx, s, service, screen)
}

// play runs the service beside the generator and judges at the end.
func (d *demo) play(ctx context.Context, s settings, service *service, screen *screen) error {
	serving, stop := context.WithCancel(context.WithoutCancel(ctx)) // the mirror goes on until the copy is complete
	served := make(chan error, 1)
	go func() { served <- service.run(serving) }() // owned by play, which reads served
	verdictErr := d.generateAndJudge(ctx, s, service, screen, served)
	stop()
	err := <-served
	return errors.Join(verdictErr, err)
}

func (d *demo) generateAndJudge(ctx context.Context, s settings, service *service, screen *screen, served chan error) error {
	generator, err := newGenerator(s.Route.Source.Bootstrap, d.rate)
	if err != nil {
		return err
	}
	defer generator.close()
	showing, hide := context.WithCancel(ctx)
	defer hide()
	generating, stop := context.WithCancel(ctx)
	if d.length > 0 {
		generating, stop = context.WithTimeout(ctx, d.length)
	}
	defer stop()
	var wg sync.WaitGroup
	wg.Go(func() { showProgress(showing, screen, service.Snapshot) })
	defer wg.Wait()
	defer hide()
	generated := make(chan error, 1)
	go func() { generated <- generator.run(generating) }() // owned by this function: it reads generated on every way out
	select {
	case err = <-generated:
	case failed := <-served: // the mirror ended by itself
		served <- failed
		stop()
		return errors.Join(<-generated, failed)
	}
	if err != nil || d.length == 0 {
		return err
	}
	if ctx.Err() != nil {
		return errors.New("interrupted before the copy could be compared")
	}
	if err := catchUp(ctx, service); err != nil {
		return err
	}
	hide()
	wg.Wait()
	sent := generator.sent.Load()
	if d.dir != "" {
		sent = -1 // the clusters hold earlier records too
	}
	return judge(ctx, s, sent, screen)
}

// catchUp waits until everything that was produced is on the target.
func catchUp(ctx context.Context, service *service) error {
	limited, cancel := context.WithTimeout(ctx, demoCatchUp)
	defer cancel()
	present, ok, err := service.WaitCaughtUp(limited, "", 0)
	switch {
	case ok:
		return nil
	case err != nil && limited.Err() == nil:
		return fmt.Errorf("wait for the copy: %w", err)
	default:
		return fmt.Errorf("the copy was still %d records behind after %s", present, demoCatchUp)
	}
}

// judge compares the clusters with an independent reader and prints the verdict. It also counts: sent records must be there, -1 for any number.
func judge(ctx context.Context, s settings, sent int64, screen *screen) error {
	filter, err := s.filter()
	if err != nil {
		return err
	}
	h, err := handler.New(s.Route.Topics.Config, s.Route.Source.Name, s.Route.Target.Name)
	if err != nil {
		return err
	}
	job := verification{
		source: s.Route.Source, target: s.Route.Target, topics: filter, handler: h, committed: true, idle: 5 * time.Second, sample: 1,
	}
	found, err := job.run(ctx)
	if err != nil {
		return fmt.Errorf("could not compare: %w", err)
	}
	if found.Equal && sent >= 0 && found.Records != sent {
		found.Equal, found.Difference = false, fmt.Sprintf("%d records were produced and %d compared", sent, found.Records)
	}
	screen.say("verdict: %s", found)
	if !found.Equal {
		return &exitError{exitFailure, nil}
	}
	return nil
}

// stateDir returns the folder for the mirror's state and what removes it afterwards.
func (d *demo) stateDir() (dir string, remove func(), err error) {
	if d.dir != "" {
		return filepath.Join(d.dir, "state"), func() {}, nil
	}
	if dir, err = os.MkdirTemp("", "causeway-demo-"); err != nil {
		return "", nil, fmt.Errorf("create state folder: %w", err)
	}
	return dir, func() { _ = os.RemoveAll(dir) }, nil // what is left of a demo harms nobody
}
