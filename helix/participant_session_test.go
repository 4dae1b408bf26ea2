package helix

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestShortSilenceChangesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := r.join("a_1")
	m.bring("topic", Offline, Online, "0")
	session := m.p.Session().ID()
	for range 3 {
		r.proxy.Cut()
		m.bring("topic", Online, Offline, "0")
		r.proxy.Cut()
		m.bring("topic", Offline, Online, "0")
	}
	require.Equal(t, session, m.p.Session().ID())
	require.Len(t, m.model.transitions(), 7)
	require.Zero(t, m.model.resetCount())
}

func TestSilenceSuspendsBeforeTheSessionCanEndAndAnAnswerResumes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := r.join("a_1")
	m.bring("topic", Offline, Online, "0")
	session := m.p.Session()
	r.proxy.HoldAnswers() // requests reach the server: the session goes on, but we can't know
	eventually(t, func() error {
		if suspended, _ := m.model.suspensions(); suspended == 0 {
			return errors.New("not suspended")
		}
		return nil
	})
	require.Less(t, session.Silence(), session.Timeout(), "in time")
	require.NoError(t, r.proxy.Heal())
	eventually(t, func() error {
		if _, resumed := m.model.suspensions(); resumed == 0 {
			return errors.New("not resumed")
		}
		return nil
	})
	require.Same(t, session, m.p.Session())
	require.Zero(t, m.model.resetCount())
	m.bring("topic", Online, Offline, "0")
	require.Equal(t, all(1, Offline), m.reported("topic"))
}

func TestExpiredSessionResetsAndJoinsAnew(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := r.prepare("a_1", func(c *ParticipantConfig, _ *ParticipantDeps) { c.SessionTimeout = 2 * time.Second })
	entered := make(chan struct{}, 1)
	m.model.hook = func(ctx context.Context, tr Transition) error {
		if tr.Name != "slow" || len(entered) > 0 {
			return nil
		}
		entered <- struct{}{}
		<-ctx.Done() // the session's end
		return ctx.Err()
	}
	m.run()
	m.awaitMember("")
	m.bring("topic", Offline, Online, "0", "1")
	former := m.p.Session().ID()
	lost := m.send("topic", Offline, Online, "slow")
	eventually(t, func() error {
		if len(entered) == 0 {
			return errors.New("not begun")
		}
		return nil
	})
	gone := make(chan struct{})
	_, _, err := r.session().Get(t.Context(), r.cfg.Cluster.liveInstance("a_1"), func(Event) { close(gone) })
	require.NoError(t, err)
	r.proxy.Blackhole()
	await(t, "the session's end", gone)
	suspended, _ := m.model.suspensions()
	require.Equal(t, 1, suspended, "before")
	require.NoError(t, r.proxy.Heal())
	m.awaitMember(former)

	require.Equal(t, [][]Partition{{{"topic", "0"}, {"topic", "1"}, {"topic", "slow"}}}, m.model.resets)
	require.Equal(t, all(2, Offline), m.reported("topic"), "carried over")
	sessions, err := r.session().Children(t.Context(), r.cfg.Cluster.currentStates("a_1"), nil)
	require.NoError(t, err)
	require.Equal(t, []string{m.p.Session().ID()}, sessions, "the former one is removed")
	_, resumed := m.model.suspensions()
	require.Equal(t, 1, resumed)
	m.idle()
	require.NotContains(t, m.queue(), lost.ID, "of the former session")
	m.bring("topic", Offline, Online, "0", "1", "slow")
	require.Equal(t, map[string]State{"0": Online, "1": Online, "slow": Online}, m.reported("topic"))
}

func TestStopInterruptsResetsAndLeaves(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := r.prepare("a_1")
	entered := make(chan struct{})
	m.model.hook = func(ctx context.Context, tr Transition) error {
		if tr.Name == "slow" {
			close(entered)
			<-ctx.Done()
		}
		return nil
	}
	m.run()
	m.awaitMember("")
	m.bring("topic", Offline, Online, "0")
	m.bring("topic", Offline, Online, "1")
	m.bring("topic", Online, Offline, "1")
	m.send("topic", Offline, Online, "slow")
	await(t, "the transition", entered)
	require.NoError(t, m.stop())
	require.Equal(t, [][]Partition{{{"topic", "0"}, {"topic", "slow"}}}, m.model.resets)
	live, err := r.admin.LiveInstances(t.Context())
	require.NoError(t, err)
	require.Empty(t, live)
}

