package faults_test

import (
	"crypto/rand"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// peak is the most memory, in bytes, that the process has had resident (proc(5), VmHWM).
func (m *mirrorer) peak(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.run.Pid()))
	require.NoError(t, err)
	found := regexp.MustCompile(`(?m)^VmHWM:\s+(\d+) kB$`).FindSubmatch(status)
	require.NotNil(t, found, string(status))
	kilobytes, err := strconv.Atoi(string(found[1]))
	require.NoError(t, err)
	return kilobytes << 10
}

// TestC30ManyLargeBatchesInLittleMemory has partitions whose batches, all together, are more than the process may have. It never has more than a
// third beyond that, which is the case's limit of the operating system.
func TestC30ManyLargeBatchesInLittleMemory(t *testing.T) {
	t.Parallel()
	k := kafkatest.Shared(t, kafkatest.Kafka4)
	const topic, to, batch = "heavy", "heavy.copy", 256 << 10
	partitions, memory := rounds(800, 10_000), rounds(128, 768) // MiB
	k.CreateTopic(t, topic, partitions, map[string]string{"segment.index.bytes": "4096"})
	noise := make([]byte, batch-100) // the rest is the batch's header
	_, err := rand.Read(noise)
	require.NoError(t, err)
	cl := k.Client(t, kgo.DefaultProduceTopic(topic), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.NoCompression()))
	for p := range int32(partitions) {
		require.NoError(t, cl.ProduceSync(t.Context(), &kgo.Record{Partition: p, Value: noise}).FirstErr())
	}
	m := newMirrorer(t, "mirror", between(k.Bootstrap(), k.Bootstrap(), topic, "--rename", "{topic}.copy", "--memory", fmt.Sprintf("%dMiB", memory))...)
	began := time.Now()
	m.start(t)
	m.caughtUp(t, topic)
	took, peak := time.Since(began), m.peak(t)
	t.Logf("%d MiB in %v, with at most %d MiB of memory: %d MiB", partitions*batch>>20, took, memory, peak>>20)
	require.Less(t, peak, memory<<20*4/3)
	m.stop(t)
	requireCopy(t, k.Bootstrap(), k.Bootstrap(), topic, to, int64(partitions))
}
