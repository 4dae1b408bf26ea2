package faults_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// The mirror dies with records stored beyond its checkpoint, and before it comes back the source deletes some of them: what is written later
// must not be taken for what is gone.
func TestSourceDeletesBeyondTheCheckpoint(t *testing.T) {
	t.Parallel()
	k := kafkatest.Shared(t, kafkatest.Kafka3)
	const topic = "beheaded"
	k.CreateTopic(t, topic, 1, nil)
	m := newMirrorer(t, "mirror", between(k.Bootstrap(), k.Bootstrap(), topic, "--rename", "{topic}.copy", "--commit-interval", "1h")...)
	m.start(t)
	kafkatest.Load(t, k.Bootstrap(), kafkatest.LoadOptions{Topic: topic, Records: 10_000})
	m.caughtUp(t, topic)
	m.kill(t)
	admin := kadm.NewClient(k.Client(t))
	var before kadm.Offsets
	before.AddOffset(topic, 0, 5000, -1)
	_, err := admin.DeleteRecords(t.Context(), before)
	require.NoError(t, err)
	kafkatest.Load(t, k.Bootstrap(), kafkatest.LoadOptions{Topic: topic, Records: 7000, First: 10_000})
	m.start(t)
	m.caughtUp(t, topic)
	m.stop(t)
	ends, err := admin.ListEndOffsets(t.Context(), topic+".copy")
	require.NoError(t, err)
	end, _ := ends.Lookup(topic+".copy", 0)
	require.Equal(t, int64(17_000), end.Offset, "each record once, although the source has only the last 12,000 of them")
}

// The target topic is deleted and made anew while nothing is sent: no error tells of it, since a new log takes any sequence.
func TestTargetMadeAnewWhileIdle(t *testing.T) {
	t.Parallel()
	k := kafkatest.Shared(t, kafkatest.Kafka3)
	const topic = "anew"
	k.CreateTopic(t, topic, 1, nil)
	m := newMirrorer(t, "mirror", between(k.Bootstrap(), k.Bootstrap(), topic, "--rename", "{topic}.copy")...)
	m.start(t)
	m.flowing(t, k, topic)
	k.Remake(t, topic+".copy", 1)
	kafkatest.Load(t, k.Bootstrap(), kafkatest.LoadOptions{Topic: topic, Records: 500})
	require.Eventually(t, func() bool {
		_, told := get(t, m.api(t)+"/api/v1/events")
		return strings.Contains(told, "target_changed") && strings.Contains(told, "partition_halted")
	}, 30*time.Second, 100*time.Millisecond)
	m.stop(t)
}
