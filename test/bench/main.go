package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

type options struct {
	parts   []string
	pairs   int
	records int64 // 0: each part's own
	quick   bool
	mm2     bool
	matrix  bool
	limit   time.Duration // of one run
	out     string        // document to write results to; empty: none
}

// part is one question and how it is answered. What it returns is written even if there is an error as well.
type part struct {
	name    string
	measure func(*lab, context.Context) (*report, error)
}

func parts() []part {
	return []part{
		{"volume", (*lab).volume},
		{"wan", (*lab).wan},
		{"replicas", (*lab).replicas},
		{"hot", (*lab).hot},
		{"filter", (*lab).filter},
		{"latency", (*lab).latency},
		{"gateway", (*lab).gateway},
		{"gateway-latency", (*lab).gatewayLatency},
		{"spill", (*lab).spill},
		{"purgatory", (*lab).purgatory},
		{"handover", (*lab).handover},
		{"cluster", (*lab).cluster}, // last: thousands of partitions keep brokers busy also after they are deleted
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout io.Writer) (err error) {
	o, err := parse(args)
	if err != nil {
		return err
	}
	l, err := newLab(ctx, o, stdout)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	var errs []error
	for _, p := range parts() {
		if !slices.Contains(o.parts, p.name) || ctx.Err() != nil {
			continue
		}
		if err := l.runPart(ctx, p); err != nil {
			errs = append(errs, fmt.Errorf("part %s: %w", p.name, err))
		}
	}
	return errors.Join(append(errs, ctx.Err())...)
}

// runPart measures one part, prints its report and puts it into the document.
func (l *lab) runPart(ctx context.Context, p part) error {
	began := time.Now()
	busy := busyCores(ctx)
	l.say("part %s", p.name)
	rep, err := p.measure(l, ctx)
	if err != nil {
		l.say("part %s: %v", p.name, err)
	}
	if rep == nil {
		return err
	}
	rep.conditions = l.machine.conditions(began, busy)
	if l.opts.quick {
		rep.conditions += " Tiny loads (-quick): these figures say nothing."
	}
	text := rep.String()
	_, errPrint := fmt.Fprintf(l.stdout, "\n%s\n", text)
	if l.opts.out == "" || ctx.Err() != nil { // an interrupted part is not worth keeping
		return errors.Join(err, errPrint)
	}
	return errors.Join(err, errPrint, writeSection(l.opts.out, p.name, text))
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	var names []string
	for _, p := range parts() {
		names = append(names, p.name)
	}
	list := flags.String("parts", strings.Join(names, ","), "what to measure")
	flags.IntVar(&o.pairs, "pairs", 5, "how often each mirror runs, in turn with the others")
	flags.Int64Var(&o.records, "records", 0, "records of each run; 0 lets each part choose")
	flags.BoolVar(&o.quick, "quick", false, "tiny loads, one run each, to see that everything works; -out must be given to write the result")
	flags.BoolVar(&o.mm2, "mm2", true, "run MirrorMaker 2, too")
	flags.BoolVar(&o.matrix, "matrix", true, "in part volume, the ten other combinations of partitions, codec and batch size, too")
	flags.DurationVar(&o.limit, "limit", 5*time.Minute, "a run ends then, and what it did until then counts")
	flags.StringVar(&o.out, "out", "docs/performance.md", "document whose generated sections are replaced; empty only prints")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	outGiven := false
	pairsGiven := false
	flags.Visit(func(f *flag.Flag) {
		outGiven = outGiven || f.Name == "out"
		pairsGiven = pairsGiven || f.Name == "pairs"
	})
	if o.quick && !outGiven {
		o.out = ""
	}
	if o.quick && !pairsGiven {
		o.pairs = 1
	}
	o.parts = strings.Split(*list, ",")
	for _, name := range o.parts {
		if !slices.Contains(names, name) {
			return o, fmt.Errorf("-parts: %q is none of %s", name, strings.Join(names, ", "))
		}
	}
	if o.pairs < 1 || o.records < 0 {
		return o, errors.New("-pairs must be at least 1 and -records not negative")
	}
	return o, nil
}
