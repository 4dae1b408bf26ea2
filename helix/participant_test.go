package helix

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
)

func TestJoinCreatesWhatPeersExpect(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := r.join("host1_9001")
	ctx, c := t.Context(), r.cfg.Cluster
	in, err := r.admin.Instance(ctx, "host1_9001")
	require.NoError(t, err)
	require.Equal(t, Instance{Name: "host1_9001", Host: "host1", Port: "9001", Enabled: true, Disabled: map[string][]string{}}, in)
	folders, err := r.session().Children(ctx, c.instance("host1_9001"), nil)
	require.NoError(t, err)
	require.Equal(t, []string{"CURRENTSTATES", "CUSTOMIZEDSTATES", "ERRORS", "HISTORY", "MESSAGES", "STATUSUPDATES", "TASKCURRENTSTATES"}, folders)
	live, stat, err := r.session().GetRecord(ctx, c.liveInstance("host1_9001"), nil)
	require.NoError(t, err)
	require.Equal(t, m.p.Session().ID(), stat.Owner)
	require.Equal(t, stat.Owner, live.Simple[keySessionID])
	require.Equal(t, "0.6.8", live.Simple[keyHelixVersion])
	history, _, err := r.session().GetRecord(ctx, c.history("host1_9001"), nil)
	require.NoError(t, err)
	require.Equal(t, "-1", history.Simple[keyLastOffline])
	require.Len(t, history.List[keyHistory], 1)
	require.Regexp(t, `^\{DATE=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d:\d{3}, SESSION=`+stat.Owner+`, TIME=\d+\}$`, history.List[keyHistory][0])

	require.NoError(t, m.stop())
	found, _, err := r.session().Exists(ctx, c.liveInstance("host1_9001"), nil)
	require.NoError(t, err)
	require.False(t, found, "gone at once")
	history, _, err = r.session().GetRecord(ctx, c.history("host1_9001"), nil)
	require.NoError(t, err)
	require.NotEqual(t, "-1", history.Simple[keyLastOffline])
}

func TestJoinRefusedWithoutAutoJoinOrCluster(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	require.NoError(t, r.admin.SetConfig(t.Context(), ClusterScope(), nil, keyAutoJoin))
	err := r.prepare("a_1").p.Run(t.Context())
	require.ErrorIs(t, err, ErrNotSetUp)
	require.ErrorContains(t, err, "does not allow instances to join by themselves")
	names, err := r.admin.Instances(t.Context())
	require.NoError(t, err)
	require.Empty(t, names, "nothing was created")

	require.NoError(t, r.admin.AddInstance(t.Context(), newInstance("a_1")))
	m := r.join("a_1")
	require.NoError(t, m.stop())

	path := r.cfg.Cluster.join("CONTROLLER", "ERRORS")
	require.NoError(t, r.session().Delete(t.Context(), path, AnyVersion))
	err = r.prepare("a_1").p.Run(t.Context())
	var missing *MissingError
	require.ErrorAs(t, err, &missing)
	require.Equal(t, []string{path}, missing.Paths)
}

// A participant that was there before its cluster made a new session for each look, one or two in a second.
func TestAClusterThatIsNotSetUpIsWaitedForInOneSession(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	cfg := r.cfg
	cfg.Cluster = "late-" + r.cfg.Cluster
	var log bytes.Buffer
	told := make(chan error, 100)
	m := r.prepare("a_1", func(c *ParticipantConfig, d *ParticipantDeps) {
		c.Config, d.Log, d.NotSetUp = cfg, hclog.New(&hclog.LoggerOptions{Output: &log}), func(err error) { told <- err }
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.p.Run(ctx) }() // owned by the test, which waits below
	for range 3 {
		var missing *MissingError
		require.ErrorAs(t, <-told, &missing)
		require.True(t, missing.Whole)
	}
	require.NoError(t, NewAdmin(r.session(), cfg.Cluster).CreateCluster(t.Context(), map[string]string{keyAutoJoin: "true"}))
	require.Eventually(t, func() bool { return m.p.Session() != nil }, 30*time.Second, 10*time.Millisecond)
	cancel()
	require.NoError(t, <-ended)
	require.Equal(t, 1, strings.Count(log.String(), "zookeeper session begins"))
}

// Who only takes part makes no place for a cluster: the path may be a slip of the pen, and whoever sets clusters up says so.
func TestPathThatIsNotThereIsMadeByAdministratorsAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	root := "/no-" + string(r.cfg.Cluster)
	cfg := r.cfg
	cfg.ZooKeeper += root + "/such"
	m := r.prepare("a_1", func(c *ParticipantConfig, _ *ParticipantDeps) { c.Config = cfg })
	err := m.p.Run(t.Context())
	require.ErrorIs(t, err, ErrNotSetUp)
	require.ErrorContains(t, err, "zookeeper has no path "+root+"/such")
	found, _, err := r.session().Exists(t.Context(), root, nil)
	require.NoError(t, err)
	require.False(t, found)

	var log bytes.Buffer
	s, err := Open(t.Context(), cfg, hclog.New(&hclog.LoggerOptions{Output: &log}))
	require.NoError(t, err)
	require.NoError(t, NewAdmin(s, cfg.Cluster).CreateCluster(t.Context(), nil))
	s.Close()
	require.Contains(t, log.String(), "zookeeper has no such path, and it is created: path="+root+"/such")
}

