package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/api"
	"github.com/causeway-mirror/causeway/cmd/internal/program"
	"github.com/causeway-mirror/causeway/controller"
	"github.com/causeway-mirror/causeway/helix"
	"github.com/causeway-mirror/causeway/internal/kafkad"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// limit is how long anything may take that a test waits for.
const limit = 30 * time.Second

// process is the program in this process.
type process struct {
	base     string
	client   *http.Client
	token    string     // goes with every call; empty: none does
	stop     func() int // gives the exit code
	log      *lockedBuffer
	graphite net.Listener
}

// lockedBuffer may be read while the program writes.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func launch(t *testing.T, zookeeper, cluster, id string, more ...string) *process {
	t.Helper()
	ports, err := kafkad.FreePorts(1)
	require.NoError(t, err)
	p := &process{base: fmt.Sprintf("http://127.0.0.1:%d", ports[0]), client: http.DefaultClient, log: &lockedBuffer{}}
	p.graphite, err = net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { p.graphite.Close() })
	args := append([]string{
		"-graphiteHost", "127.0.0.1", "-graphitePort", strconv.Itoa(kafkad.PortOf(p.graphite.Addr())), "-env", "dc.lab", "-graphiteReportFreqInSec", "1",
		"-helixClusterName", cluster, "-zookeeper", zookeeper, "-port", strconv.Itoa(ports[0]), "-instanceId", id, "-hostname", "127.0.0.1",
		"-localBackupFilePath", t.TempDir(), "-autoRebalanceDelayInSeconds", "0",
	}, more...)
	p.begin(t, id, args)
	return p
}

// begin runs the program until stop is called, or the test ends.
func (p *process) begin(t *testing.T, id string, args []string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan int, 1)
	go func() { done <- run(ctx, args, io.Discard, p.log) }() // owned by the test: stop waits for it
	p.stop = sync.OnceValue(func() int {
		cancel()
		return <-done
	})
	t.Cleanup(func() {
		p.stop()
		if t.Failed() {
			t.Log(id + ":\n" + p.log.String())
		}
	})
}

// reported waits for a report to Graphite that has all of this; earlier ones may still wait to be read.
func reported(t *testing.T, l net.Listener, figures ...string) {
	t.Helper()
	text := ""
	lacks := func(figure string) bool { return !strings.Contains(text, figure) }
	for deadline := time.Now().Add(limit); slices.ContainsFunc(figures, lacks); {
		require.True(t, time.Now().Before(deadline), text)
		c, err := l.Accept()
		require.NoError(t, err)
		require.NoError(t, c.SetReadDeadline(time.Now().Add(3*time.Second)))
		all, _ := io.ReadAll(c) // a connection that stays open ends by the deadline
		text = string(all)
		c.Close()
	}
}

