package connector_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// A target whose max.message.bytes was lowered while the partition ran refused its batches until the process was started again. One whose segments
// are smaller than that refused them for ever.
func TestBatchesAreSplitToWhatTheTargetTakesNow(t *testing.T) {
	t.Parallel()
	k := kafkatest.Shared(t, kafkatest.Kafka3)
	for topic, row := range map[string]struct{ first, then map[string]string }{
		"lowered":  {then: map[string]string{"max.message.bytes": "3000"}},
		"segments": {first: map[string]string{"segment.bytes": "20000"}},
	} {
		t.Run(topic, func(t *testing.T) {
			t.Parallel()
			k.CreateTopic(t, topic, 1, nil)
			k.CreateTopic(t, topic+"-copy", 1, row.first)
			load := func(first int) {
				kafkatest.Load(t, k.Bootstrap(), kafkatest.LoadOptions{Topic: topic, First: first, Records: 2000, ValueBytes: 200, BatchBytes: 60_000, Codec: "none"})
			}
			load(0)
			c, stop := start(t, k.Bootstrap(), k.Bootstrap(), filepath.Join(t.TempDir(), "state"), nil)
			c.Add(route.Partition{Topic: topic})
			caughtUp(t, c, topic)
			for name, value := range row.then {
				_, err := kadm.NewClient(k.Client(t)).AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Name: name, Value: &value}}, topic+"-copy")
				require.NoError(t, err)
			}
			load(2000)
			caughtUp(t, c, topic)
			stop()
			d := kafkatest.Compare(t, k.Bootstrap(), k.Bootstrap(), topic, topic+"-copy")
			require.True(t, d.Equal(), d.String())
			require.Equal(t, int64(4000), d.Records)
		})
	}
}