func TestTransitionsAreRunReportedAndTheirMessagesDeleted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := r.join("a_1")
	m.bring("topic", Offline, Online, "0", "1")
	require.Equal(t, all(2, Online), m.reported("topic"))
	record, _, err := r.session().GetRecord(t.Context(), r.cfg.Cluster.currentState("a_1", m.p.Session().ID(), "topic"), nil)
	require.NoError(t, err)
	require.Equal(t, map[string]string{
		keySessionID: m.p.Session().ID(), keyStateModel: OnlineOffline, keyFactory: DefaultFactory, keyBucketSize: "0",
	}, record.Simple)
	require.Equal(t, "test", record.Map["0"][keyTriggeredBy])
	require.Equal(t, "OFFLINE", record.Map["0"][keyPreviousState])

	m.bring("topic", Online, Offline, "0")
	m.bring("topic", Offline, Dropped, "0")
	require.Equal(t, map[string]State{"1": Online}, m.reported("topic"))
	m.bring("topic", Online, Offline, "1")
	m.bring("topic", Offline, Dropped, "1")
	names, err := r.session().Children(t.Context(), r.cfg.Cluster.sessionStates("a_1", m.p.Session().ID()), nil)
	require.NoError(t, err)
	require.Empty(t, names, "an empty current state is no znode")
	m.bring("topic", Offline, Online, "7")
	require.Equal(t, map[string]State{"7": Online}, m.reported("topic"), "and comes again")
}

func TestFailedTransitionIsErrorUntilResetOrDropped(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	fails := true
	m := r.prepare("a_1")
	m.model.hook = func(_ context.Context, tr Transition) error {
		if tr.Name == "0" && tr.To == Online && fails {
			return errors.New("broken")
		}
		return nil
	}
	m.run()
	m.awaitMember("")
	is := NewIdealState("topic", 3, 1)
	for _, p := range numbers(3) {
		is.Assign(p, "a_1", Online)
	}
	require.NoError(t, r.admin.AddResource(t.Context(), is))
	m.bring("topic", Offline, Online, numbers(3)...)
	require.Equal(t, map[string]State{"0": Error, "1": Online, "2": Online}, m.reported("topic"))

	require.ErrorIs(t, r.admin.ResetPartitions(t.Context(), "a_1", "topic", "0", "1"), ErrRefused)
	require.Empty(t, m.queue(), "refused as a whole")
	fails = false
	require.NoError(t, r.admin.ResetPartitions(t.Context(), "a_1", "topic", "0"))
	m.idle()
	require.Equal(t, map[string]State{"0": Offline, "1": Online, "2": Online}, m.reported("topic"))
	m.bring("topic", Offline, Online, "0")
	require.Equal(t, all(3, Online), m.reported("topic"))

	fails = true
	m.bring("topic", Online, Offline, "0")
	m.bring("topic", Offline, Online, "0")
	m.bring("topic", Error, Dropped, "0")
	require.Equal(t, map[string]State{"1": Online, "2": Online}, m.reported("topic"))
}

