package connector_test

import (
	"bytes"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/causeway-mirror/causeway/connector"
	"github.com/causeway-mirror/causeway/handler"
	"github.com/causeway-mirror/causeway/offsets/bolt"
)

// written keeps what is logged, and shows it with the test.
type written struct {
	io.Writer

	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func newWritten(t *testing.T) *written {
	t.Helper()
	return &written{Writer: testWriter{t}}
}

func (w *written) Write(b []byte) (int, error) {
	w.mu.Lock()
	w.text.Write(b)
	w.mu.Unlock()
	return w.Writer.Write(b)
}

func (w *written) count(line string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return bytes.Count(w.text.Bytes(), []byte(line))
}

// recompresses is the warning of a topic whose brokers compress everything anew.
func recompresses(topic, codec string) string {
	return "[WARN]  target topic recompresses what comes in another codec: topic=" + topic + " compression_type=" + codec
}

// A target topic with a codec of its own costs its brokers what raw batches save, and nobody was told.
func TestTargetThatRecompressesIsWarnedOfOnce(t *testing.T) {
	t.Parallel()
	kc, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, "orders", "plain"))
	require.NoError(t, err)
	t.Cleanup(kc.Close)
	require.NoError(t, kc.CreateTopic("orders-copy", 2, map[string]string{"compression.type": "gzip"}))
	cl, err := kgo.NewClient(kgo.SeedBrokers(kc.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	require.NoError(t, err)
	t.Cleanup(cl.Close)
	all := append(parts("orders", 2), parts("plain", 2)...)
	for _, p := range all {
		produce(t, cl, &kgo.Record{Topic: p.Topic, Partition: p.Partition, Value: []byte("a")})
	}
	store, err := bolt.Open(t.TempDir())
	require.NoError(t, err)
	log := newWritten(t)
	c, _, _ := startLogged(t, ends{kc.ListenAddrs(), kc.ListenAddrs()}, store, log, func(*connector.Config, *handler.Config) {})
	c.Add(all...)
	require.Eventually(t, func() bool { return log.count(recompresses("orders-copy", "gzip")) == 1 }, 20*time.Second, 10*time.Millisecond)
	awaitCopied(t, c, all...)
	require.Equal(t, 1, log.count("recompresses"))
}
