package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/causeway-mirror/causeway/cluster"
	"github.com/causeway-mirror/causeway/route"
)

// side is one of the two clusters that are compared. It reads with kgo, so that our own decoder does not judge itself.
type side struct {
	name      string // source or target
	cfg       cluster.Config
	committed bool // leave out what transactions have not committed
	idle      time.Duration
	opts      []kgo.Opt
	admin     *kadm.Client
	client    *kgo.Client
}

func openSide(name string, cfg cluster.Config, committed bool, idle time.Duration) (*side, error) {
	opts := []kgo.Opt{kgo.SeedBrokers(cfg.Bootstrap...), kgo.ClientID("causeway-verify"), kgo.DialTimeout(10 * time.Second)}
	tlsConfig, err := cfg.TLSConfig()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if tlsConfig != nil {
		opts = append(opts, kgo.DialTLSConfig(tlsConfig))
	}
	mechanism, err := cfg.Mechanism()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if mechanism != nil {
		opts = append(opts, kgo.SASL(mechanism))
	}
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &side{name: name, cfg: cfg, committed: committed, idle: idle, opts: opts, client: client, admin: kadm.NewClient(client)}, nil
}

func (s *side) close() { s.client.Close() }

// partitionCounts lists the topics of the cluster, internal ones left out.
func (s *side) partitionCounts(ctx context.Context) (map[string]int32, error) {
	topics, err := s.admin.ListTopics(ctx)
	if err != nil {
		return nil, fmt.Errorf("list topics of the %s: %w", s.name, err)
	}
	counts := map[string]int32{}
	for name, t := range topics {
		if t.Err == nil {
			counts[name] = int32(len(t.Partitions))
		}
	}
	return counts, nil
}

// extent is where a partition begins and ends.
type extent struct{ start, end int64 }

// extents reads start and end offsets of topics. The end is the last stable offset where only committed data counts.
func (s *side) extents(ctx context.Context, topics []string) (map[route.Partition]extent, error) {
	if len(topics) == 0 {
		return map[route.Partition]extent{}, nil
	}
	starts, err := s.admin.ListStartOffsets(ctx, topics...)
	if err == nil {
		err = starts.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("list start offsets of the %s: %w", s.name, err)
	}
	list := s.admin.ListEndOffsets
	if s.committed {
		list = s.admin.ListCommittedOffsets
	}
	ends, err := list(ctx, topics...)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("list end offsets of the %s: %w", s.name, err)
	}
	out := map[route.Partition]extent{}
	ends.Each(func(o kadm.ListedOffset) {
		start, _ := starts.Lookup(o.Topic, o.Partition)
		out[route.Partition{Topic: o.Topic, Partition: o.Partition}] = extent{start: start.Offset, end: o.Offset}
	})
	return out, nil
}

// errIdle says that nothing came for as long as the reader may wait.
var errIdle = errors.New("no more records came")

// partitionReader reads one partition in order.
type partitionReader struct {
	side   *side
	client *kgo.Client
	at     route.Partition
	next   int64 // the offset after the last record seen, control records included
	buffer []*kgo.Record
}

func (s *side) read(p route.Partition, from int64) (*partitionReader, error) {
	isolation := kgo.ReadUncommitted()
	if s.committed {
		isolation = kgo.ReadCommitted()
	}
	client, err := kgo.NewClient(append([]kgo.Opt{
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{p.Topic: {p.Partition: kgo.NewOffset().At(from)}}),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()), // a range that is gone is an answer, not a reason to jump
		kgo.FetchIsolationLevel(isolation),
		kgo.KeepControlRecords(), // they are no data, but they show how far the log goes
		kgo.FetchMaxBytes(8 << 20), kgo.FetchMaxPartitionBytes(4 << 20),
	}, s.opts...)...)
	if err != nil {
		return nil, fmt.Errorf("read %s of the %s: %w", p, s.name, err)
	}
	return &partitionReader{side: s, client: client, at: p, next: from}, nil
}

func (r *partitionReader) close() { r.client.Close() }

// record returns the next data record below end, io.EOF once end is reached, or errIdle when none came although the log is that long. Where
// the end is not known (noEnd), errIdle says that none came for the side's idle time and that the log is not longer.
func (r *partitionReader) record(ctx context.Context, end int64) (*kgo.Record, error) {
	for {
		for len(r.buffer) > 0 && r.buffer[0].Offset < end {
			rec := r.buffer[0]
			r.buffer = r.buffer[1:]
			r.next = rec.Offset + 1
			if !rec.Attrs.IsControl() {
				return rec, nil
			}
		}
		if len(r.buffer) > 0 || r.next >= end {
			return nil, io.EOF
		}
		patience := slowest
		if end == noEnd {
			patience = r.side.idle
		}
		err := r.poll(ctx, patience)
		if errors.Is(err, errIdle) && end == noEnd {
			err = r.insist(ctx)
		}
		if err != nil {
			return nil, err
		}
	}
}

// noEnd stands for a partition that may still grow.
const noEnd = math.MaxInt64

// insist looks whether the log is longer than what came: then a slow cluster must not be taken for a missing record.
func (r *partitionReader) insist(ctx context.Context) error {
	extents, err := r.side.extents(ctx, []string{r.at.Topic})
	if err != nil {
		return err
	}
	if extents[r.at].end <= r.next {
		return errIdle
	}
	return r.poll(ctx, slowest)
}

// slowest is how long records that are known to be there may take to come. Waiting for ones that may never come has its own limit, side.idle.
const slowest = time.Minute

func (r *partitionReader) poll(ctx context.Context, patience time.Duration) error {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	fetches := r.client.PollFetches(limited)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for _, f := range fetches.Errors() {
		if !errors.Is(f.Err, context.DeadlineExceeded) {
			return fmt.Errorf("read %s of the %s at offset %d: %w", r.at, r.side.name, r.next, f.Err)
		}
	}
	r.buffer = fetches.Records()
	if len(r.buffer) == 0 {
		return errIdle
	}
	return nil
}
