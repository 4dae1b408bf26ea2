package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// gates are gateways before both clusters.
type gates struct {
	from, to string
	end      func() error
}

func (l *lab) openGates(ctx context.Context) (*gates, error) {
	from, endFrom, err := l.openGate(ctx, l.source)
	if err != nil {
		return nil, err
	}
	to, endTo, err := l.openGate(ctx, l.target)
	if err != nil {
		return nil, errors.Join(err, endFrom())
	}
	return &gates{from, to, func() error { return errors.Join(endFrom(), endTo()) }}, nil
}

// gateway asks what is left of the throughput when the mirror reaches its source, or both clusters, through gateways.
func (l *lab) gateway(ctx context.Context) (rep *report, err error) {
	g, err := l.openGates(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.end()) }()
	records := l.records(3_000_000, 200_000)
	rep = newReport(fmt.Sprintf("8 partitions, lz4, 64 KB batches, %s records of %d bytes. `source` reads through a gateway, `both` also writes through one. The gateways run on the same two cores as all else; CPU is that of the mirror alone.",
		thousands(float64(records)), valueSize))
	s, err := l.race(ctx, race{
		name: "8, lz4, 64 KB", job: l.job("gateway", 8, "lz4", records), batch: 64 << 10, pairs: l.opts.pairs, target: l.target,
		entrants: []entrant{l.causeway("direct", ""), l.through("source", g.from, ""), l.through("both", g.from, g.to)},
		compare:  [][2]string{{"source", "direct"}, {"both", "direct"}},
	})
	rep.add(s)
	return rep, err
}

// gatewayLatency asks by how much gateways make records later.
func (l *lab) gatewayLatency(ctx context.Context) (rep *report, err error) {
	g, err := l.openGates(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.end()) }()
	return l.late(ctx, 20*time.Second, entrant{name: "source"}, l.causeway("direct", "", "--start", "latest"), l.through("both", g.from, g.to, "--start", "latest"))
}

// through is a mirror that has the addresses of gateways in place of brokers', where they are not empty.
func (l *lab) through(name, from, to string, flags ...string) entrant {
	mirror := l.causeway(name, "", flags...)
	return entrant{name: name, start: func(r turn) (*kafkatest.Program, error) {
		if from != "" {
			r.from = []string{from}
		}
		if to != "" {
			r.to = []string{to}
		}
		return mirror.start(r)
	}}
}

// openGate starts a gateway before a cluster and returns where it is.
func (l *lab) openGate(ctx context.Context, s *site) (at string, end func() error, err error) {
	l.runs++
	dir := filepath.Join(l.dir, fmt.Sprintf("gateway-%d", l.runs))
	if err = os.Mkdir(dir, 0o750); err != nil {
		return "", nil, fmt.Errorf("create folder: %w", err)
	}
	p, err := launch("gateway", dir, l.program("causeway"), "gateway", "--upstream", s.Bootstrap()[0], "--listen", "127.0.0.1:0", "--advertise", "127.0.0.1")
	if err != nil {
		return "", nil, err
	}
	end = func() error { return errors.Join(p.Kill(), os.RemoveAll(dir)) }
	said := regexp.MustCompile(`will show \S+ at (\S+) as `)
	err = until(ctx, 10*time.Second, func() (bool, error) {
		if m := said.FindStringSubmatch(p.Log()); m != nil {
			at = m[1]
		}
		return at != "", nil
	})
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("start gateway: %w: %s", err, lastLine(p.Log())), end())
	}
	return at, end, nil
}
