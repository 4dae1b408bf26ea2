package connector_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/offsets/bolt"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// After the loss of a state folder everything was copied a second time, and nothing told of it.
func TestLossOfThePositionsIsTold(t *testing.T) {
	t.Parallel()
	k := kafkatest.Shared(t, kafkatest.Kafka3)
	const topic = "unremembered"
	k.CreateTopic(t, topic, 2, nil)
	kafkatest.Load(t, k.Bootstrap(), kafkatest.LoadOptions{Topic: topic, Records: 100})
	for _, want := range []int{0, 1} {
		store, err := bolt.Open(t.TempDir())
		require.NoError(t, err)
		c, happened, stop := startWith(t, k.Bootstrap(), k.Bootstrap(), store, nil)
		c.Add(route.Partition{Topic: topic}, route.Partition{Topic: topic, Partition: 1})
		caughtUp(t, c, topic)
		require.Eventually(t, func() bool { return doubtful(happened, topic) == want }, 10*time.Second, 5*time.Millisecond)
		stop()
	}
}

// doubtful counts what was told of a topic as a whole that may be copied twice.
func doubtful(happened *events.Log, topic string) (n int) {
	all := happened.Since(0)
	for _, e := range all {
		if e.Type == events.DuplicatesPossible && e.Topic == topic && e.Partition == nil {
			n++
		}
	}
	return n
}
