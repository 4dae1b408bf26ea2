package kafkatest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/causeway-mirror/causeway/internal/kafkad"
)

// stillFor is how long a reader goes without a record until it asks whether there are more.
const stillFor = 3 * time.Second

// fingerprints reads a topic up to its last stable offsets at the time of the call and returns each partition's records in order, without
// those that have a header of the key foreign, if that is not empty.
func fingerprints(ctx context.Context, bootstrap []string, topic, foreign string, timestamps bool) (map[int32][]mark, error) {
	out := map[int32][]mark{}
	partitions, err := visit(ctx, bootstrap, topic, func(r *kgo.Record) {
		if !marked(r, foreign) {
			out[r.Partition] = append(out[r.Partition], mark{fingerprint(r, timestamps), r.Offset})
		}
	})
	for p := range int32(partitions) {
		if _, ok := out[p]; !ok {
			out[p] = nil
		}
	}
	return out, err
}

// Records returns what a read_committed consumer reads of a topic, by partition and in order, up to the last stable offsets at the time of the call.
// Partitions without any are there, too. That it could not read fails the test.
func Records(t testing.TB, bootstrap []string, topic string) [][]*kgo.Record {
	t.Helper()
	found := map[int32][]*kgo.Record{}
	partitions, err := visit(t.Context(), bootstrap, topic, func(r *kgo.Record) { found[r.Partition] = append(found[r.Partition], r) })
	if err != nil {
		t.Fatalf("read topic %s: %v", topic, err)
	}
	out := make([][]*kgo.Record, partitions)
	for p := range out {
		out[p] = found[int32(p)]
	}
	return out
}

// visit reads a topic up to its last stable offsets at the time of the call, shows each record, and returns the number of partitions.
func visit(ctx context.Context, bootstrap []string, topic string, show func(*kgo.Record)) (partitions int, err error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(bootstrap...), kgo.AlwaysRetryEOF(), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(), kgo.FetchMaxWait(200*time.Millisecond))
	if err != nil {
		return 0, fmt.Errorf("create consumer: %w", err)
	}
	defer cl.Close()
	partitions, ends, err := extents(ctx, cl, topic)
	if err != nil {
		return 0, err
	}
	next := map[int32]int64{} // offset after the last record read
	for len(ends) > 0 {
		poll, cancel := context.WithTimeout(ctx, stillFor)
		fetches := cl.PollFetches(poll)
		cancel()
		if ctx.Err() != nil {
			return 0, fmt.Errorf("read %s: %w", topic, ctx.Err())
		}
		if fetches.NumRecords() == 0 && poll.Err() != nil {
			if err := dropEmpty(ctx, bootstrap, topic, next, ends); err != nil {
				return 0, err
			}
		}
		if err := fatal(fetches); err != nil {
			return 0, fmt.Errorf("read %s: %w", topic, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			next[r.Partition] = r.Offset + 1
			end, ok := ends[r.Partition]
			if ok && r.Offset < end && !r.Attrs.IsControl() {
				show(r)
			}
			if r.Offset >= end-1 {
				delete(ends, r.Partition)
			}
		})
	}
	return partitions, nil
}

// marked says whether a record has a header of that key; false if the key is empty.
func marked(r *kgo.Record, key string) bool {
	return key != "" && slices.ContainsFunc(r.Headers, func(h kgo.RecordHeader) bool { return h.Key == key })
}

// extents returns the number of partitions, and the last stable offset of each that is not empty.
func extents(ctx context.Context, cl *kgo.Client, topic string) (partitions int, ends map[int32]int64, err error) {
	adm := kadm.NewClient(cl)
	stable, err := adm.ListCommittedOffsets(ctx, topic)
	if err != nil {
		return 0, nil, fmt.Errorf("list ends of %s: %w", topic, err)
	}
	starts, err := adm.ListStartOffsets(ctx, topic)
	if err != nil {
		return 0, nil, fmt.Errorf("list starts of %s: %w", topic, err)
	}
	if err := errors.Join(stable.Error(), starts.Error()); err != nil {
		return 0, nil, fmt.Errorf("list offsets of %s: %w", topic, err)
	}
	ends = map[int32]int64{}
	stable.Each(func(o kadm.ListedOffset) {
		partitions++
		if start, ok := starts.Lookup(topic, o.Partition); ok && start.Offset < o.Offset {
			ends[o.Partition] = o.Offset
		}
	})
	if partitions == 0 {
		return 0, nil, fmt.Errorf("topic %s has no partitions", topic)
	}
	return partitions, ends, nil
}

// fatal returns the first error of a poll that is not just the end of its own time.
func fatal(fetches kgo.Fetches) error {
	for _, e := range fetches.Errors() {
		if !errors.Is(e.Err, context.DeadlineExceeded) {
			return fmt.Errorf("partition %d: %w", e.Partition, e.Err)
		}
	}
	return nil
}

// fingerprint hashes what a mirror must keep of a record. Lengths are hashed with the bytes, and null differs from empty.
func fingerprint(r *kgo.Record, timestamps bool) uint64 {
	h := fnv.New64a()
	number := func(n int64) {
		_, _ = h.Write(binary.BigEndian.AppendUint64(nil, uint64(n))) // a hash does not fail
	}
	put := func(b []byte) {
		if b == nil {
			number(-1)
			return
		}
		number(int64(len(b)))
		_, _ = h.Write(b) // a hash does not fail
	}
	put(r.Key)
	put(r.Value)
	number(int64(len(r.Headers)))
	for _, x := range r.Headers {
		put([]byte(x.Key))
		put(x.Value)
	}
	if timestamps {
		number(r.Timestamp.UnixMilli())
	}
	return h.Sum64()
}

// AwaitRecords waits until the topic holds at least so many offsets over all partitions that read_committed consumers may read;
// with transactions, markers and aborted records count, too. It fails the test when that takes longer than within.
func AwaitRecords(t testing.TB, bootstrap []string, topic string, records int64, within time.Duration) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(bootstrap...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	err = kafkad.Poll(t.Context(), within, func(ctx context.Context) error {
		ends, err := adm.ListCommittedOffsets(ctx, topic)
		if err := errors.Join(err, ends.Error()); err != nil {
			return err
		}
		var sum int64
		ends.Each(func(o kadm.ListedOffset) { sum += o.Offset })
		if sum < records {
			return fmt.Errorf("%s has %d of %d records", topic, sum, records)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("wait for records: %v", err)
	}
}
