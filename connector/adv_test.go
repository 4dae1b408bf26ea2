package connector_test

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

func TestAdvAddRemove(t *testing.T) {
	k := kafkatest.Shared(t, kafkatest.Kafka3)
	const topic = "adv-churn"
	k.CreateTopic(t, topic, 4, nil)
	c, stop := start(t, k.Bootstrap(), k.Bootstrap(), t.TempDir(), nil)
	parts := []route.Partition{{Topic: topic}, {Topic: topic, Partition: 1}, {Topic: topic, Partition: 2}, {Topic: topic, Partition: 3}}
	c.Add(parts...)
	awaitCopied(t, c, parts...)
	done := make(chan struct{})
	go func() {
		defer close(done)
		kafkatest.Load(t, k.Bootstrap(), kafkatest.LoadOptions{Topic: topic, Records: 30_000, Rate: 2500, BatchBytes: 4 << 10})
	}()
	before := runtime.NumGoroutine()
	for i := range 120 {
		p := parts[rand.IntN(4)]
		c.Remove(p)
		if i%2 == 0 {
			time.Sleep(time.Duration(rand.IntN(50)) * time.Millisecond)
		}
		c.Add(p)
		time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond)
	}
	<-done
	awaitCopied(t, c, parts...)
	t.Log("goroutines", before, runtime.NumGoroutine())
	require.Less(t, runtime.NumGoroutine(), before+8)
	stop()
	d := kafkatest.Compare(t, k.Bootstrap(), k.Bootstrap(), topic, topic+"-copy")
	require.True(t, d.Equal(), d.String())
}