func TestErrorIsLeftWithoutAHuman(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const least = 50 * time.Millisecond
	m := r.prepare("a_1", func(c *ParticipantConfig, _ *ParticipantDeps) { c.RetryLeast, c.RetryMost = least, 4*least })
	var mu sync.Mutex
	var failed time.Time
	var waited []time.Duration
	m.model.hook = func(_ context.Context, tr Transition) error {
		mu.Lock()
		defer mu.Unlock()
		if tr.From == Error {
			if waited = append(waited, time.Since(failed)); len(waited) > 1 {
				return nil
			}
			failed = time.Now()
			return errors.New("not even that")
		}
		failed = time.Now()
		return errors.New("broken")
	}
	m.run()
	m.awaitMember("")
	offline := func() {
		t.Helper()
		m.bring("topic", Offline, Online, "0") // as the controller does, again and again
		eventually(t, func() error {
			if state := m.reported("topic")["0"]; state != Offline {
				return fmt.Errorf("in %s", state)
			}
			return nil
		})
	}
	offline()
	require.Equal(t, []Transition{
		{Partition{"topic", "0"}, Offline, Online}, {Partition{"topic", "0"}, Error, Offline}, {Partition{"topic", "0"}, Error, Offline},
	}, m.model.transitions())
	offline()
	offline()
	mu.Lock()
	defer mu.Unlock()
	require.Len(t, waited, 4)
	for i, pause := range []time.Duration{least, 2 * least, 4 * least, 4 * least} {
		require.GreaterOrEqual(t, waited[i], pause, "pause before try %d", i+1)
	}
}

func TestPauseInErrorGrowsToItsBound(t *testing.T) {
	t.Parallel()
	c, last := DefaultParticipantConfig(), time.Duration(0)
	require.Equal(t, c.RetryLeast, c.retryPause(0))
	for n := range 100 {
		require.GreaterOrEqual(t, c.retryPause(n), last)
		last = c.retryPause(n)
	}
	require.Equal(t, c.RetryMost, last)
}

// A message that somebody had put a child under could not be deleted: the participant left the cluster, reset everything, joined again, and
// so on for ever. One that may not be read did the same.
func TestForeignZnodesInTheQueueThrowNobodyOut(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := r.join("a_1")
	m.bring("topic", Offline, Online, "0")
	session := m.p.Session()
	for _, target := range []string{session.ID(), "ffff"} { // one to be carried out, one to be refused
		msg := newTransition(Message{Source: "test", Target: "a_1", TargetSession: target, Resource: "topic", From: Offline, To: Online, Created: time.Now()}, "1")
		path := r.cfg.Cluster.message("a_1", msg.ID)
		require.NoError(t, r.session().Multi(t.Context(), CreateOp(path, encoded(t, msg.record())), CreateOp(path+"/child", nil)))
	}
	m.idle()
	_, err := r.session().conn.Create(r.session().full(r.cfg.Cluster.message("a_1", "secret")), []byte("{}"), 0, zk.DigestACL(zk.PermAll, "some", "body"))
	require.NoError(t, err)
	m.send("topic", Offline, Online, "2")
	eventually(t, func() error {
		if queue := m.queue(); len(queue) != 1 {
			return fmt.Errorf("queue is %v", queue)
		}
		return nil
	})
	require.Equal(t, map[string]State{"0": Online, "1": Online, "2": Online}, m.reported("topic"))
	require.Same(t, session, m.p.Session())
	require.Zero(t, m.model.resetCount())
}

func TestMessagesThatDoNotFitAreDeletedWithoutATrace(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := r.join("a_1")
	m.bring("topic", Offline, Online, "0")
	done := len(m.model.transitions())
	m.send("topic", Offline, Online, "0")  // again
	m.send("topic", Online, Offline, "7")  // never seen
	m.send("topic", Offline, Dropped, "0") // is ONLINE
	noOp := &Message{ID: newMessageID(), Type: msgNoOp, Status: msgNew, Target: "a_1", TargetSession: m.p.Session().ID(), Created: time.Now()}
	user := &Message{ID: newMessageID(), Type: "USER_DEFINE_MSG", Status: msgNew, Target: "a_1", TargetSession: m.p.Session().ID(), Created: time.Now()}
	m.post(noOp, user)
	m.idle()
	require.Equal(t, map[string]State{"0": Online}, m.reported("topic"))
	require.Len(t, m.model.transitions(), done)

	m.bring("topic", Online, "SLAVE", "0") // there is no such step: it must not stay half alive
	require.Equal(t, map[string]State{"0": Error}, m.reported("topic"))
	require.Equal(t, 1, m.model.resetCount())
}

