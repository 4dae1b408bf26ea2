package main

import (
	"context"
	"fmt"
)

// volume asks how much a mirror copies, and how cheaply, when a backlog waits: batches of the size that busy producers make and of the
// producers' default, compressed and not, on few and many partitions.
func (l *lab) volume(ctx context.Context) (*report, error) {
	records := l.records(2_000_000, 200_000)
	rep := newReport(fmt.Sprintf("%s records of %d bytes each run, one source and one target broker, one replica. Case: partitions, codec, size of the source's batches before compression.", thousands(float64(records)), valueSize))
	for _, partitions := range []int{8, 1, 64} {
		for _, codec := range []string{"lz4", "none"} {
			for _, kilobytes := range []int{64, 16} {
				main := partitions == 8 && codec == "lz4"
				if !main && (l.opts.quick || !l.opts.matrix) {
					continue
				}
				c := race{
					name:  fmt.Sprintf("%d, %s, %d KB", partitions, codec, kilobytes),
					job:   l.job("volume", partitions, codec, records),
					batch: kilobytes << 10, pairs: l.opts.pairs, target: l.target,
					entrants: []entrant{l.floor("floor"), l.causeway("causeway", ""), l.mirrorMaker()},
					compare:  [][2]string{{"causeway", "floor"}, {"causeway", "mm2"}},
				}
				if main {
					c.entrants = append(c.entrants, l.recordCopier())
					c.compare = append(c.compare, [2]string{"causeway", "kgo"})
				} else {
					c.pairs = min(c.pairs, 2)
				}
				s, err := l.race(ctx, c)
				rep.add(s)
				if err != nil {
					return rep, fmt.Errorf("case %s: %w", c.name, err)
				}
			}
		}
	}
	return rep, nil
}

// job is a copy from the source to the target broker directly.
func (l *lab) job(topic string, partitions int, codec string, records int64) job {
	return job{
		from: l.source.Bootstrap(), to: l.target.Bootstrap(), topic: topic,
		partitions: partitions, replicas: 1, codec: codec, records: records,
	}
}
