package connector

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBatchLimitIsTheLeastThatTheTopicSets(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		config map[string]string
		want   int
	}{
		"not known":      {nil, 0},
		"no number":      {map[string]string{"max.message.bytes": "x"}, 0},
		"batches":        {map[string]string{"max.message.bytes": "1048588", "segment.bytes": "1073741824"}, 1048588},
		"small segments": {map[string]string{"max.message.bytes": "1048588", "segment.bytes": "1048576"}, 1048576},
	} {
		require.Equal(t, row.want, batchLimit(row.config), name)
	}
}
