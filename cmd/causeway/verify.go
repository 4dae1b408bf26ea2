package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/causeway-mirror/causeway/cluster"
	"github.com/causeway-mirror/causeway/handler"
	"github.com/causeway-mirror/causeway/internal/native"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/offsets/bolt"
	"github.com/causeway-mirror/causeway/route"
)

// comparedAtOnce is how many partitions are read at the same time.
const comparedAtOnce = 4

// exitIncomparable says that the comparison itself failed.
const exitIncomparable = 2

// verification is one comparison of two clusters.
type verification struct {
	source, target cluster.Config
	topics         native.Filter
	handler        *handler.Handler
	committed      bool
	idle           time.Duration
	sample         float64
	checkpoints    func(ctx context.Context, parts []route.Partition) (map[route.Partition]offsets.Checkpoint, error) // nil: from the earliest
}

// verdict is what a comparison found.
type verdict struct {
	Equal      bool   `json:"equal"`
	Topics     int    `json:"topics"`
	Partitions int    `json:"partitions"`
	Skipped    int    `json:"skipped_partitions"` // left out by --sample
	Records    int64  `json:"records"`
	Bytes      int64  `json:"bytes"`
	Older      int64  `json:"older_on_target"` // records that the source has deleted since
	Difference string `json:"first_difference"`
	// NotCompared says of topics why they could not be compared; then Equal is false, whatever the others are.
	NotCompared []string `json:"not_compared"`

	absent []string // topics that the target lacks: a difference, told when there is no other
}

func (v verdict) String() string {
	text := ""
	switch {
	case v.Difference != "":
		text = "different: " + v.Difference
	case v.Equal:
		return "equal: " + v.compared()
	}
	if len(v.NotCompared) > 0 {
		text = strings.TrimPrefix(text+"; not compared: "+strings.Join(v.NotCompared, "; "), "; ")
	}
	if v.Difference == "" {
		text += "; otherwise equal: " + v.compared()
	}
	return text
}

// compared counts what was found equal.
func (v verdict) compared() string {
	text := fmt.Sprintf("%s in %s of %s", plural(v.Records, "record"), plural(v.Partitions, "partition"), plural(v.Topics, "topic"))
	if v.Older > 0 {
		text += fmt.Sprintf(", and %s older ones that the source no longer has", count(v.Older))
	}
	if v.Skipped > 0 {
		text += fmt.Sprintf("; %d more were left out by --sample", v.Skipped)
	}
	return text
}

type verifyCommand struct {
	flags   settingFlags
	out     output
	from    string
	sample  float64
	timeout time.Duration
	stdout  io.Writer
}

func newVerify(stdout, _ io.Writer) *cobra.Command {
	v := &verifyCommand{stdout: stdout}
	cmd := &cobra.Command{
		Use: "verify", Short: "Read both clusters and compare them record by record: exit 0 equal, 1 different, 2 could not compare", Args: asUsed,
		Example: `  causeway verify --source kafka-a:9092 --target kafka-b:9092 --topics 'orders,payments\..*'`,
		RunE:    action(v.run),
	}
	v.flags.clusterFlags(cmd)
	v.out.flag(cmd)
	cmd.Flags().StringVar(&v.flags.state, "state", defaultSettings().Offsets.Dir, "`DIR` of standalone's positions, for --from checkpoint")
	cmd.Flags().StringVar(&v.from, "from", "earliest", "`WHERE` to begin: checkpoint or earliest")
	cmd.Flags().Float64Var(&v.sample, "sample", 1, "share of each topic's partitions to compare, at least one")
	cmd.Flags().DurationVar(&v.timeout, "timeout", 30*time.Second, "how long to wait for a record that is missing on the target")
	choices(cmd, "from", "earliest", "checkpoint")
	return cmd
}

func (v *verifyCommand) run(ctx context.Context) error {
	s, err := v.settings()
	if err != nil {
		return &exitError{exitIncomparable, err}
	}
	job, closeStore, err := v.prepare(&s)
	if err != nil {
		return &exitError{exitIncomparable, err}
	}
	defer closeStore()
	found, err := job.run(ctx)
	if err != nil {
		return &exitError{exitIncomparable, fmt.Errorf("could not compare: %w", err)}
	}
	if err := v.out.print(v.stdout, found, func(t *table) { t.row(found.String()) }); err != nil {
		return err
	}
	switch {
	case found.Difference != "":
		return &exitError{exitFailure, nil}
	case !found.Equal:
		return &exitError{exitIncomparable, nil}
	}
	return nil
}