func TestMalformedMessagesStayAndHurtNobody(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := r.join("a_1")
	whole := newTransition(Message{Source: "test", Target: "a_1", TargetSession: m.p.Session().ID(), Resource: "topic", From: Offline, To: Online, Created: time.Now()}, "0")
	data, err := whole.record().Encode()
	require.NoError(t, err)
	for name, bad := range map[string][]byte{
		"a-empty": nil, "b-truncated": data[:len(data)/2], "c-array": []byte("[]"), "d-null": []byte("null"), "e-no-id": []byte(`{"simpleFields":{}}`),
		"f-gzip": {0x1f, 0x8b, 8}, "g-nested": []byte(`{"id":"x","simpleFields":{"a":{"b":"c"}}}`),
	} {
		require.NoError(t, r.session().Create(t.Context(), r.cfg.Cluster.message("a_1", name), bad))
	}
	foreign := newTransition(Message{Source: "test", Target: "a_1", TargetSession: m.p.Session().ID(), Resource: "other", From: Offline, To: Online, Created: time.Now()}, "0")
	foreign.StateModel = "MasterSlave"
	m.post(foreign, whole)
	eventually(t, func() error {
		if queue := m.queue(); len(queue) != 8 {
			return fmt.Errorf("%d messages", len(queue))
		}
		return nil
	})
	require.Equal(t, all(1, Online), m.reported("topic"))
	require.NoError(t, r.session().DeleteTree(t.Context(), r.cfg.Cluster.messages("a_1")), "somebody cleans up too well")
	eventually(t, func() error {
		found, _, err := r.session().Exists(t.Context(), r.cfg.Cluster.messages("a_1"), nil)
		if err == nil && !found {
			err = errors.New("no queue")
		}
		return err
	})
	m.bring("topic", Online, Offline, "0")
	require.Equal(t, all(1, Offline), m.reported("topic"))
}

func TestIncompleteMessagesAreDeleted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := r.join("a_1")
	for _, key := range []string{keyMsgState, keyTarget, keyTargetSession, keyResource, keyPartition, keyFrom, keyTo, keyStateModel} {
		msg := newTransition(Message{Source: "test", Target: "a_1", TargetSession: m.p.Session().ID(), Resource: "topic", From: Offline, To: Online, Created: time.Now()}, key)
		record := msg.record()
		delete(record.Simple, key)
		data, err := record.Encode()
		require.NoError(t, err)
		require.NoError(t, r.session().Create(t.Context(), r.cfg.Cluster.message("a_1", msg.ID), data))
	}
	m.idle()
	require.Empty(t, m.model.transitions())
	require.Empty(t, m.reported("topic"))
}

func TestPartitionsOfAThousandAreReportedInFewWrites(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := r.join("a_1")
	const n = 1000
	messages := func(from, to State) []*Message {
		var list []*Message
		for _, p := range numbers(n) {
			list = append(list, newTransition(Message{Source: "test", Target: "a_1", TargetSession: m.p.Session().ID(), Resource: "topic", From: from, To: to, Created: time.Now()}, p))
		}
		return list
	}
	before := testutil.ToFloat64(m.p.metrics.commits)
	m.post(messages(Offline, Online)...)
	m.idle()
	require.Equal(t, all(n, Online), m.reported("topic"))
	require.LessOrEqual(t, testutil.ToFloat64(m.p.metrics.commits)-before, 20.0)
	_, stat, err := r.session().Get(t.Context(), r.cfg.Cluster.currentState("a_1", m.p.Session().ID(), "topic"), nil)
	require.NoError(t, err)
	require.LessOrEqual(t, stat.Version, int32(20), "the node is a hundred kilobytes")
	m.post(messages(Online, Offline)...)
	m.idle()
	m.post(messages(Offline, Dropped)...)
	m.idle()
	require.Empty(t, m.reported("topic"))
	require.LessOrEqual(t, testutil.ToFloat64(m.p.metrics.commits)-before, 60.0)
}

func TestReportBeyondAZnodesSizeIsCompressed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := r.join("a_1")
	names := make([]string, 7000) // about 1.3 MB of JSON
	for i := range names {
		names[i] = "partition-" + strconv.Itoa(i)
	}
	m.send("topic", Offline, Online, names...)
	m.idle()
	data, _, err := r.session().Get(t.Context(), r.cfg.Cluster.currentState("a_1", m.p.Session().ID(), "topic"), nil)
	require.NoError(t, err)
	require.Equal(t, []byte{0x1f, 0x8b}, data[:2])
	require.Len(t, m.reported("topic"), len(names))
	m.send("topic", Online, Offline, names...)
	m.idle()
	m.send("topic", Offline, Dropped, names...)
	m.idle()
	require.Empty(t, m.reported("topic"), "a batch drops all of its partitions in one write")
}

