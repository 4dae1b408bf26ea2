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

	"github.com/causeway-mirror/causeway/internal/testkit"
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
// third beyond that, which is the case's limit of the operating system. At full length, with 10,000 partitions and a broker a side, it takes
// its time besides: at least four fifths of what a process manages that may have all the memory it wants.
func TestC30ManyLargeBatchesInLittleMemory(t *testing.T) {
	t.Parallel()
	h := heavy{source: kafkatest.Shared(t, kafkatest.Kafka4), topics: rounds(1, 4), partitions: rounds(800, 2500)}
	target := func() *kafkatest.Cluster { return h.source }
	if testkit.Long() { // so many open files and maps of one process are near its limits, and busy for longer than a heartbeat waits
		large := kafkatest.Options{Heap: "3g", Config: map[string]string{"broker.session.timeout.ms": "300000"}}
		h.source = kafkatest.Start(t, large)
		target = func() *kafkatest.Cluster { return kafkatest.Start(t, large) }
	}
	h.write(t)
	memory := rounds(128, 768) // MiB
	to := target()
	tight := h.copy(t, to, memory)
	t.Logf("%d MiB in %v, with at most %d MiB of memory: %d MiB", h.bytes()>>20, tight.took, memory, tight.peak>>20)
	require.Less(t, tight.peak, memory<<20*4/3)
	for i := range h.topics {
		requireCopy(t, h.source.Bootstrap(), to.Bootstrap(), h.topic(i), h.topic(i)+".copy", int64(h.partitions))
	}
	if !testkit.Long() {
		return // a second of copying compares nothing
	}
	free := h.copy(t, target(), 16<<10)
	t.Logf("%v with as much memory as it wants: %d MiB", free.took, free.peak>>20)
	require.Less(t, tight.took.Seconds(), free.took.Seconds()/0.8, "at most 768 MiB of memory cost more than a fifth of the speed")
}

// heavy are topics with one batch of 256 KiB in each partition. Several topics, since a controller makes no more than 10,000 partitions at once.
type heavy struct {
	source             *kafkatest.Cluster
	topics, partitions int // of each topic
}

const heavyBatch = 256 << 10

func (*heavy) topic(i int) string { return fmt.Sprintf("heavy-%d", i) }

func (h *heavy) bytes() int { return h.topics * h.partitions * heavyBatch }

func (h *heavy) write(t *testing.T) {
	t.Helper()
	noise := make([]byte, heavyBatch-100) // the rest is the batch's header
	_, err := rand.Read(noise)
	require.NoError(t, err)
	cl := h.source.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.NoCompression()))
	for i := range h.topics {
		h.source.CreateTopic(t, h.topic(i), h.partitions, map[string]string{"segment.index.bytes": "4096"})
		for p := range int32(h.partitions) {
			require.NoError(t, cl.ProduceSync(t.Context(), &kgo.Record{Topic: h.topic(i), Partition: p, Value: noise}).FirstErr())
		}
	}
}

// copied is how the copying of all went.
type copied struct {
	took time.Duration // from the first tenth of the records to the last nine: what comes before is start, what comes after is waiting
	peak int           // bytes
}

// copy copies all to a cluster that has none of it, with so many MiB of memory, and tells how the partitions shared the way.
func (h *heavy) copy(t *testing.T, to *kafkatest.Cluster, memory int) copied {
	t.Helper()
	for i := range h.topics {
		to.CreateTopic(t, h.topic(i)+".copy", h.partitions, map[string]string{"segment.index.bytes": "4096"})
	}
	m := newMirrorer(t, fmt.Sprintf("mirror-%d", memory), between(h.source.Bootstrap(), to.Bootstrap(), `heavy-[0-9]+`, "--rename", "{topic}.copy",
		"--memory", fmt.Sprintf("%dMiB", memory))...)
	m.start(t)
	var began, ended time.Time
	all := h.topics * h.partitions
	shared := false
	for deadline := time.Now().Add(4 * time.Minute); ended.IsZero(); pass(t, time.Duration(rounds(50, 250))*time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "not copied in time")
		done := h.done(t, m)
		now := time.Now()
		sum := 0
		for _, n := range done {
			sum += n
		}
		if began.IsZero() && sum >= all/10 {
			began = now
		}
		if !shared && sum >= all/2 {
			shared = true
			t.Logf("%d of %d batches copied; of each tenth of the partitions: %v", sum, all, done)
		}
		if sum >= all*9/10 {
			ended = now
		}
	}
	for i := range h.topics {
		m.caughtUp(t, h.topic(i))
	}
	c := copied{took: ended.Sub(began), peak: m.peak(t)}
	m.stop(t)
	return c
}

// done counts the partitions that are copied, by tenths of their numbers.
func (h *heavy) done(t *testing.T, m *mirrorer) (tenths [10]int) {
	t.Helper()
	_, body := get(t, m.api(t)+"/metrics")
	for _, lag := range regexp.MustCompile(`(?m)^causeway_lag_records\{partition="(\d+)",route="[^"]*",topic="[^"]*"\} (\d+)$`).FindAllStringSubmatch(body, -1) {
		if p, err := strconv.Atoi(lag[1]); err == nil && lag[2] == "0" {
			tenths[p*10/h.partitions]++
		}
	}
	return tenths
}