// settings are standalone's, with the faults that matter for reading.
func (v *verifyCommand) settings() (settings, error) {
	s, err := v.flags.loadShared()
	faults := []error{err, native.OneOf("--from", v.from, "earliest", "checkpoint")}
	if !(v.sample > 0 && v.sample <= 1) {
		faults = append(faults, fault("--sample", fmt.Sprint(v.sample), "must be more than 0 and at most 1"))
	}
	if v.timeout <= 0 {
		faults = append(faults, fault("--timeout", v.timeout.String(), "must be more than 0s"))
	}
	if s.clustered() && v.from == "checkpoint" {
		faults = append(faults, fault("--from", v.from, "is for the folder of one process; a cluster's positions are in ZooKeeper: take earliest"))
	}
	if s.clustered() && len(s.Route.Topics.Include) == 0 {
		faults = append(faults, fault("route.topics.include (--topics)", "", "must name at least one topic or pattern"))
	}
	return s, errors.Join(faults...)
}

func (v *verifyCommand) prepare(s *settings) (job verification, closeStore func(), err error) {
	closeStore = func() {}
	job = verification{
		source: s.Route.Source, target: s.Route.Target,
		committed: s.Route.Isolation == "read_committed", idle: v.timeout, sample: v.sample,
	}
	if job.topics, err = s.filter(); err != nil {
		return job, closeStore, err
	}
	if job.handler, err = handler.New(s.Route.Topics.Config, s.Route.Source.Name, s.Route.Target.Name); err != nil {
		return job, closeStore, err
	}
	if v.from == "checkpoint" {
		if _, err = os.Stat(filepath.Join(s.Offsets.Dir, bolt.FileName)); err != nil { // opening would make a new one
			return job, closeStore, fmt.Errorf("no positions in --state %s: %w", s.Offsets.Dir, err)
		}
		store, openErr := bolt.Open(s.Offsets.Dir)
		if openErr != nil {
			return job, closeStore, fmt.Errorf("%w; a running standalone keeps its folder to itself", openErr)
		}
		job.checkpoints = store.Load
		closeStore = func() { _ = store.Close() } // it was only read
	}
	return job, closeStore, nil
}

// run compares everything that is selected and stops at the first difference. An error says that it could not compare.
func (v *verification) run(ctx context.Context) (verdict, error) {
	source, err := openSide("source", v.source, v.committed, v.idle)
	if err != nil {
		return verdict{}, err
	}
	defer source.close()
	target, err := openSide("target", v.target, v.committed, v.idle)
	if err != nil {
		return verdict{}, err
	}
	defer target.close()
	pairs, found, err := v.plan(ctx, source, target)
	if err != nil {
		return found, err
	}
	if found, err = v.compareAll(ctx, source, target, pairs, found); err != nil {
		return found, err
	}
	if found.Difference == "" && len(found.absent) > 0 {
		found.Difference = fmt.Sprintf("topic %s does not exist on the target", strings.Join(found.absent, ", "))
		if found.Partitions > 0 {
			found.Difference += "; the other topics are equal: " + found.compared()
		}
	}
	if v.checkpoints != nil && found.Records == 0 && found.Difference == "" {
		return found, fmt.Errorf("nothing came behind the stored positions of %s, and what lies before them is not looked at; "+
			"--from earliest compares all that the source has", plural(found.Partitions, "partition"))
	}
	found.Equal = found.Difference == "" && len(found.NotCompared) == 0
	return found, nil
}

func (*verification) compareAll(ctx context.Context, source, target *side, pairs []pair, found verdict) (verdict, error) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(comparedAtOnce)
	var mu sync.Mutex // guards found
	for _, p := range pairs {
		group.Go(func() error {
			out, err := compare(ctx, source, target, p)
			mu.Lock()
			defer mu.Unlock()
			found.Records += out.records
			found.Bytes += out.bytes
			found.Older += out.older
			if out.difference != "" {
				if found.Difference == "" {
					found.Difference = out.difference
				}
				return errDifferent // ends the others
			}
			return err
		})
	}
	err := group.Wait()
	if found.Difference != "" {
		return found, nil
	}
	found.Equal = err == nil
	return found, err
}

var errDifferent = errors.New("different")

// plan pairs the partitions and reads where they begin and end: the target's ends first, see pair.
func (v *verification) plan(ctx context.Context, source, target *side) ([]pair, verdict, error) {
	sourceCounts, err := source.partitionCounts(ctx)
	if err != nil {
		return nil, verdict{}, err
	}
	targetCounts, err := target.partitionCounts(ctx)
	if err != nil {
		return nil, verdict{}, err
	}
	topics, found, err := v.selected(sourceCounts, targetCounts)
	if err != nil {
		return nil, found, err
	}
	var names []string
	for _, t := range topics {
		names = append(names, t.Target)
	}
	targetExtents, err := target.extents(ctx, names)
	if err != nil {
		return nil, found, err
	}
	sourceExtents, err := source.extents(ctx, slices.Collect(maps.Keys(topics)))
	if err != nil {
		return nil, found, err
	}
	var pairs []pair
	for _, name := range sortedKeys(topics) {
		t := topics[name]
		some, pairErr := v.pairs(t, sourceCounts[name], targetCounts[t.Target], sourceExtents, targetExtents)
		if pairErr != nil {
			return nil, found, pairErr
		}
		pairs = append(pairs, some...)
		found.Skipped += int(sourceCounts[name]) - len(some)
		pairs = append(pairs, v.unsourced(t, sourceCounts[name], targetCounts[t.Target], targetExtents)...)
	}
	found.Partitions = len(pairs)
	return pairs, found, v.fromCheckpoints(ctx, pairs)
}

