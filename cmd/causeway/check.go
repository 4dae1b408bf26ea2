package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/causeway-mirror/causeway/cmd/internal/engine"
	"github.com/causeway-mirror/causeway/handler"
	"github.com/causeway-mirror/causeway/internal/native"
)

// severity is what a finding means for the mirror.
type severity string

const (
	good severity = "ok"
	warn severity = "warning" // it mirrors, but not all, or not for long
	bad  severity = "error"   // some of it would stand still
)

// point is one thing that was looked at. Two topics of which the same is found share a line.
type point struct {
	Severity severity `json:"severity"`
	Key      string   `json:"key"`
	Value    string   `json:"value"`
	Reason   string   `json:"reason"`
	Remedy   string   `json:"remedy"` // empty where all is well
}

// finding is a point and the topics that it is about, none if it is about a whole cluster.
type finding struct {
	point

	Topics []string `json:"topics"`
}

// String is the finding in one line.
func (f *finding) String() string {
	text := fmt.Sprintf("%-7s  %s %q", f.Severity, f.Key, f.Value)
	switch n := len(f.Topics); {
	case n == 1:
		text += " of topic " + f.Topics[0]
	case n > 1:
		text += " of topics " + and(named(f.Topics))
	}
	text += ": " + strings.ReplaceAll(f.Reason, "\n", "; ")
	if f.Remedy != "" {
		text += "; " + f.Remedy
	}
	return text
}

// named shortens a list of topics.
func named(topics []string) []string {
	const shown = 3
	if len(topics) <= shown+1 {
		return topics
	}
	return append(topics[:shown:shown], fmt.Sprintf("%d others", len(topics)-shown))
}

// findings are all that was found, in the order in which it was looked at.
type findings struct {
	found []*finding
	known map[point]*finding
}

// add tells of a point, and of a topic if it is about one.
func (r *findings) add(p point, topics ...string) {
	if r.known == nil {
		r.known = map[point]*finding{}
	}
	f, ok := r.known[p]
	if !ok {
		f = &finding{point: p, Topics: []string{}}
		r.known[p], r.found = f, append(r.found, f)
	}
	f.Topics = append(f.Topics, topics...)
}

// count is the number of findings of a severity.
func (r *findings) count(of severity) (n int) {
	for _, f := range r.found {
		if f.Severity == of {
			n++
		}
	}
	return n
}

// checkCommand is the pre-flight of a mirror. It changes nothing anywhere.
type checkCommand struct {
	flags   settingFlags
	out     output
	timeout time.Duration
	stdout  io.Writer
}

func newCheck(stdout io.Writer) *cobra.Command {
	c := &checkCommand{stdout: stdout}
	cmd := &cobra.Command{
		Use: "check", Short: "Look at both clusters for what would stop a mirror, changing nothing: exit 0 when nothing would", Args: asUsed,
		Example: `  causeway check --config causeway.yaml`,
		RunE:    action(c.run),
	}
	c.flags.all(cmd) // what is told to standalone may be checked as it is
	c.out.flag(cmd)
	cmd.Flags().DurationVar(&c.timeout, "timeout", time.Minute, "how long the whole check may take")
	return cmd
}

func (c *checkCommand) run(ctx context.Context) error {
	s, err := c.flags.loadShared()
	if err != nil {
		return err
	}
	if c.timeout <= 0 {
		return fault("--timeout", c.timeout.String(), "must be more than 0s")
	}
	h, err := handler.New(s.Route.Topics.Config, s.Route.Source.Name, s.Route.Target.Name)
	if err != nil {
		return native.TopicFaults(err)
	}
	filter, err := s.filter()
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	job := preflight{settings: &s, handler: h, filter: filter}
	if err = job.run(limited); err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return err
	}
	return c.tell(&job.findings)
}

// tell prints what was found, and ends with 1 if something of it would stop the mirror.
func (c *checkCommand) tell(r *findings) error {
	err := c.out.print(c.stdout, r.found, func(*table) {
		for _, f := range r.found {
			fmt.Fprintln(c.stdout, f)
		}
		fmt.Fprintf(c.stdout, "%s, %s\n", counted(r.count(bad), "error"), counted(r.count(warn), "warning"))
	})
	if err == nil && r.count(bad) > 0 {
		err = &exitError{exitFailure, nil}
	}
	return err
}

// counted is a number with its noun.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// validateShared judges a file that may be of any of the programs: of one process, or of a cluster's workers and controllers.
func (s *settings) validateShared() error {
	var placeErr error
	if s.clustered() {
		placeErr = s.ValidateCoordination()
	} else if len(s.Route.Topics.Include) == 0 {
		placeErr = fault("route.topics.include (--topics)", "", "must name at least one topic or pattern")
	}
	return errors.Join(s.ValidateRoute(), s.ValidateMapping(), placeErr, s.ValidateWorker(), s.ValidateController(),
		s.ValidateOffsets(native.StoreFile, native.StoreZooKeeper), s.ValidateLog(), s.ValidateServer())
}

// clustered says that workers share the route, and meet in a ZooKeeper.
func (s *settings) clustered() bool { return s.Coordination.ZooKeeper != "" }

// preflight looks at both clusters and at what the mirror needs around it.
type preflight struct {
	settings *settings
	handler  *handler.Handler
	filter   native.Filter
	findings
}

// run looks at one thing after the other. What can't be asked of a cluster that does not answer is left out.
func (p *preflight) run(ctx context.Context) error {
	source, err := newCheckedSide("source", p.settings.Route.Source)
	if err != nil {
		return err
	}
	defer source.close()
	target, err := newCheckedSide("target", p.settings.Route.Target)
	if err != nil {
		return err
	}
	defer target.close()
	source.reach(ctx, &p.findings)
	target.reach(ctx, &p.findings)
	p.checkPlaces(ctx)
	if source.answers && target.answers {
		p.checkTopics(ctx, source, target)
	}
	return nil
}

// checkPlaces looks at where positions are kept and workers meet.
func (p *preflight) checkPlaces(ctx context.Context) {
	s := p.settings
	if !s.clustered() {
		p.checkFolder(s.Offsets.Dir)
		return
	}
	p.checkZooKeeper(ctx, "coordination.zookeeper", s.Coordination.ZooKeeper)
	if other := s.OffsetsZooKeeper(); other != s.Coordination.ZooKeeper {
		p.checkZooKeeper(ctx, "offsets.zookeeper", other)
	}
}

// leastFree is where the alert CausewayDiskFull begins, in bytes.
const leastFree = 100e6

func (p *preflight) checkFolder(dir string) {
	at := point{good, p.settings.stateKey, dir, "", ""}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		at.Reason = "is not there yet; the mirror begins at route.start (" + p.settings.Route.Start + ")"
	case err != nil:
		at.Severity, at.Reason, at.Remedy = bad, err.Error(), "let the mirror's user read and write it"
	case !info.IsDir():
		at.Severity, at.Reason, at.Remedy = bad, "is not a folder", "name a folder of which the mirror keeps its positions"
	default:
		at.Reason = "is there; a mirror goes on from the positions in it"
		if free, freeErr := engine.FreeBytes(dir); freeErr == nil && free < leastFree {
			at.Severity, at.Reason = warn, fmt.Sprintf("only %.0f MB are free on its disk", free/1e6)
			at.Remedy = "make room: a mirror that can't store positions stops"
		}
	}
	p.add(at)
}

func silent() hclog.Logger { return hclog.NewNullLogger() }
