package main

import (
	"context"
	"errors"
	"fmt"
)

// replicas asks what is left of the throughput of one partition when the target keeps three copies and every batch is small.
func (l *lab) replicas(ctx context.Context) (rep *report, err error) {
	records := l.records(300_000, 20_000)
	l.say("starting three target brokers")
	target, err := openSite(ctx, 3)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, target.close()) }()
	j := l.job("replicas", 1, "lz4", records)
	j.to, j.replicas = target.Bootstrap(), 3
	rep = newReport(fmt.Sprintf("One partition, lz4, 16 KB batches, %s records of %d bytes, three target brokers with three replicas on this one machine, acks=all. `causeway-32` has `ack_window: 32`.",
		thousands(float64(records)), valueSize))
	s, err := l.race(ctx, race{
		name: "3 replicas", job: j, batch: 16 << 10, pairs: l.opts.pairs, target: target,
		entrants: []entrant{
			l.floor("floor"), l.causeway("causeway", ""), l.causeway("causeway-32", "worker:\n  ack_window: 32\n"), l.mirrorMaker(),
		},
		compare: [][2]string{{"causeway", "floor"}, {"causeway-32", "floor"}, {"causeway", "mm2"}, {"causeway-32", "mm2"}, {"causeway-32", "causeway"}},
	})
	rep.add(s)
	return rep, err
}