// ask gives status and body of a call; 0 while nobody answers.
func (p *process) ask(method, path, body string) (status int, text string) {
	req, err := http.NewRequest(method, p.base+path, strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	if p.token != "" {
		req.Header.Set("Authorization", "Bearer "+p.token)
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(all)
}

// eventually asks until the answer is as wanted.
func (p *process) eventually(t *testing.T, method, path string, status int, contains string) {
	t.Helper()
	var is int
	var text string
	ok := func() bool {
		is, text = p.ask(method, path, "")
		return is == status && strings.Contains(text, contains)
	}
	for deadline := time.Now().Add(limit); !ok(); {
		if time.Now().After(deadline) {
			require.FailNow(t, "never came about", "%s %s: %d %s, want %d %s", method, path, is, text, status, contains)
		}
		<-time.After(50 * time.Millisecond)
	}
}

// place gives a chroot of the test's own.
func place(t *testing.T) string {
	t.Helper()
	return kafkatest.SharedZooKeeper(t).Addr() + "/" + strings.ToLower(t.Name())
}

// idle is a worker that does at once what it is told.
type idle struct{}

func (idle) Transition(context.Context, helix.Transition) error { return nil }
func (idle) Reset(context.Context, []helix.Partition)           {}
func (idle) Suspend()                                           {}
func (idle) Resume()                                            {}

// join lets a worker take part; leave ends that.
func join(t *testing.T, zookeeper, cluster, name string) (leave func()) {
	t.Helper()
	cfg := helix.DefaultParticipantConfig()
	cfg.ZooKeeper, cfg.Cluster, cfg.Instance = zookeeper, helix.Cluster(cluster), name
	p := helix.NewParticipant(cfg, helix.ParticipantDeps{Handler: idle{}, Log: hclog.NewNullLogger(), Registerer: prometheus.NewRegistry()})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }() // owned by the test: leave waits for it
	leave = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	t.Cleanup(leave)
	return leave
}

func TestAStandbyPassesCallsOnAndTakesOver(t *testing.T) {
	zookeeper := place(t)
	first := launch(t, zookeeper, "mirrors", "c1")
	first.eventually(t, http.MethodGet, "/topics", http.StatusOK, "No topic is added")
	second := launch(t, zookeeper, "mirrors", "c2")
	second.eventually(t, http.MethodGet, "/topics", http.StatusOK, "No topic is added")
	second.eventually(t, http.MethodGet, "/readyz", http.StatusOK, "")

	leave := join(t, zookeeper, "mirrors", "w_1")
	second.eventually(t, http.MethodGet, "/instances", http.StatusOK, `"allInstances":["w_1"]`)
	status, text := second.ask(http.MethodPost, "/topics", `{"topic":"orders","numPartitions":4}`)
	require.Equal(t, http.StatusOK, status, text)
	status, text = second.ask(http.MethodPost, "/topics", `{"topic":"orders","numPartitions":4}`)
	require.Equal(t, http.StatusNotFound, status, text)
	for _, p := range []*process{first, second} {
		p.eventually(t, http.MethodGet, "/topics/orders", http.StatusOK, `"serverToNumPartitionsMapping":{"w_1":4}`)
	}

	require.Equal(t, program.OK, first.stop())
	second.eventually(t, http.MethodGet, "/topics/orders", http.StatusOK, `"serverToNumPartitionsMapping":{"w_1":4}`)
	status, text = second.ask(http.MethodPost, "/topics", `{"topic":"payments","numPartitions":2}`)
	require.Equal(t, http.StatusOK, status, text)
	join(t, zookeeper, "mirrors", "w_2")
	second.eventually(t, http.MethodGet, "/instances", http.StatusOK, `"TOTALWORKLOAD.3:3000"],"w_2":`)
	leave()
	second.eventually(t, http.MethodGet, "/instances", http.StatusOK, `TOTALWORKLOAD.6:6000`)
	second.eventually(t, http.MethodGet, "/validation", http.StatusOK, `"numOnlineTopicPartitions":6`)
	status, text = second.ask(http.MethodDelete, "/topics/orders", "")
	require.Equal(t, http.StatusOK, status, text)
	second.eventually(t, http.MethodGet, "/validation", http.StatusOK, `"ExternalView":{"w_2":2}`)
	require.Equal(t, program.OK, second.stop())
}

func TestWithoutALeaderThatCanBeReachedCallsAreAnswered503(t *testing.T) {
	zookeeper := place(t)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cfg := helix.DefaultConfig()
	cfg.ZooKeeper, cfg.Cluster = zookeeper, "mirrors"
	s, err := helix.Open(ctx, cfg, hclog.NewNullLogger())
	require.NoError(t, err)
	defer s.Close()
	require.NoError(t, helix.NewAdmin(s, cfg.Cluster).CreateCluster(ctx, nil))
	foreign := helix.NewRecord("java") // leads, but has no API that anybody was told of
	foreign.Simple["SESSION_ID"] = s.ID()
	text, err := foreign.Encode()
	require.NoError(t, err)
	require.NoError(t, s.CreateEphemeral(ctx, cfg.Cluster.Root()+"/CONTROLLER/LEADER", text))

	p := launch(t, zookeeper, "mirrors", "c1")
	p.eventually(t, http.MethodGet, "/readyz", http.StatusOK, "")
	status, body := p.ask(http.MethodPost, "/topics", `{"topic":"orders","numPartitions":4}`)
	require.Equal(t, http.StatusServiceUnavailable, status, body)
	p.eventually(t, http.MethodGet, "/nosuch", http.StatusNotFound, `"code":404`)
	require.NoError(t, s.Delete(ctx, cfg.Cluster.Root()+"/CONTROLLER/LEADER", helix.AnyVersion))
	p.eventually(t, http.MethodGet, "/topics", http.StatusOK, "No topic is added")
}

func TestZooKeeperThatIsDownIsWaitedFor(t *testing.T) {
	z := kafkatest.StartZooKeeper(t)
	require.NoError(t, z.Kill())
	p := launch(t, z.Addr(), "mirrors", "c1")
	p.eventually(t, http.MethodGet, "/readyz", http.StatusServiceUnavailable, "connection refused")
	p.eventually(t, http.MethodGet, "/healthz", http.StatusOK, "")
	p.eventually(t, http.MethodGet, "/topics", http.StatusServiceUnavailable, "")
	require.NoError(t, z.Start(t.Context()))
	p.eventually(t, http.MethodGet, "/topics", http.StatusOK, "No topic is added")
	p.eventually(t, http.MethodGet, "/readyz", http.StatusOK, "")
	status, text := p.ask(http.MethodPost, "/api/v1/topics", `{"topic":"orders","partitions":4}`)
	require.Equal(t, http.StatusCreated, status, text)
	p.eventually(t, http.MethodGet, "/readyz", http.StatusServiceUnavailable, "no worker can take any of its partitions, of which there are 4")
}

// One that had led for minutes said that it was starting when ZooKeeper was gone.
func TestAControllerThatHasKnownALeaderIsSuspendedAndDoesNotStart(t *testing.T) {
	t.Parallel()
	v := &view{}
	refused := errors.New("connection refused")
	for _, row := range []struct {
		leader        controller.Leader
		err           error
		state, reason string
	}{
		{controller.Leader{}, refused, api.StateStarting, "the cluster can't be reached: connection refused"},
		{controller.Leader{}, nil, api.StateStarting, "nobody leads"},
		{controller.Leader{ID: "c1"}, nil, api.StateStandby, "c1 leads"},
		{controller.Leader{}, refused, api.StateSuspended, "connection refused"},
		{controller.Leader{}, nil, api.StateSuspended, "nobody leads"},
	} {
		s := v.standingBy(row.leader, row.err)
		require.Equal(t, row.state, s.State)
		require.Contains(t, s.Reason, row.reason)
	}
}

func TestTheNativeAPIChangesTheClusterAndSendsWritersToTheLeader(t *testing.T) {
	zookeeper := place(t)
	first := launch(t, zookeeper, "mirrors", "c1")
	first.eventually(t, http.MethodGet, "/api/v1/status", http.StatusOK, `"leader":"c1"`)
	second := launch(t, zookeeper, "mirrors", "c2")
	second.eventually(t, http.MethodGet, "/api/v1/status", http.StatusOK, `"leader":"c1"`)
	join(t, zookeeper, "mirrors", "w_1")
	join(t, zookeeper, "mirrors", "w_2")
	first.eventually(t, http.MethodGet, "/api/v1/status", http.StatusOK, `"workers":2`)
	second.eventually(t, http.MethodGet, "/api/v1/workers", http.StatusOK, `"id":"w_2","state":"active"`)

	hold := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := hold.Post(second.base+"/api/v1/topics", "application/json", strings.NewReader(`{"topic":"orders","partitions":4}`))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusTemporaryRedirect, resp.StatusCode)
	require.Equal(t, first.base+"/api/v1/topics", resp.Header.Get("Location"))

	for _, row := range []struct {
		method, path, body string
		status             int
	}{
		{http.MethodPost, "/topics", `{"topic":"orders","partitions":4}`, http.StatusCreated}, // a client that follows
		{http.MethodPost, "/topics", `{"topic":"orders","partitions":4}`, http.StatusConflict},
		{http.MethodPost, "/topics", `{"topic":"orders"`, http.StatusUnprocessableEntity},
		{http.MethodPost, "/topics", `{"topic":"orders","partition":4}`, http.StatusUnprocessableEntity},
		{http.MethodPost, "/topics", `{"partitions":4}`, http.StatusUnprocessableEntity},
		{http.MethodPost, "/topics", `{"topic":"a/b","partitions":4}`, http.StatusUnprocessableEntity},
		{http.MethodPost, "/topics", `{"topic":"new","partitions":-4}`, http.StatusUnprocessableEntity},
		{http.MethodPost, "/topics/orders/expand", `{"partitions":6}`, http.StatusAccepted},
		{http.MethodPost, "/topics/orders/expand", `{"partitions":3}`, http.StatusUnprocessableEntity},
		{http.MethodPost, "/topics/nosuch/expand", `{"partitions":3}`, http.StatusNotFound},
		{http.MethodPost, "/topics/orders/partitions/0/pause", ``, http.StatusAccepted},
		{http.MethodPost, "/topics/orders/partitions/0/pause", ``, http.StatusAccepted},
		{http.MethodPost, "/topics/orders/partitions/6/pause", ``, http.StatusNotFound},
		{http.MethodPost, "/topics/orders/partitions/x/pause", ``, http.StatusUnprocessableEntity},
		{http.MethodPost, "/topics/orders/partitions/1/move", `{"worker":"w_1"}`, http.StatusAccepted},
		{http.MethodPost, "/topics/orders/partitions/1/move", `{"worker":"nosuch"}`, http.StatusNotFound},
		{http.MethodPost, "/topics/orders/partitions/1/move", `{}`, http.StatusUnprocessableEntity},
		{http.MethodPost, "/workers/w_2/drain", ``, http.StatusAccepted},
		{http.MethodPost, "/workers/nosuch/drain", ``, http.StatusNotFound},
	} {
		status, text := second.ask(row.method, "/api/v1"+row.path, row.body)
		require.Equal(t, row.status, status, "%s %s %s: %s", row.method, row.path, row.body, text)
	}
	first.eventually(t, http.MethodGet, "/api/v1/workers", http.StatusOK, `{"id":"w_1","state":"active","partitions":6,`)
	first.eventually(t, http.MethodGet, "/api/v1/workers", http.StatusOK, `{"id":"w_2","state":"draining","partitions":0,`)
	second.eventually(t, http.MethodGet, "/api/v1/partitions?topic=orders&limit=1", http.StatusOK, `"state":"paused"`)
	first.eventually(t, http.MethodGet, "/api/v1/topics/orders", http.StatusOK, `"states":{"mirroring":5,"paused":1}`)
	first.eventually(t, http.MethodGet, "/api/v1/events?type=worker_joined", http.StatusOK, `worker w_2 joined`)
	var figures []string
	for _, name := range []string{"leader.counter 1", "topic.partitions.totalNumber 6", "worker.liveInstances 2", "idealStates.topicPartitions.w_1.totalNumber 6", "worker.rebalance.rate.count "} {
		figures = append(figures, "stats.dc.counter.kafka-mirror-maker-controller.lab.127.0.0.1."+name)
	}
	reported(t, first.graphite, figures...)
	first.eventually(t, http.MethodGet, "/metrics", http.StatusOK, `causeway_controller_leader{route="@source@target@1"} 1`)

	status, saved := second.ask(http.MethodGet, "/api/v1/backup", "")
	require.Equal(t, http.StatusOK, status)
	status, text := second.ask(http.MethodDelete, "/api/v1/topics/orders", "")
	require.Equal(t, http.StatusNoContent, status, text)
	status, text = second.ask(http.MethodPost, "/api/v1/restore", saved)
	require.Equal(t, http.StatusAccepted, status, text)
	first.eventually(t, http.MethodGet, "/api/v1/topics/orders", http.StatusOK, `"states":{"mirroring":5,"paused":1}`)
	status, text = second.ask(http.MethodPost, "/api/v1/restore", `{"v":7}`)
	require.Equal(t, http.StatusUnprocessableEntity, status, text)

	require.Equal(t, program.OK, first.stop())
	require.Equal(t, program.OK, second.stop())
}
