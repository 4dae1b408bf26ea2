package cluster_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/internal/kafkad"
	"github.com/causeway-mirror/causeway/internal/testkit"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// boss is a controller process that is started again and again under one id and port.
type boss struct {
	*worker // its folder, log and last start

	base string
}

func newBoss(t *testing.T, l *lab, id string) *boss {
	t.Helper()
	ports, err := kafkad.FreePorts(1)
	require.NoError(t, err)
	b := &boss{worker: prepareWorker(t, id), base: fmt.Sprintf("http://127.0.0.1:%d", ports[0])}
	file := fmt.Sprintf(`route:
  source: {name: src, bootstrap: [%[1]s]}
  target: {name: dst, bootstrap: [%[1]s]}
  topics: {rename: "{topic}.copy"}
coordination: {zookeeper: "%[2]s", cluster: %[3]s, session_timeout: %[4]s}
controller: {id: %[5]s, lag_interval: 1s}
offsets: {group: %[3]s}
server: {listen: "127.0.0.1:%[6]d"}
`, strings.Join(l.kafka.Bootstrap(), ", "), l.zookeeper.Addr(), l.cluster, session, id, ports[0])
	path := filepath.Join(b.dir, "causeway.yaml")
	require.NoError(t, os.WriteFile(path, []byte(file), 0o600))
	b.args = []string{"--config", path}
	return b
}

func (b *boss) start(t *testing.T) {
	t.Helper()
	b.run = kafkatest.NewProgram(b.id, b.dir, append([]string{filepath.Join(programs, "controller")}, b.args...)...)
	require.NoError(t, b.run.Start())
}

// post calls until the answer has the status.
func (b *boss) post(t *testing.T, path, body string, status int) {
	t.Helper()
	last := ""
	ok := func() bool {
		resp, err := http.Post(b.base+path, "application/json", strings.NewReader(body))
		if err != nil {
			last = err.Error()
			return false
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		last = fmt.Sprintf("%d %s", resp.StatusCode, text)
		return err == nil && resp.StatusCode == status
	}
	for deadline := time.Now().Add(upWithin); !ok(); pass(t, 50*time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "POST %s %s: %s", path, body, last)
	}
}

// caughtUp waits until all that is in a topic at the call is committed.
func (b *boss) caughtUp(t *testing.T, topic string) {
	t.Helper()
	q := url.Values{"topic": {topic}, "lag": {"0"}, "timeout": {"10s"}}
	deadline := time.Now().Add(caughtWithin)
	for {
		code, body := get(t, b.base+"/api/v1/wait?"+q.Encode())
		if code == http.StatusOK {
			return
		}
		if time.Now().After(deadline) {
			_, parts := get(t, b.base+"/api/v1/partitions")
			require.FailNow(t, "not caught up", "%s: topic %s: %d %s\n%s", b.id, topic, code, body, parts)
		}
		pass(t, 50*time.Millisecond)
	}
}

// TestControllersAndWorkersComeAndGo runs two controllers and three workers under load and ends them in every way: each record arrives once,
// in order.
func TestControllersAndWorkersComeAndGo(t *testing.T) {
	l := &lab{
		kafka: kafkatest.Shared(t, kafkatest.Kafka3), zookeeper: kafkatest.StartZooKeeper(t), cluster: strings.ToLower(t.Name()),
	}
	lasting := 20 * time.Second
	if testkit.Long() {
		lasting = 5 * time.Minute
	}
	bosses := []*boss{newBoss(t, l, "boss-1"), newBoss(t, l, "boss-2")}
	var crew []*worker
	for _, id := range []string{"w_1", "w_2", "w_3"} {
		crew = append(crew, newWorker(t, id, nativeFile(l, id, l.zookeeper.Addr())))
	}
	for _, b := range bosses {
		b.start(t)
	}
	for _, w := range crew {
		w.start(t)
	}
	feeds := map[string]*feed{}
	for i, topic := range []string{"orders", "payments", "clicks"} {
		topic = l.cluster + "." + topic
		l.kafka.CreateTopic(t, topic, partitions, nil)
		feeds[topic] = l.startFeed(t, topic, 500)
		bosses[i%2].post(t, "/topics", fmt.Sprintf(`{"topic":%q,"numPartitions":%d}`, topic, partitions), http.StatusOK)
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for end := time.Now().Add(lasting); time.Now().Before(end); {
		w, b := crew[random.IntN(len(crew))], bosses[random.IntN(len(bosses))]
		switch what := random.IntN(6); what {
		case 0:
			t.Log("killed:", w.id)
			w.kill(t)
			w.start(t)
		case 1:
			t.Log("terminated:", w.id)
			w.stop(t)
			pass(t, time.Second)
			w.start(t)
		case 2:
			t.Log("paused:", w.id)
			require.NoError(t, w.run.Pause())
			pass(t, session+2*time.Second)
			require.NoError(t, w.run.Resume())
		case 3:
			t.Log("killed:", b.id)
			require.NoError(t, b.run.Kill())
			b.start(t)
		case 4:
			t.Log("terminated:", b.id)
			b.worker.stop(t)
			b.start(t)
		case 5:
			t.Log("killed: zookeeper")
			require.NoError(t, l.zookeeper.Kill())
			require.NoError(t, l.zookeeper.Start(t.Context()))
		}
		pass(t, time.Duration(random.IntN(3000))*time.Millisecond)
	}
	for topic, f := range feeds {
		written := f.end(t)
		bosses[0].caughtUp(t, topic)
		l.requireCopy(t, topic, written)
	}
	code, body := get(t, bosses[1].base+"/validation")
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, body, fmt.Sprintf(`"numOnlineTopicPartitions":%d`, 3*partitions))
	for _, w := range crew {
		w.stop(t)
	}
	for _, b := range bosses {
		b.worker.stop(t)
	}
}
