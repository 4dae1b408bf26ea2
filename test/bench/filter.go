package main

import (
	"context"
	"fmt"
)

// filter asks what it costs to look at every record, and to change every record, compared with the usual way of doing either.
func (l *lab) filter(ctx context.Context) (*report, error) {
	const (
		keepAll    = "route:\n  topics:\n    overrides:\n      TOPIC:\n        filter:\n          key:\n            matches: '^key-'\n"
		addHeaders = "route:\n  topics:\n    overrides:\n      TOPIC:\n        transform:\n          add_headers:\n            origin: bench\n"
	)
	records := l.records(2_000_000, 200_000)
	rep := newReport(fmt.Sprintf("8 partitions, lz4, 64 KB batches, %s records of %d bytes. `filter` looks at each record's key and keeps all of them; `headers` adds a header to each record, so that every batch is encoded and compressed anew; `kgo` is franz-go's consumer and producer without either.",
		thousands(float64(records)), valueSize))
	s, err := l.race(ctx, race{
		name: "8, lz4, 64 KB", job: l.job("filter", 8, "lz4", records), batch: 64 << 10, pairs: l.opts.pairs, target: l.target,
		entrants: []entrant{l.causeway("filter", keepAll), l.causeway("headers", addHeaders), l.causeway("causeway", ""), l.recordCopier()},
		compare:  [][2]string{{"filter", "kgo"}, {"headers", "kgo"}, {"filter", "causeway"}, {"headers", "causeway"}},
	})
	rep.add(s)
	return rep, err
}
