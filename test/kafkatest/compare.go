package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
)

// Diff is what Compare found. The zero value but for Records means that the copy is exact.
type Diff struct {
	Records    int64  // records of the source
	Lost       int64  // records of the source that the target lacks
	Extra      int64  // records of the target that the source lacks, such as second copies
	Disordered int64  // records of the target that stand behind one that follows them at the source
	First      string // the first difference in words; empty if there is none
}

// Equal says whether the target holds what the source holds, in the same order, partition by partition.
func (d Diff) Equal() bool { return d.First == "" && d.Lost == 0 && d.Extra == 0 && d.Disordered == 0 }

// String is one line for a log.
func (d Diff) String() string {
	return fmt.Sprintf("records=%d lost=%d extra=%d disordered=%d %s", d.Records, d.Lost, d.Extra, d.Disordered, d.First)
}

// Compare reads a topic on both clusters as a read_committed consumer would, up to the ends at the time of the call, and compares
// partition by partition: keys, values, headers, timestamps and order. An empty toTopic means the same name. That it could not
// read fails the test; a difference does not, since some tests expect one.
func Compare(t testing.TB, src, dst []string, topic, toTopic string) Diff {
	t.Helper()
	d, err := CompareTopics(t.Context(), Comparison{Source: src, Target: dst, Topic: topic, ToTopic: toTopic})
	if err != nil {
		t.Fatalf("compare topic %s: %v", topic, err)
	}
	return d
}

// Comparison says what CompareTopics compares.
type Comparison struct {
	Source, Target   []string // bootstrap addresses
	Topic            string
	ToTopic          string // the topic on the target; empty means Topic
	IgnoreTimestamps bool   // for targets whose topic has log append time
	// Foreign is the key of a header that marks records of the target that another producer wrote; they are passed over.
	Foreign string
}

// CompareTopics is Compare outside a test. It holds sixteen bytes a record of each side in memory.
func CompareTopics(ctx context.Context, c Comparison) (Diff, error) {
	if c.ToTopic == "" {
		c.ToTopic = c.Topic
	}
	var src, dst map[int32][]mark
	var errSrc, errDst error
	var wg sync.WaitGroup
	wg.Go(func() { src, errSrc = fingerprints(ctx, c.Source, c.Topic, "", !c.IgnoreTimestamps) })
	wg.Go(func() { dst, errDst = fingerprints(ctx, c.Target, c.ToTopic, c.Foreign, !c.IgnoreTimestamps) })
	wg.Wait()
	if err := errors.Join(errSrc, errDst); err != nil {
		return Diff{}, err
	}
	var d Diff
	if len(src) != len(dst) {
		d.note("source has %d partitions, target %d", len(src), len(dst))
	}
	for p := range int32(max(len(src), len(dst))) {
		d.partition(p, src[p], dst[p])
	}
	return d, nil
}

// mark is a record's fingerprint and where it stood.
type mark struct {
	sum    uint64
	offset int64
}

// partition adds the differences of one partition. As long as both sides agree it needs no further memory.
func (d *Diff) partition(p int32, src, dst []mark) {
	d.Records += int64(len(src))
	same := 0
	for same < len(src) && same < len(dst) && src[same].sum == dst[same].sum {
		same++
	}
	src, dst = src[same:], dst[same:]
	switch {
	case len(src) == 0 && len(dst) == 0:
		return
	case len(dst) == 0:
		d.note("partition %d: source offset %d and what follows is missing", p, src[0].offset)
	case len(src) == 0:
		d.note("partition %d: target offset %d and what follows is too much", p, dst[0].offset)
	default:
		d.note("partition %d: target offset %d is not source offset %d", p, dst[0].offset, src[0].offset)
	}
	unmatched := make(map[uint64][]int, len(src)) // positions at the source, ascending, not yet found at the target
	for i, r := range src {
		unmatched[r.sum] = append(unmatched[r.sum], i)
	}
	last := -1
	for _, r := range dst {
		at := unmatched[r.sum]
		if len(at) == 0 {
			d.Extra++
			continue
		}
		unmatched[r.sum] = at[1:]
		if at[0] < last {
			d.Disordered++
		}
		last = max(last, at[0])
	}
	for _, at := range unmatched {
		d.Lost += int64(len(at))
	}
}

func (d *Diff) note(format string, args ...any) {
	if d.First == "" {
		d.First = fmt.Sprintf(format, args...)
	}
}
