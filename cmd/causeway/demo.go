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

	"github.com/causeway-mirror/causeway/handler"
	"github.com/causeway-mirror/causeway/internal/conf"
)

const (
	demoBrokers = 3
	// demoCatchUp bounds the wait for the last records after the generator has stopped.
	demoCatchUp = time.Minute
	// stillStarting is how often the start of brokers is told of.
	stillStarting = 10 * time.Second
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
		Use: "demo", Short: "Run two small clusters, a generator and a mirror between them", Args: asUsed,
		Example: `  causeway demo
  causeway demo --for 10s --rate 20000
  causeway demo --kafka --for 10s`,
		RunE: action(d.run),
	}
	d.flags.set = cmd.Flags()
	set := cmd.Flags()
	set.StringVar(&d.listen, "listen", "127.0.0.1:8080", "`HOST:PORT` of API, metrics and UI")
	set.IntVar(&d.rate, "rate", 2000, "records per second")
	set.DurationVar(&d.length, "for", 0, "end after this time, compare both clusters and exit 0 when they are equal; 0s runs until interrupted")
	set.StringVar(&d.dir, "dir", "", "`DIR` for the demo's data: clusters and positions are kept there; without it in memory and a temporary folder")
	set.BoolVar(&d.kafka, "kafka", false, "use real Kafka brokers: of the installation that KAFKA_HOME names, or those that 'make kafka' fetched")
	d.flags.logFlags(cmd)
	return cmd
}

// demoClusters are the two clusters of a demo: embedded ones, or Kafka's own.
type demoClusters interface {
	addresses() (source, target []string)
	// forget applies retention until ctx ends, if the clusters do not themselves.
	forget(ctx context.Context)
	close() error
}

// settings are standalone's for the demo's clusters, whose addresses are not known yet: they are judged with others.
func (d *demo) settings(dir string) (settings, error) {
	s := defaultSettings()
	s.Route.Source.Bootstrap, s.Route.Target.Bootstrap = []string{"127.0.0.1:1"}, []string{"127.0.0.1:2"}
	for _, t := range demoTopics() {
		s.Route.Topics.Include = append(s.Route.Topics.Include, t.name)
	}
	s.Route.Topics.DiscoverInterval = conf.Duration(5 * time.Second)
	s.Worker.CommitInterval = conf.Duration(time.Second)
	s.Offsets.Dir, s.Server.Listen, s.Log.Level = dir, d.listen, "warn"
	s.stateKey = "--dir"
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

func (d *demo) run(ctx context.Context) (err error) {
	dir, removeDir, dirErr := d.folder()
	defer removeDir()
	s, err := d.settings(filepath.Join(dir, "state"))
	err = errors.Join(err, dirErr)
	if err != nil && d.kafka { // what Kafka lacks is told in the same go
		_, _, kafkaErr := kafkaInstall()
		err = errors.Join(err, kafkaErr)
	}
	if err != nil {
		return err
	}
	screen, logs, finish := openConsole(d.stdout, d.stderr)
	defer finish()
	clusters, err := d.startClusters(ctx, dir, screen)
	if clusters != nil {
		defer func() { err = errors.Join(err, clusters.close()) }()
	}
	if err != nil {
		return err
	}
	s.Route.Source.Bootstrap, s.Route.Target.Bootstrap = clusters.addresses()
	service, err := openService(ctx, s, newLogger(&s, logs), newMirror)
	if err != nil {
		return err
	}
	if !d.kafka {
		service.desk.noResets = errOneEpoch
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
	case err != nil:
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
		source: s.Route.Source, target: s.Route.Target, topics: filter, handler: h, committed: true, idle: 30 * time.Second, sample: 1,
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

// startClusters starts both clusters. The caller closes what it gets, also when there is an error.
func (d *demo) startClusters(ctx context.Context, dir string, screen *screen) (demoClusters, error) {
	endless := d.length == 0
	if !d.kafka {
		return startEmbedded(context.WithoutCancel(ctx), d.dir, endless)
	}
	in, release, err := kafkaInstall()
	if err != nil {
		return nil, err
	}
	screen.say("starting two brokers of Kafka %s (%s)", release, in.Libs)
	starting, started := context.WithCancel(ctx)
	var telling sync.WaitGroup
	defer telling.Wait()
	defer started()
	telling.Go(func() {
		for began := time.Now(); pause(starting, stillStarting); {
			screen.say("they are still starting, for %s now", time.Since(began).Round(time.Second))
		}
	})
	return startReal(ctx, in, dir, endless, d.dir != "")
}

// folder returns the folder for what the demo writes and what removes it afterwards. Real clusters have one of their own in --dir: the positions
// in embedded clusters mean nothing in them.
func (d *demo) folder() (dir string, remove func(), err error) {
	if d.dir != "" {
		dir = d.dir
		if d.kafka {
			dir, err = filepath.Abs(filepath.Join(d.dir, "kafka")) // brokers have working folders of their own
		}
		if err == nil {
			err = os.MkdirAll(dir, 0o750)
		}
		if err != nil {
			err = fault("--dir", d.dir, err.Error())
		}
		return dir, func() {}, err
	}
	if dir, err = os.MkdirTemp("", "causeway-demo-"); err != nil {
		return "", func() {}, fmt.Errorf("create folder: %w", err)
	}
	return dir, func() { _ = os.RemoveAll(dir) }, nil // what is left of a demo harms nobody
}
