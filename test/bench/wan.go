package main

import (
	"context"
	"fmt"
	"time"
)

// oneWay is the delay of each direction of the slow link.
const oneWay = 50 * time.Millisecond

// wan asks what is left of the throughput of one partition when one of the clusters is far away.
func (l *lab) wan(ctx context.Context) (*report, error) {
	records := l.records(400_000, 20_000)
	rep := newReport(fmt.Sprintf("One partition, lz4, 16 KB batches, %s records of %d bytes, one replica. One of the clusters is behind a link with a round trip of %v that limits nothing else; `floor` has up to a thousand requests in flight.",
		thousands(float64(records)), valueSize, 2*oneWay))
	for _, far := range []string{"target", "source"} {
		c := race{
			name: far + " far", job: l.job("wan", 1, "lz4", records), batch: 16 << 10, pairs: l.opts.pairs, target: l.target,
			entrants: []entrant{l.floor("floor", "-inflight", "1000"), l.causeway("causeway", ""), l.mirrorMaker()},
			compare:  [][2]string{{"causeway", "floor"}, {"causeway", "mm2"}},
		}
		s := l.target
		if far == "source" {
			s = l.source
			c.job.from = s.ProxyBootstrap()
		} else {
			c.job.to = s.ProxyBootstrap()
		}
		proxy := s.Broker(0).Proxy()
		proxy.SetDelay(oneWay)
		outcome, err := l.race(ctx, c)
		proxy.SetDelay(0)
		rep.add(outcome)
		if err != nil {
			return rep, fmt.Errorf("case %s: %w", c.name, err)
		}
	}
	return rep, nil
}
