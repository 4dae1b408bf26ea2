package chaos_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/internal/kafkad"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

const (
	session    = 4 * time.Second // of workers and controllers: short, or what follows its end would take long
	partitions = 4               // of each topic
	memory     = 128             // MiB a worker may have
	group      = "chaos"         // name of the cluster of workers, and of its positions

	healedWithin = 2 * time.Minute // from the last fault until everything is on the target
)

// Topics by what happens to them.
const (
	plain     = "orders"
	transacts = "payments" // written in transactions
	purged    = "clicks"   // records are deleted before they are copied
	reborn    = "sessions" // made anew
)

// stage is what a schedule happens to: brokers, a ZooKeeper, controllers and workers, and feeds that write all the time.
type stage struct {
	t           *testing.T
	clusters    []*kafkatest.Cluster // source and target, or one that is both
	zookeeper   *kafkatest.ZooKeeper
	controllers []*actor
	workers     []*actor
	disks       []*disk // of the workers, in their order; none where they can't be mounted
	feeds       map[string]*feed
}

func (s *stage) source() *kafkatest.Cluster { return s.clusters[0] }
func (s *stage) target() *kafkatest.Cluster { return s.clusters[len(s.clusters)-1] }
func (s *stage) actors() []*actor           { return append(append([]*actor{}, s.controllers...), s.workers...) }

// newStage starts everything and returns when records flow.
func newStage(t *testing.T, versions ...string) *stage {
	t.Helper()
	s := &stage{t: t, zookeeper: kafkatest.StartZooKeeper(t), feeds: map[string]*feed{}}
	for _, version := range versions {
		s.clusters = append(s.clusters, kafkatest.Start(t, kafkatest.Options{
			Version: version, Brokers: 3, Proxy: true, Heap: "256m", Config: map[string]string{"min.insync.replicas": "2"},
		}))
	}
	for i := range 2 {
		id := fmt.Sprintf("controller-%d", i+1)
		s.controllers = append(s.controllers, newActor(t, "controller", id, s.zookeeper.Addr(), func(zookeeper, listen string) string {
			return s.file(zookeeper, listen) + fmt.Sprintf(`controller: {id: %s, lag_interval: 1s, validate_interval: 1s, rebalance: {min_interval: 1s}}
`, id)
		}))
	}
	for i := range 3 {
		id := fmt.Sprintf("worker-%d", i+1)
		dir := filepath.Join(t.ArtifactDir(), id, "spill")
		if d := newDisk(t, dir); d != nil {
			s.disks = append(s.disks, d)
		}
		s.workers = append(s.workers, newActor(t, "worker", id, s.zookeeper.Addr(), func(zookeeper, listen string) string {
			return s.file(zookeeper, listen) + fmt.Sprintf(`worker:
  {id: %s, memory: %dMiB, commit_interval: 1s, spill: {dir: %q, max_bytes: 64MiB, overflow_timeout: 500ms}}
`, id, memory, dir)
		}))
	}
	for _, a := range s.actors() {
		require.NoError(t, a.Start())
	}
	for _, topic := range []string{plain, transacts, purged, reborn} {
		s.source().CreateTopic(t, topic, partitions, nil)
		s.target().CreateTopic(t, topic+".copy", partitions, nil)
		s.feeds[topic] = &feed{
			topic: topic, bootstrap: s.source().Bootstrap(), rate: 200, txn: topic == transacts, ledger: map[int32][]entry{},
		}
		s.feeds[topic].start(t.Context())
		t.Cleanup(func() { _ = s.feeds[topic].end() }) // ended before, but for a test that failed
		body := fmt.Sprintf(`{"topic":%q,"numPartitions":%d}`, topic, partitions)
		require.NoError(t, kafkad.Poll(t.Context(), time.Minute, func(ctx context.Context) error {
			return ask(ctx, http.MethodPost, s.controllers[0].base+"/topics", body, nil)
		}))
	}
	require.NoError(t, s.caughtUp(t.Context()))
	return s
}

func (s *stage) file(zookeeper, listen string) string {
	return fmt.Sprintf(`route:
  source: {name: src, bootstrap: [%s]}
  target: {name: dst, bootstrap: [%s]}
  topics: {rename: "{topic}.copy"}
coordination: {zookeeper: "%s", cluster: %s, session_timeout: %s}
offsets: {group: %[4]s}
server: {listen: %[6]q}
`, strings.Join(s.source().ProxyBootstrap(), ", "), strings.Join(s.target().ProxyBootstrap(), ", "), zookeeper, group, session, listen)
}

// caughtUp waits until all that the source holds at the call is committed.
func (s *stage) caughtUp(ctx context.Context) error {
	deadline := time.Now().Add(healedWithin)
	for topic := range s.feeds {
		err := kafkad.Poll(ctx, time.Until(deadline), func(ctx context.Context) error {
			return ask(ctx, http.MethodGet, s.controllers[0].base+"/api/v1/wait?lag=0&timeout=5s&topic="+topic, "", nil)
		})
		if err != nil {
			var all json.RawMessage
			_ = ask(ctx, http.MethodGet, s.controllers[0].base+"/api/v1/partitions?limit=1000", "", &all) // it is only told
			return fmt.Errorf("topic %s has a lag: %w\n%s", topic, err, all)
		}
	}
	return nil
}

// ask calls an API and takes the answer apart. Any status but 2xx is an error.
func ask(ctx context.Context, method, address, body string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("ask: %w", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: %d %s", method, address, resp.StatusCode, text)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("parse answer of %s: %w", address, err)
	}
	return nil
}
