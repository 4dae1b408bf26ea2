package mirror

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/batch"
)

// Merging costs a compression: it is for lanes that the number of their requests holds back, and for no other.
func TestOnlyBatchesThatRequestsHoldBackAreMerged(t *testing.T) {
	t.Parallel()
	of := func(codec batch.Codec) batch.Batch { return recode(made{numbers: []int{1, 2}}.bytes(), codec, 0) }
	for name, row := range map[string]struct {
		replicated bool
		rate       float64 // batches/s
		size       float64 // bytes
		ack        time.Duration
		codec      batch.Codec
		merged     bool
	}{
		"small batches through replicas":           {true, 1000, 8 << 10, time.Millisecond, batch.Lz4, true},
		"large batches through replicas":           {true, 1000, 200 << 10, time.Millisecond, batch.Lz4, false},
		"many batches through near replicas":       {true, 5000, 8 << 10, time.Millisecond, batch.Lz4, false},
		"tiny batches over a distance":             {false, 5000, 8 << 10, 100 * time.Millisecond, batch.Lz4, true},
		"tiny batches near by":                     {false, 5000, 8 << 10, time.Millisecond, batch.Lz4, false},
		"larger batches over a distance":           {false, 1000, 32 << 10, 100 * time.Millisecond, batch.Lz4, false},
		"a fast broker far away":                   {false, 20000, 8 << 10, 100 * time.Millisecond, batch.Lz4, false},
		"what is slow to compress over a distance": {false, 5000, 8 << 10, 100 * time.Millisecond, batch.Gzip, false},
		"nothing known yet":                        {true, 0, 0, 0, batch.Lz4, false},
	} {
		m := meter{batchRate: row.rate, rate: row.rate * row.size, minAck: row.ack}
		require.Equal(t, row.merged, m.requestBound(row.replicated, of(row.codec)), name)
	}
}