func TestRestartWaitsForItsFormerSelfAndCarriesOver(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.cfg.Cluster
	// What a killed process leaves: its live node until the session ends, current states of a million lives, messages.
	dead := r.open(func() Config { cfg := r.through(); cfg.SessionTimeout = 3 * time.Second; return cfg }())
	require.NoError(t, r.admin.AddInstance(t.Context(), newInstance("a_1")))
	live := NewRecord("a_1")
	live.Simple[keySessionID], live.Simple[keyLiveInstance] = dead.ID(), "4711@elsewhere"
	put := func(path string, record *Record) {
		data, err := record.Encode()
		require.NoError(t, err)
		require.NoError(t, r.session().Put(t.Context(), path, data))
	}
	states := func(session, resource, model string, partitions ...string) {
		record := NewRecord(resource)
		record.Simple = map[string]string{keySessionID: session, keyStateModel: model, "KEPT": "as it was"}
		for _, p := range partitions {
			record.Map[p] = map[string]string{keyCurrentState: "ONLINE", keyInfo: "x"}
		}
		put(c.currentState("a_1", session, resource), record)
	}
	data, err := live.Encode()
	require.NoError(t, err)
	require.NoError(t, dead.CreateEphemeral(t.Context(), c.liveInstance("a_1"), data))
	states(dead.ID(), "topic", OnlineOffline, "0", "1")
	states("older", "topic", OnlineOffline, "1", "2")
	states("older", "other", OnlineOffline, "0")
	states("older", "task", "Task", "0")
	require.NoError(t, r.session().Put(t.Context(), c.currentState("a_1", "older", "malformed"), []byte("{")))
	r.proxy.Blackhole()

	m := r.prepare("a_1", func(c *ParticipantConfig, _ *ParticipantDeps) { c.ZooKeeper = r.cfg.ZooKeeper })
	old := newTransition(Message{Source: "test", Target: "a_1", TargetSession: dead.ID(), Resource: "topic", From: Offline, To: Online, Created: time.Now().Add(time.Hour)}, "0")
	m.post(old)
	m.run()
	m.awaitMember("")
	m.idle()
	require.NoError(t, r.proxy.Heal())
	require.Equal(t, all(3, Offline), m.reported("topic"))
	require.Equal(t, all(1, Offline), m.reported("other"))
	record, _, err := r.session().GetRecord(t.Context(), c.currentState("a_1", m.p.Session().ID(), "topic"), nil)
	require.NoError(t, err)
	require.Equal(t, "as it was", record.Simple["KEPT"])
	require.Equal(t, m.p.Session().ID(), record.Simple[keySessionID])
	sessions, err := r.session().Children(t.Context(), c.currentStates("a_1"), nil)
	require.NoError(t, err)
	require.Equal(t, []string{m.p.Session().ID()}, sessions)
	sync, _, err := r.session().GetRecord(t.Context(), c.controllerMessage(sessionSync), nil)
	require.NoError(t, err, "the message was newer than the session: the controller lives in the past")
	require.Equal(t, msgSessionChange, sync.Simple[keyMsgType])

	m.bring("other", Offline, Dropped, "0")
	require.Empty(t, m.reported("other"))
	require.Equal(t, []Transition{{Partition{"other", "0"}, Offline, Dropped}}, m.model.transitions())
}

func TestSecondProcessOfOneNameIsRefusedAndStealsNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first := r.join("a_1")
	first.bring("topic", Offline, Online, "0")
	second := r.prepare("a_1", func(c *ParticipantConfig, _ *ParticipantDeps) { c.SessionTimeout = time.Second })
	began := time.Now()
	err := second.p.Run(t.Context())
	var taken *TakenError
	require.ErrorAs(t, err, &taken)
	require.Equal(t, first.p.Session().ID(), taken.Session)
	require.Equal(t, processName(), taken.Process)
	require.GreaterOrEqual(t, time.Since(began), 1500*time.Millisecond, "session timeout and grace")
	require.Empty(t, second.model.transitions())
	require.Equal(t, all(1, Online), first.reported("topic"))
	require.Zero(t, first.model.resetCount())
	first.bring("topic", Online, Offline, "0")
}

// A server that was started again gives every session its whole time-out anew: so the node of a former self may stay for much longer than
// one, and a process that counted on regardless took it for somebody alive and gave up.
func TestWaitForItsNameBeginsAgainWithEveryConnection(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first := r.open(r.cfg)
	require.NoError(t, r.admin.AddInstance(t.Context(), newInstance("a_1")))
	path := r.cfg.Cluster.liveInstance("a_1")
	data, err := NewRecord("a_1").Encode()
	require.NoError(t, err)
	require.NoError(t, first.CreateEphemeral(t.Context(), path, data))
	m := r.prepare("a_1", func(c *ParticipantConfig, _ *ParticipantDeps) {
		c.SessionTimeout, c.TakeoverGrace = 3*time.Second, 500*time.Millisecond
	})
	m.run()
	lost := time.NewTicker(1500 * time.Millisecond)
	defer lost.Stop()
	for range 5 {
		select {
		case <-lost.C:
			r.proxy.Cut()
			require.NoError(t, r.proxy.Heal())
		case <-m.done:
			require.NoError(t, m.stop(), "it gave up although no session's time had passed without a new connection")
		}
	}
	require.NoError(t, first.Delete(t.Context(), path, AnyVersion))
	m.awaitMember("")
}