func TestBatchIsReportedWithItsFailures(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := r.prepare("a_1")
	m.model.hook = func(_ context.Context, tr Transition) error {
		if tr.Name == "1" {
			return errors.New(strings.Repeat("broken ", 100))
		}
		return nil
	}
	m.run()
	m.awaitMember("")
	m.bring("topic", Offline, Online, "2") // is there already when the batch comes
	m.send("topic", Offline, Online, "0", "1", "2", "3", "0")
	m.idle()
	require.Equal(t, map[string]State{"0": Online, "1": Error, "2": Online, "3": Online}, m.reported("topic"))
	require.Len(t, m.model.transitions(), 4)
}

func TestSecondMessageForABusyPartitionIsDeleted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := r.prepare("a_1")
	entered, release := make(chan struct{}), make(chan struct{})
	m.model.hook = func(ctx context.Context, tr Transition) error {
		if tr.Name != "0" {
			return nil
		}
		close(entered)
		select {
		case <-release:
		case <-ctx.Done():
		}
		return nil
	}
	m.run()
	m.awaitMember("")
	first := m.send("topic", Offline, Online, "0")
	await(t, "the first transition", entered)
	m.send("topic", Offline, Online, "0")
	m.send("topic", Offline, Online, "1")
	eventually(t, func() error {
		if queue := m.queue(); len(queue) != 1 || queue[0] != first.ID {
			return fmt.Errorf("queue %v", queue)
		}
		return nil
	})
	require.Equal(t, map[string]State{"1": Online}, m.reported("topic"), "nobody waits for another partition")
	close(release)
	m.idle()
	require.Equal(t, all(2, Online), m.reported("topic"))
	require.Len(t, m.model.transitions(), 2)
}

func TestCancellationTakesBackWhatHasNotBegun(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := r.prepare("a_1", func(c *ParticipantConfig, _ *ParticipantDeps) { c.Concurrency = 1 })
	entered, release := make(chan struct{}, 8), make(chan struct{})
	m.model.hook = func(ctx context.Context, _ Transition) error {
		entered <- struct{}{}
		select {
		case <-release:
		case <-ctx.Done():
		}
		return nil
	}
	m.run()
	m.awaitMember("")
	m.send("topic", Offline, Online, "0") // runs
	await(t, "the first transition", entered)
	m.send("topic", Offline, Online, "1") // waits for room
	cancelOf := func(partition string) *Message {
		c := newTransition(Message{Source: "test", Target: "a_1", TargetSession: m.p.Session().ID(), Resource: "topic", From: Offline, To: Online, Created: time.Now()}, partition)
		c.Type = msgCancellation
		return c
	}
	eventually(t, func() error {
		if testutil.ToFloat64(m.p.metrics.messages.WithLabelValues(run.String())) != 2 {
			return errors.New("second message not seen")
		}
		return nil
	})
	together := newTransition(Message{Source: "test", Target: "a_1", TargetSession: m.p.Session().ID(), Resource: "topic", From: Offline, To: Online, Created: time.Now()}, "2")
	m.post(cancelOf("0"), cancelOf("1"), cancelOf("2"), together) // running, waiting, in the same breath
	eventually(t, func() error {
		if queue := m.queue(); len(queue) != 2 { // those at work
			return fmt.Errorf("queue %v", queue)
		}
		return nil
	})
	close(release)
	m.idle()
	require.Equal(t, map[string]State{"0": Online}, m.reported("topic"))
	require.Len(t, m.model.transitions(), 1)
}

func TestTimeoutOfAMessageEndsItsTransition(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := r.prepare("a_1")
	m.model.hook = func(ctx context.Context, _ Transition) error {
		<-ctx.Done()
		return ctx.Err()
	}
	m.run()
	m.awaitMember("")
	msg := newTransition(Message{Source: "test", Target: "a_1", TargetSession: m.p.Session().ID(), Resource: "topic", From: Offline, To: Online, Created: time.Now()}, "0")
	msg.Timeout = 50 * time.Millisecond
	m.post(msg)
	m.idle()
	require.Equal(t, all(1, Error), m.reported("topic"))
}

func TestMetricsAreClean(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	m := newParticipantMetrics(reg)
	m.transitions.WithLabelValues("OFFLINE", "ONLINE", "ok").Inc()
	m.messages.WithLabelValues("run").Inc()
	faults, err := testutil.GatherAndLint(reg)
	require.NoError(t, err)
	require.Empty(t, faults)
}
