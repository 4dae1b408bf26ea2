package main

import (
	"context"
	"errors"
	"fmt"
)

// idlePartitions is how many partitions without records the hot one has as neighbours.
const idlePartitions = 1000

// hot asks whether one busy partition suffers from idle ones that are fetched together with it.
func (l *lab) hot(ctx context.Context) (rep *report, err error) {
	const idle, idleCopy = "idle", "idle-copy"
	records := l.records(2_000_000, 200_000)
	defer func() { err = errors.Join(err, l.source.clean(ctx, idle), l.target.clean(ctx, idle)) }()
	l.say("creating %d idle partitions on both clusters", idlePartitions)
	if err := l.source.createTopic(ctx, idle, idlePartitions, 1); err != nil {
		return nil, err
	}
	if err := l.target.createTopic(ctx, idleCopy, idlePartitions, 1); err != nil {
		return nil, err
	}
	rep = newReport(fmt.Sprintf("One partition with %s records of %d bytes, lz4, 64 KB batches; one fetcher (`--fetchers 1`). `among-%d` also mirrors a topic of so many empty partitions, which are fetched with the busy one.",
		thousands(float64(records)), valueSize, idlePartitions))
	among := fmt.Sprintf("among-%d", idlePartitions)
	mapping := "route:\n  topics:\n    mapping:\n      " + idle + ": " + idleCopy + "\n"
	s, err := l.race(ctx, race{
		name: "1 busy", job: l.job("hot", 1, "lz4", records), batch: 64 << 10, pairs: l.opts.pairs, target: l.target,
		entrants: []entrant{l.causeway("alone", "", "--fetchers", "1"), l.causeway(among, mapping, "--fetchers", "1", "--topics", idle)},
		compare:  [][2]string{{among, "alone"}},
	})
	rep.add(s)
	return rep, err
}
