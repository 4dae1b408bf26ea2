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

// Thousands of partitions go into few transactions: a test that looked at the clock would fail on a busy machine.
func TestThousandsOfPartitionsTakeFewTransactions(t *testing.T) {
	t.Parallel()
	place := newPlace()
	cfg := config(t, place)
	cfg.Timeout = time.Minute
	s, o := open(t, cfg), other(t, place)
	all := many(2_000)
	took := func(what string, do func()) {
		t.Helper()
		began := time.Now()
		do()
		t.Logf("%s: %v", what, time.Since(began).Round(time.Millisecond))
	}
	took("begin", func() { require.NoError(t, s.BeginAll(t.Context(), all)) })
	require.Len(t, o.transactions(all[:300]), 30, "one a topic")
	checkpoints, parts := forward(all)
	took("save", func() { require.NoError(t, s.Save(t.Context(), checkpoints)) })
	written := o.transactions(all[:300])
	require.Len(t, written, 3)
	took("save again, unchanged", func() { require.NoError(t, s.Save(t.Context(), checkpoints)) })
	require.Equal(t, written, o.transactions(all[:300]))
	took("load", func() {
		found, err := open(t, cfg).Load(t.Context(), parts)
		require.NoError(t, err)
		require.Len(t, found, len(all))
		for _, c := range checkpoints {
			require.True(t, found[c.Partition].Equal(c))
		}
	})
}

// transactions are those that wrote the offsets last.
func (o others) transactions(all []offsets.Beginning) map[int64]bool {
	o.t.Helper()
	seen := map[int64]bool{}
	for _, b := range all {
		_, stat, err := o.conn.Exists(o.plain(b.Next.Partition.Topic, int(b.Next.Partition.Partition)))
		require.NoError(o.t, err)
		seen[stat.Mzxid] = true
	}
	return seen
}

func BenchmarkSave10000(b *testing.B) {
	cfg := config(b, newPlace())
	cfg.Timeout = time.Minute
	s, all := open(b, cfg), many(10_000)
	require.NoError(b, s.BeginAll(b.Context(), all))
	b.ReportAllocs()
	for b.Loop() {
		checkpoints, _ := forward(all)
		require.NoError(b, s.Save(b.Context(), checkpoints))
	}
}