func TestTooManyStatesForATransactionAreCarriedOverAfterTheLiveNode(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const resources = 3000
	require.NoError(t, r.admin.AddInstance(t.Context(), newInstance("a_1")))
	require.NoError(t, r.session().CreateAll(t.Context(), r.cfg.Cluster.sessionStates("a_1", "older"), nil))
	var ops []Op
	for i := range resources {
		record := NewRecord("topic-" + strconv.Itoa(i))
		record.Simple[keyStateModel] = OnlineOffline
		record.Map["0"] = map[string]string{keyCurrentState: "ONLINE"}
		data, err := record.Encode()
		require.NoError(t, err)
		ops = append(ops, CreateOp(r.cfg.Cluster.currentState("a_1", "older", record.ID), data))
	}
	for _, chunk := range Chunks(ops, opsPerCommit) {
		require.NoError(t, r.session().Multi(t.Context(), chunk...))
	}
	m := r.join("a_1")
	names, err := r.session().Children(t.Context(), r.cfg.Cluster.sessionStates("a_1", m.p.Session().ID()), nil)
	require.NoError(t, err)
	require.Len(t, names, resources)
	m.bring("topic-2999", Offline, Online, "0")
	require.Equal(t, all(1, Online), m.reported("topic-2999"))
}

func TestRemovedLiveNodeIsMadeAgainInAnotherSession(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := r.join("a_1")
	m.bring("topic", Offline, Online, "0")
	former := m.p.Session().ID()
	require.NoError(t, r.session().Delete(t.Context(), r.cfg.Cluster.liveInstance("a_1"), AnyVersion))
	m.awaitMember(former)
	require.Equal(t, 1, m.model.resetCount())
	require.Equal(t, all(1, Offline), m.reported("topic"))
}

func TestLostAnswersAndRemovedNodesDoNotStopReports(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := r.join("a_1")
	states := r.cfg.Cluster.sessionStates("a_1", m.p.Session().ID())
	for i := range 6 {
		partition := strconv.Itoa(i)
		if i == 5 {
			require.NoError(t, r.session().DeleteTree(t.Context(), states))
		}
		msg := m.send("topic", Offline, Online, partition)
		switch i {
		case 1, 2:
			r.proxy.Cut()
		case 3: // perhaps at work, perhaps never seen: an impatient controller collects it, and sends another one
			err := r.session().Delete(t.Context(), r.cfg.Cluster.message("a_1", msg.ID), AnyVersion)
			require.True(t, err == nil || errors.Is(err, ErrNotFound), err)
			m.send("topic", Offline, Online, partition)
		}
		m.idle()
		require.Equal(t, Online, m.reported("topic")[partition], partition)
	}
	require.Equal(t, all(6, Online), m.reported("topic"))
	require.Len(t, m.model.transitions(), 6)
}

func TestLostCurrentStateIsWrittenAgainWhenTheControllerGoesWrong(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := r.join("a_1")
	m.bring("topic", Offline, Online, "0", "1")
	require.NoError(t, r.session().Delete(t.Context(), r.cfg.Cluster.currentState("a_1", m.p.Session().ID(), "topic"), AnyVersion))
	require.Empty(t, m.reported("topic"))
	m.bring("topic", Offline, Online, "0") // as a controller would, which believes it OFFLINE
	require.Equal(t, all(2, Online), m.reported("topic"))
	m.bring("topic", Online, Offline, "7") // of a partition that was never here
	require.Equal(t, all(2, Online), m.reported("topic"))
	require.Len(t, m.model.transitions(), 2)
}

func TestJoinedLivesWithTheSession(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	joined, ended := make(chan *Session, 1), make(chan struct{})
	m := r.join("a_1", func(_ *ParticipantConfig, d *ParticipantDeps) {
		d.Joined = func(ctx context.Context, s *Session) {
			joined <- s
			<-ctx.Done()
			close(ended)
		}
	})
	require.Same(t, m.p.Session(), <-joined)
	require.NoError(t, m.stop())
	await(t, "the end", ended)
	require.Nil(t, m.p.Session())
}
