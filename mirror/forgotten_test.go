package mirror

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/route"
)

// A topic's last partition may leave in the moment in which another one of it begins: what that one copied was counted nowhere.
func TestPartitionThatBeginsWhileTheLastOneLeavesIsCounted(t *testing.T) {
	t.Parallel()
	r := newRig(t, firstAt(0), 1, Plan{})
	at := firstAt(0)
	at.Partition.Partition = 1
	m := r.mirror.metrics
	m.mu.Lock()
	var both sync.WaitGroup
	both.Go(func() {
		r.mirror.Add(Plan{Source: at.Partition, Target: route.Partition{Topic: "u", Partition: 1}}, at, Wakers{Source: func() {}, Sink: func() {}})
	})
	time.Sleep(20 * time.Millisecond) // until it asks for its counters
	both.Go(func() { r.mirror.Forget(r.lane) })
	time.Sleep(20 * time.Millisecond)
	m.mu.Unlock()
	both.Wait()
	begun := r.mirror.Lanes()
	require.Len(t, begun, 1)
	require.Same(t, m.topics["t"], begun[0].counts)
	r.mirror.Forget(begun[0])
	require.Empty(t, m.topics, "the series stay when none is left")
}
