package zk

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/offsets/storetest"
	"github.com/causeway-mirror/causeway/route"
)

// many are first checkpoints of 10 partitions a topic.
func many(n int) []offsets.Beginning {
	all := make([]offsets.Beginning, n)
	for i := range all {
		all[i].Next = storetest.Checkpoint(fmt.Sprintf("topic-%d", i/10), int32(i%10), 1000)
	}
	return all
}

func forward(all []offsets.Beginning) (checkpoints []offsets.Checkpoint, parts []route.Partition) {
	for i := range all {
		all[i].Next = advanced(all[i].Next, 1)
		checkpoints, parts = append(checkpoints, all[i].Next), append(parts, all[i].Next.Partition)
	}
	return checkpoints, parts
}

// The figures of one run are printed; what is required is far above them, so that a busy machine passes and one request a partition does not.
func TestTenThousandPartitions(t *testing.T) {
	t.Parallel()
	cfg := config(t, newPlace())
	cfg.Timeout = time.Minute
	s := open(t, cfg)
	all := many(10_000)
	took := func(what string, most time.Duration, do func()) {
		t.Helper()
		began := time.Now()
		do()
		t.Logf("%s: %v", what, time.Since(began).Round(time.Millisecond))
		require.Less(t, time.Since(began), most, what)
	}
	took("begin", 30*time.Second, func() { require.NoError(t, s.BeginAll(t.Context(), all)) })
	checkpoints, parts := forward(all)
	took("save", 10*time.Second, func() { require.NoError(t, s.Save(t.Context(), checkpoints)) })
	took("save again, unchanged", 2*time.Second, func() { require.NoError(t, s.Save(t.Context(), checkpoints)) })
	took("load", 20*time.Second, func() {
		found, err := open(t, cfg).Load(t.Context(), parts)
		require.NoError(t, err)
		require.Len(t, found, len(all))
		for _, c := range checkpoints {
			require.True(t, found[c.Partition].Equal(c))
		}
	})
}

func BenchmarkSave10000(b *testing.B) {
	s := open(b, config(b, newPlace()))
	all := many(10_000)
	require.NoError(b, s.BeginAll(b.Context(), all))
	b.ReportAllocs()
	for b.Loop() {
		checkpoints, _ := forward(all)
		require.NoError(b, s.Save(b.Context(), checkpoints))
	}
}