// selected maps the topics to compare. Those that cannot be compared and those that the target lacks are named in the verdict, so that the
// others are compared all the same; if there are no others, it is an error.
func (v *verification) selected(sourceCounts, targetCounts map[string]int32) (map[string]handler.Topic, verdict, error) {
	topics, sharing := map[string]handler.Topic{}, map[string][]string{}
	found := verdict{NotCompared: []string{}}
	for _, name := range sortedKeys(sourceCounts) {
		if v.topics.Refusal(name, false) != "" {
			continue
		}
		t, err := v.handler.Topic(name)
		if err != nil {
			found.NotCompared = append(found.NotCompared, err.Error())
			continue
		}
		topics[name] = t
		sharing[t.Target] = append(sharing[t.Target], name)
	}
	for _, name := range v.topics.Missing(func(name string) bool { _, ok := sourceCounts[name]; return ok }) {
		found.NotCompared = append(found.NotCompared, fmt.Sprintf("topic %s does not exist on the source", name))
	}
	for _, shared := range sortedKeys(sharing) {
		sources := sharing[shared]
		_, exists := targetCounts[shared]
		switch {
		case !exists:
			found.absent = append(found.absent, shared)
		case len(sources) > 1:
			found.NotCompared = append(found.NotCompared, fmt.Sprintf("topics %s share %s and cannot be compared", and(sources), shared))
		default:
			continue
		}
		for _, name := range sources {
			delete(topics, name)
		}
	}
	found.Topics = len(topics)
	switch {
	case len(topics) > 0 || len(found.absent) > 0:
		return topics, found, nil
	case len(found.NotCompared) > 0:
		return nil, found, errors.New(strings.Join(found.NotCompared, "; "))
	default:
		return nil, found, errors.New("no topic of the source matches --topics")
	}
}

// and lists names as a sentence does.
func and(names []string) string {
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

func (v *verification) pairs(t handler.Topic, n, m int32, sources, targets map[route.Partition]extent) ([]pair, error) {
	align, err := v.handler.Align(t.Source, n, m)
	if err != nil {
		return nil, err
	}
	var all []pair
	for p := range n {
		q, shared := align.Target(p)
		if shared && n > m {
			return nil, fmt.Errorf("several partitions of topic %s share one on the target, where their order is mixed", t.Source)
		}
		s, d := route.Partition{Topic: t.Source, Partition: p}, route.Partition{Topic: t.Target, Partition: q}
		all = append(all, pair{
			source: s, target: d, judge: t.Records,
			sourceFrom: sources[s].start, sourceEnd: sources[s].end, targetFrom: targets[d].start, targetEnd: targets[d].end,
			olderAllowed: sources[s].start > 0,
		})
	}
	if v.sample < 1 {
		rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		all = all[:max(1, int(float64(len(all))*v.sample))]
	}
	return all, nil
}

// unsourced are partitions that hold something on a target which has more of them than its source: each is compared with nothing.
func (v *verification) unsourced(t handler.Topic, n, m int32, targets map[route.Partition]extent) (all []pair) {
	for q := n; q < m && v.checkpoints == nil; q++ {
		s, d := route.Partition{Topic: t.Source, Partition: q}, route.Partition{Topic: t.Target, Partition: q}
		if x := targets[d]; x.end > x.start {
			all = append(all, pair{source: s, target: d, targetFrom: x.start, targetEnd: x.end})
		}
	}
	return all
}

// fromCheckpoints moves the beginnings to the stored positions, where it is known which offsets belong together.
func (v *verification) fromCheckpoints(ctx context.Context, pairs []pair) error {
	if v.checkpoints == nil {
		return nil
	}
	parts := make([]route.Partition, len(pairs))
	for i := range pairs {
		parts[i] = pairs[i].source
	}
	stored, err := v.checkpoints(ctx, parts)
	if err != nil {
		return fmt.Errorf("load checkpoints: %w", err)
	}
	for i := range pairs {
		c, ok := stored[pairs[i].source]
		if !ok || c.SourceOffset < 0 || c.TargetOffset < 0 {
			return fmt.Errorf("no checkpoint of %s says where its copy stands on the target", pairs[i].source)
		}
		pairs[i].sourceFrom, pairs[i].targetFrom, pairs[i].olderAllowed = int64(c.SourceOffset), int64(c.TargetOffset), false
	}
	return nil
}
