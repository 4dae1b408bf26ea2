package fetcher

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/causeway-mirror/causeway/batch"
	"github.com/causeway-mirror/causeway/route"
)

func TestSift(t *testing.T) {
	t.Parallel()
	kc := newKfake(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "a"), kfake.MaxVersions(kversion.V2_3_0()))
	r := newRig(t, kc, fast(), 64<<20)
	r.produce("a", 0, 0, 3)
	raw := rawBatches(t, r.cl)
	third := len(raw) / 3
	one := func(i int) []byte { return raw[i*third : (i+1)*third] }
	zero, first, second := one(0), one(1), one(2)
	for _, row := range []struct {
		name    string
		from    route.Offset
		records []byte
		bases   []route.Offset
		next    route.Offset
		corrupt string
	}{
		{name: "all", records: raw, bases: []route.Offset{0, 1, 2}, next: 3},
		{name: "cut short", records: raw[:len(raw)-1], bases: []route.Offset{0, 1}, next: 2},
		{name: "less than a batch", records: raw[:20], next: 0},
		{name: "gap", records: slices.Concat(zero, second), bases: []route.Offset{0, 2}, next: 3},
		{name: "gap at the begin", records: second, bases: []route.Offset{2}, next: 3},
		{name: "begins below the position", from: 2, records: raw, bases: []route.Offset{2}, next: 3},
		{name: "all below the position", from: 9, records: raw, next: 9},
		{name: "one again", records: slices.Concat(zero, first, first), bases: []route.Offset{0, 1}, next: 2, corrupt: "baseOffset"},
		{name: "backwards", records: slices.Concat(second, first), bases: []route.Offset{2}, next: 3, corrupt: "baseOffset"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			l := newLoop(newPair(r.f, 0), true)
			end, err := l.sift(row.from, &kmsg.FetchResponseTopicPartition{RecordBatches: row.records})
			if row.corrupt != "" {
				var e *batch.CorruptError
				require.ErrorAs(t, err, &e)
				require.Equal(t, row.corrupt, e.Field)
			} else {
				require.NoError(t, err)
			}
			var bases []route.Offset
			for _, b := range l.batches {
				bases = append(bases, b.BaseOffset())
			}
			require.Equal(t, row.bases, bases)
			require.Equal(t, row.next, end.Offset)
		})
	}
}
