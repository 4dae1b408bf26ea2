package helix

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

// TestControllerBegins is HC1 and HC22: LEADER, history and state model as Java peers expect them, whatever state model was there.
func TestControllerBegins(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	old := stateModelRecord()
	old.List[keyStatePriority] = []string{"DROPPED", "ERROR", "OFFLINE", "ONLINE"}
	require.NoError(t, r.session().Put(t.Context(), r.cfg.Cluster.stateModel(OnlineOffline), encoded(t, old)))
	term := r.controller("ctrl1").term(t)

	leader, stat, err := r.session().GetRecord(t.Context(), r.cfg.Cluster.leader(), nil)
	require.NoError(t, err)
	require.Equal(t, "ctrl1", leader.ID)
	require.Equal(t, term.Session().ID(), stat.Owner, "ephemeral")
	require.Equal(t, term.Session().ID(), leader.Simple[keySessionID])
	require.Equal(t, "0.6.8", leader.Simple[keyHelixVersion])
	require.Regexp(t, `^\d+@.+`, leader.Simple[keyLiveInstance])

	history, _, err := r.session().GetRecord(t.Context(), r.cfg.Cluster.controllerHistory(), nil)
	require.NoError(t, err)
	require.Equal(t, []string{"ctrl1"}, history.List[string(r.cfg.Cluster)])
	require.Len(t, history.List[keyHistory], 1)
	require.Regexp(t, `^\{DATE=\d{4}-\d\d-\d\d-\d\d:\d\d:\d\d, CONTROLLER=ctrl1, TIME=\d{13}\}$`, history.List[keyHistory][0])

	model, _, err := r.session().GetRecord(t.Context(), r.cfg.Cluster.stateModel(OnlineOffline), nil)
	require.NoError(t, err)
	require.True(t, model.Equal(stateModelRecord()))
}

// TestHandOver is HC4: the new owner's message comes only when the old one is OFFLINE and its message is gone.
func TestHandOver(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a, b := r.puppet("a_1"), r.puppet("b_1")
	r.controller("ctrl1").term(t)
	r.add("topic", "a_1")
	m := a.awaitQueue(1)[0]
	require.Equal(t, []string{"0"}, m.Partitions)
	require.Equal(t, [2]State{Offline, Online}, [2]State{m.From, m.To})
	require.Equal(t, [...]string{"new", "ctrl1", "a_1", a.session.ID(), "topic", OnlineOffline, DefaultFactory}, [...]string{
		m.Status, m.Source, m.Target, m.TargetSession, m.Resource, m.StateModel, m.Factory,
	})
	require.Empty(t, m.faults())

	r.assign("topic", "b_1")
	a.report("topic", map[string]State{"0": Online})
	r.awaitView("topic", "a_1")
	require.Len(t, a.queue(), 1, "the message underway comes first")
	a.finish(m)
	var down *Message
	eventually(t, func() error {
		if q := a.queue(); len(q) == 1 && q[0].ID != m.ID {
			down = q[0]
			return nil
		}
		return errors.New("no message")
	})
	require.Equal(t, [2]State{Online, Offline}, [2]State{down.From, down.To})
	require.Empty(t, b.queue())

	a.report("topic", map[string]State{"0": Offline})
	r.awaitStates("topic", map[string]map[string]string{"0": {"a_1": "OFFLINE"}})
	require.Empty(t, b.queue(), "the message of the old owner is still there")
	a.finish(down)
	up, drop := b.awaitQueue(1)[0], a.awaitQueue(1)[0]
	require.Equal(t, [4]State{Offline, Online, Offline, Dropped}, [4]State{up.From, up.To, drop.From, drop.To})
}

// TestMovesUnderOurParticipants: with slow participants, partitions go round; none ever has two owners, and each comes to rest where it belongs.
func TestMovesUnderOurParticipants(t *testing.T) {
	t.Parallel()
	r, s := newRig(t), newStage()
	names := []string{"a_1", "b_1", "c_1"}
	slow := func(ctx context.Context, tr Transition) error {
		if tr.From == Online {
			select {
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
			}
		}
		return nil
	}
	for _, name := range names {
		r.enter(s, name, slow)
	}
	r.controller("ctrl1").term(t)
	owners := make([]string, 12)
	for i := range owners {
		owners[i] = names[i%3]
	}
	r.add("topic", owners...)
	r.awaitView("topic", owners...)
	for round := range 5 {
		for i := range owners {
			owners[i] = names[(i+round*(i%2)+1)%3]
		}
		r.assign("topic", owners...)
		if round%2 == 0 { // half of them overtake each other
			r.awaitView("topic", owners...)
		}
	}
	r.awaitView("topic", owners...)
	require.NoError(t, r.admin.DropResource(t.Context(), "topic"))
	r.awaitStates("topic", nil)
	r.quiet(names...)
	require.Empty(t, s.twice)
	for _, line := range s.log()[len(s.log())-12:] {
		require.Contains(t, line, "OFFLINE>DROPPED")
	}
}

// TestErrors is HC7 to HC9: a partition in ERROR is left alone until it is reset, taken away or dropped; disabling spares it.
func TestErrors(t *testing.T) {
	t.Parallel()
	r, s := newRig(t), newStage()
	sick := make(chan struct{})
	r.enter(s, "a_1", func(_ context.Context, tr Transition) error {
		select {
		case <-sick:
		default:
			if tr.To == Online && tr.Name != "1" {
				return errors.New("sick")
			}
		}
		return nil
	})
	r.controller("ctrl1").term(t)
	r.add("topic", "a_1", "a_1", "a_1")
	is := func(states ...string) {
		want := map[string]map[string]string{}
		for i, state := range states {
			if state != "" {
				want[strconv.Itoa(i)] = map[string]string{"a_1": state}
			}
		}
		t.Helper()
		r.awaitStates("topic", want)
	}
	is("ERROR", "ONLINE", "ERROR")
	require.NoError(t, r.admin.EnableInstance(t.Context(), "a_1", false))
	is("ERROR", "OFFLINE", "ERROR")
	require.NoError(t, r.admin.EnableInstance(t.Context(), "a_1", true))
	is("ERROR", "ONLINE", "ERROR")
	require.NoError(t, r.admin.EnablePartitions(t.Context(), "a_1", "topic", []string{"1"}, false))
	is("ERROR", "OFFLINE", "ERROR")
	require.NoError(t, r.admin.EnablePartitions(t.Context(), "a_1", "topic", []string{"1"}, true))
	is("ERROR", "ONLINE", "ERROR")
	require.NoError(t, r.admin.EnableResource(t.Context(), "topic", false))
	is("ERROR", "OFFLINE", "ERROR")
	require.NoError(t, r.admin.EnableResource(t.Context(), "topic", true))
	is("ERROR", "ONLINE", "ERROR")
	close(sick)
	r.quiet("a_1")
	require.NoError(t, r.admin.ResetPartitions(t.Context(), "a_1", "topic", "0"))
	is("ONLINE", "ONLINE", "ERROR")
	r.assign("topic", "a_1", "a_1")
	is("ONLINE", "ONLINE", "")
}

// TestInstanceGoesAndComesBack is HC10 to HC12: what is gone vanishes from the view and gets no messages; what was sent to the old session does
// not count in the new one.
func TestInstanceGoesAndComesBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := r.puppet("a_1")
	term := r.controller("ctrl1").term(t)
	r.add("topic", "a_1")
	old := a.awaitQueue(1)[0]
	a.report("topic", map[string]State{"0": Online})
	r.awaitView("topic", "a_1")
	a.session.Close()
	r.awaitView("topic")
	there, _, err := r.session().Exists(t.Context(), r.cfg.Cluster.currentState("a_1", a.session.ID(), "topic"), nil)
	require.NoError(t, err)
	require.True(t, there, "nothing of it is deleted")

	a = r.puppet("a_1")
	queue := a.awaitQueue(2)
	next := queue[slices.IndexFunc(queue, func(m *Message) bool { return m.ID != old.ID })]
	require.Equal(t, a.session.ID(), next.TargetSession)
	instances := term.Instances()
	require.Len(t, instances, 1)
	require.Equal(t, a.session.ID(), instances[0].Session)
	resource, ok := term.Resource("topic")
	require.True(t, ok)
	require.Equal(t, 2, resource.Underway)
	require.Equal(t, []string{"topic"}, term.Resources())
}

// TestDropWithoutLiveInstance is HC13: the view goes at once.
func TestDropWithoutLiveInstance(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.controller("ctrl1").term(t)
	r.add("topic", "a_1")
	r.awaitStates("topic", map[string]map[string]string{})
	require.NoError(t, r.admin.DropResource(t.Context(), "topic"))
	r.awaitStates("topic", nil)
}

// TestPause is HC14.
func TestPause(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := r.puppet("a_1")
	term := r.controller("ctrl1").term(t)
	paused := func(want bool) {
		eventually(t, func() error {
			if term.Paused() != want {
				return fmt.Errorf("paused is not %t", want)
			}
			return nil
		})
	}
	require.NoError(t, r.session().Create(t.Context(), r.cfg.Cluster.pause(), nil)) // an empty node is none
	r.add("before", "a_1")
	a.finish(a.awaitQueue(1)[0])
	require.NoError(t, r.admin.EnableCluster(t.Context(), true))
	require.NoError(t, r.admin.EnableCluster(t.Context(), false))
	paused(true)
	r.add("topic", "a_1")
	eventually(t, func() error {
		if _, ok := term.Resource("topic"); !ok {
			return errors.New("not known yet")
		}
		return nil
	})
	require.False(t, slices.ContainsFunc(a.queue(), func(m *Message) bool { return m.Resource == "topic" }), "nothing is sent")
	require.Nil(t, r.view("topic"))
	require.NoError(t, r.admin.EnableCluster(t.Context(), true))
	paused(false)
	eventually(t, func() error {
		if !slices.ContainsFunc(a.queue(), func(m *Message) bool { return m.Resource == "topic" }) {
			return errors.New("not sent")
		}
		return nil
	})
	require.False(t, term.Maintenance())
	require.NoError(t, r.session().Create(t.Context(), r.cfg.Cluster.maintenance(), encoded(t, NewRecord("maintenance"))))
	eventually(t, func() error {
		if !term.Maintenance() {
			return errors.New("no maintenance")
		}
		return nil
	})
}

// A view that was due when the pause began made the loop run without a rest for as long as it lasted.
func TestPausedLeaderRests(t *testing.T) {
	t.Parallel()
	term := &Term{c: &Controller{cfg: DefaultControllerConfig()}, snap: newSnapshot()}
	term.views = viewWriter{t: term, due: map[string]struct{}{"topic": {}}}
	require.Zero(t, term.rest(), "due")
	term.snap.paused = true
	require.Equal(t, neverDue, term.rest())
}

// TestBatchMessages is HC15: a thousand partitions need a handful of messages; drops come one by one, since Java participants lose all but the
// first of a batch.
func TestBatchMessages(t *testing.T) {
	t.Parallel()
	r, s := newRig(t), newStage()
	r.enter(s, "a_1", nil)
	l := r.controller("ctrl1")
	l.term(t)
	const n = 1000
	is := NewIdealState("topic", n, 1)
	is.Record.Simple[keyBatchMode] = configTrue
	for i := range n {
		is.Assign(strconv.Itoa(i), "a_1", Online)
	}
	require.NoError(t, r.admin.AddResource(t.Context(), is))
	eventually(t, func() error {
		if have := len(r.view("topic")); have != n {
			return fmt.Errorf("%d partitions", have)
		}
		return nil
	})
	require.Equal(t, 1.0, l.count(t, "causeway_helix_messages_sent_total"))
	require.Equal(t, float64(n), l.count(t, "causeway_helix_transitions_sent_total"))
	require.NoError(t, r.admin.DropResource(t.Context(), "topic"))
	r.awaitStates("topic", nil)
	require.LessOrEqual(t, l.count(t, "causeway_helix_messages_sent_total"), 2.0+n)
	require.Equal(t, 3.0*n, l.count(t, "causeway_helix_transitions_sent_total"))
	r.quiet("a_1")
}

// TestMalformedZnodes is HC17 and HC18: what can't be read is skipped, and everything else goes on.
func TestMalformedZnodes(t *testing.T) {
	t.Parallel()
	r, s := newRig(t), newStage()
	c, ctx := r.cfg.Cluster, t.Context()
	r.enter(s, "a_1", nil)
	p := r.puppet("p_1")
	put := func(path, data string) { require.NoError(t, r.session().Put(ctx, path, []byte(data))) }
	foreign := newTransition(Message{
		Source: "somebody", Target: "other_1", TargetSession: "1", Resource: "topic", From: Offline, To: Online, Created: time.Now(),
	}, "0").record()
	litter := func(suffix string) {
		put(c.idealState("torn"+suffix), `{"id":"torn","simpleFi`)
		put(c.idealState("empty"+suffix), "")
		put(c.idealState("foreign"+suffix), `{"id":"foreign","simpleFields":{"STATE_MODEL_DEF_REF":"MasterSlave","REBALANCE_MODE":"SEMI_AUTO"}}`)
		put(c.liveInstance("ghost"+suffix), `null`)
		put(c.liveInstance("noname"+suffix), `{"id":"noname"}`)
		put(c.configParticipant("torn"+suffix), `[1,2]`)
		put(c.currentState("p_1", p.session.ID(), "torn"+suffix), `{"id":`)
		put(c.currentState("p_1", p.session.ID(), "model"+suffix), `{"id":"model","simpleFields":{"SESSION_ID":"`+p.session.ID()+`"}}`)
		put(c.message("p_1", "torn"+suffix), `{{`)
		put(c.message("p_1", "nothing"+suffix), `{"id":"nothing"}`)
		put(c.message("p_1", "foreign"+suffix), string(encoded(t, foreign)))
		put(c.controllerMessage("torn"+suffix), `}`)
		put(c.externalView("torn"+suffix), `}`)
		put(c.join("STATEMODELDEFS", "Odd"+suffix), `}`)
	}
	litter("-before")
	put(c.stateModel(OnlineOffline), `}`)
	put(c.epochPath(), `}`)
	put(c.controllerHistory(), `}`)
	l := r.controller("ctrl1")
	term := l.term(t)
	r.add("topic", "a_1", "p_1")
	r.awaitView("topic", "a_1")
	litter("-after")
	r.add("later", "a_1")
	r.awaitView("later", "a_1")
	require.Len(t, p.queue2("topic"), 1)
	require.NotEmpty(t, l.count(t, "causeway_helix_malformed_total"))

	// One that was in order keeps its partitions when it is damaged, and goes on when it is mended.
	record, _, err := r.session().GetRecord(ctx, c.idealState("later"), nil)
	require.NoError(t, err)
	put(c.idealState("later"), `{"id":"later"`)
	r.add("even-later", "a_1")
	r.awaitView("even-later", "a_1")
	r.awaitView("later", "a_1")
	clear(record.Map)
	put(c.idealState("later"), string(encoded(t, record)))
	r.awaitView("later")
	require.Empty(t, l.terms, "one term, without interruption")
	require.NoError(t, term.Admin().EnableCluster(ctx, true))
}

// queue2 are the puppet's messages about one resource, of those that can be read.
func (p *puppet) queue2(resource string) []string {
	ids, err := p.session.Children(p.r.t.Context(), p.r.cfg.Cluster.messages(p.name), nil)
	require.NoError(p.r.t, err)
	return slices.DeleteFunc(ids, func(id string) bool {
		record, _, err := p.session.GetRecord(p.r.t.Context(), p.r.cfg.Cluster.message(p.name, id), nil)
		return err != nil || record.Simple[keyResource] != resource || record.Simple[keyTarget] != p.name
	})
}

// TestOneMoreTopicCostsAFewReads is HC19: the reads do not depend on how many topics there are.
func TestOneMoreTopicCostsAFewReads(t *testing.T) {
	t.Parallel()
	r, s := newRig(t), newStage()
	r.enter(s, "a_1", nil)
	l := r.controller("ctrl1")
	l.term(t)
	const n = 300
	require.NoError(t, r.session().Each(t.Context(), n, func(ctx context.Context, i int) error {
		is := NewIdealState(fmt.Sprintf("topic-%03d", i), 1, 1)
		is.Assign("0", "a_1", Online)
		return r.admin.AddResource(ctx, is)
	}))
	for i := range n {
		r.awaitView(fmt.Sprintf("topic-%03d", i), "a_1")
	}
	r.quiet("a_1")
	reads, views := l.count(t, "causeway_helix_reads_total"), l.count(t, "causeway_helix_views_written_total")
	r.add("one-more", "a_1")
	r.awaitView("one-more", "a_1")
	require.LessOrEqual(t, l.count(t, "causeway_helix_reads_total")-reads, 15.0)
	require.LessOrEqual(t, l.count(t, "causeway_helix_views_written_total")-views, 3.0)
}

// TestQueuesAreBounded is HC20 in small: no more than the cap waits at once, and everything gets through, whether many partitions wait or
// many topics.
func TestQueuesAreBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := r.puppet("a_1")
	r.controller("ctrl1", func(c *ControllerConfig) { c.MaxOutstanding = 10 }).term(t)
	const large, small = 15, 20
	r.add("large", slices.Repeat([]string{"a_1"}, large)...)
	for i := range small {
		r.add(fmt.Sprint("small-", i), "a_1")
	}
	a.awaitQueue(10)
	states := map[string]map[string]State{}
	done := 0
	eventually(t, func() error {
		queue := a.queue()
		require.LessOrEqual(t, len(queue), 10)
		for _, m := range queue {
			if states[m.Resource] == nil {
				states[m.Resource] = map[string]State{}
			}
			states[m.Resource][m.Partitions[0]] = Online
			a.report(m.Resource, states[m.Resource])
		}
		for _, m := range queue {
			a.finish(m)
		}
		if done += len(queue); done < large+small {
			return fmt.Errorf("%d transitions came", done)
		}
		return nil
	})
	r.awaitView("large", slices.Repeat([]string{"a_1"}, large)...)
	for i := range small {
		r.awaitView(fmt.Sprint("small-", i), "a_1")
	}
}

// TestStaleMessagesAreRemoved: a message that nobody will carry out keeps its partition from moving no longer than it may.
func TestStaleMessagesAreRemoved(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := r.puppet("a_1")
	l := r.controller("ctrl1", func(c *ControllerConfig) { c.StaleAfter = time.Second })
	l.term(t)
	r.add("topic", "a_1")
	stale := a.awaitQueue(1)[0]
	a.report("topic", map[string]State{"0": Online}) // done, but the message was forgotten
	r.awaitView("topic", "a_1")
	r.assign("topic", "")
	eventually(t, func() error {
		if q := a.queue(); len(q) == 1 && q[0].ID != stale.ID && q[0].From == Online {
			return nil
		}
		return errors.New("the stale message is in the way")
	})
	require.Equal(t, 1.0, l.count(t, "causeway_helix_stale_messages_total"))
}

// TestFailover: a standby takes over at once when the leader leaves, and goes on where it was, without sending again what is underway.
func TestFailover(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := r.puppet("a_1")
	first := r.controller("ctrl1")
	term := first.term(t)
	second := r.controller("ctrl2")
	r.add("topic", "a_1")
	m := a.awaitQueue(1)[0]
	eventually(t, func() error {
		if second.Leader() != "ctrl1" {
			return fmt.Errorf("the standby thinks that %q leads", second.Leader())
		}
		return nil
	})
	require.Empty(t, second.terms)
	began := time.Now()
	first.stop()
	require.NotEqual(t, term.Epoch(), second.term(t).Epoch())
	require.Less(t, time.Since(began), 5*time.Second)
	r.add("later", "a_1")
	queue := a.awaitQueue(2)
	require.Contains(t, []string{queue[0].ID, queue[1].ID}, m.ID)
	require.ErrorIs(t, term.Admin().EnableInstance(t.Context(), "a_1", false), ErrClosed)
	require.Equal(t, "ctrl2", second.Leader())
}

// TestFailoverInTheMiddle is HP28 from our side: the leader leaves while hundreds of transitions are underway; the next one carries on, and no
// partition is told anything twice.
func TestFailoverInTheMiddle(t *testing.T) {
	t.Parallel()
	r, s := newRig(t), newStage()
	gate := make(chan struct{}, 1000)
	r.enter(s, "a_1", func(ctx context.Context, _ Transition) error {
		select {
		case <-gate:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	first := r.controller("ctrl1", func(c *ControllerConfig) { c.MaxOutstanding = 100 })
	first.term(t)
	second := r.controller("ctrl2")
	const n = 400
	owners := slices.Repeat([]string{"a_1"}, n)
	r.add("topic", owners...)
	for range n / 4 {
		gate <- struct{}{}
	}
	eventually(t, func() error {
		if done := len(s.log()); done < n/4 {
			return fmt.Errorf("%d done", done)
		}
		return nil
	})
	first.stop()
	second.term(t)
	close(gate)
	r.awaitView("topic", owners...)
	require.Len(t, s.log(), n)
	require.Empty(t, s.twice)
}

// TestControllerWaitsForItsCluster: it may be started before the cluster is set up.
func TestControllerWaitsForItsCluster(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	require.NoError(t, r.session().DeleteTree(t.Context(), r.cfg.Cluster.Root()))
	l := r.controller("ctrl1")
	r.cfg.Cluster += "-unrelated" // something to be busy with meanwhile
	require.NoError(t, NewAdmin(r.session(), r.cfg.Cluster).CreateCluster(t.Context(), nil))
	require.Empty(t, l.terms)
	require.NoError(t, r.admin.CreateCluster(t.Context(), nil))
	l.term(t)
}

// TestDeposedLeaderWritesNothing is HC21: a leader that is cut off stops by itself before its session ends, another one leads, and when the
// first can speak again it is a standby.
func TestDeposedLeaderWritesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := r.puppet("a_1")
	first := r.controller("ctrl1", func(c *ControllerConfig) { c.Config = r.through(); c.SessionTimeout = 6 * time.Second })
	term := first.term(t)
	second := r.controller("ctrl2")
	r.proxy.Blackhole()
	eventually(t, func() error {
		if first.count(t, "causeway_controller_leader") != 0 {
			return errors.New("it still leads")
		}
		return nil
	})
	leader, _, err := r.session().GetRecord(t.Context(), r.cfg.Cluster.leader(), nil)
	require.NoError(t, err)
	require.Equal(t, "ctrl1", leader.ID, "it stopped before its session was over")
	second.term(t)
	r.add("topic", "a_1")
	a.awaitQueue(1)
	require.NoError(t, r.proxy.Heal())
	eventually(t, func() error {
		if first.Leader() != "ctrl2" {
			return fmt.Errorf("it thinks that %q leads", first.Leader())
		}
		return nil
	})
	require.Error(t, term.Admin().EnableInstance(t.Context(), "a_1", false))
	require.Empty(t, first.terms)
	for _, m := range a.queue() {
		require.Equal(t, "ctrl2", m.Source)
	}
}

// TestShortSilenceKeepsLeadership: when the connection comes back in time, the same session leads on.
func TestShortSilenceKeepsLeadership(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first := r.controller("ctrl1", func(c *ControllerConfig) { c.Config = r.through(); c.SessionTimeout = 20 * time.Second })
	term := first.term(t)
	r.proxy.Cut()
	r.add("topic", "a_1")
	r.awaitView("topic")
	require.Empty(t, first.terms)
	require.NoError(t, term.Session().Err())
}

func TestLeaderWhoseTermHasEndedInSilenceNamesNobody(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	l := r.controller("ctrl1", func(c *ControllerConfig) { c.Config = r.through() })
	l.term(t)
	require.Equal(t, "ctrl1", l.Leader())
	r.proxy.Blackhole()
	eventually(t, func() error {
		if leader := l.Leader(); leader != "" {
			return fmt.Errorf("%s leads", leader)
		}
		return nil
	})
	require.NoError(t, r.proxy.Heal())
	l.term(t)
	require.Equal(t, "ctrl1", l.Leader(), "in the next term")
}

// A standby set a watch of LEADER at each look, every second, and none was ever taken away while the leader lived.
func TestStandbyWatchesTheLeaderOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first := r.controller("ctrl1")
	first.term(t)
	cfg := DefaultControllerConfig()
	cfg.Config, cfg.Name = r.cfg, "ctrl2"
	c, s := NewController(cfg, ControllerDeps{Log: testLog(t), Registerer: prometheus.NewRegistry()}), r.open(r.cfg)
	elected := make(chan error, 1)
	go func() { // owned by the test, which waits for elected
		_, err := c.elect(t.Context(), s)
		elected <- err
	}()
	looks := time.NewTimer(3*pollEvery + pollEvery/2)
	defer looks.Stop()
	select {
	case <-looks.C:
	case err := <-elected:
		require.Fail(t, "a second leader", err)
	}
	s.mu.Lock()
	watches := len(s.watches[watchKey{r.cfg.Cluster.leader(), false}])
	s.mu.Unlock()
	require.Equal(t, 1, watches)
	first.stop()
	require.NoError(t, <-elected, "and it is told")
}

// TestEpochFencesALeaderThatLives: when an operator deletes LEADER, the next term's epoch shuts the last one's writes out, in one session too.
func TestEpochFencesALeaderThatLives(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	l := r.controller("ctrl1")
	term := l.term(t)
	require.NoError(t, r.session().Delete(t.Context(), r.cfg.Cluster.leader(), AnyVersion))
	again := l.term(t)
	require.Equal(t, term.Session(), again.Session())
	require.ErrorIs(t, term.Admin().EnableCluster(t.Context(), false), ErrDeposed)
	require.NoError(t, again.Admin().EnableCluster(t.Context(), false))
	require.Equal(t, again.Guard(), again.Admin().guardOf())
}

func (a *Admin) guardOf() Guard { return *a.guard }

// TestLeadThatFails: a process that can't lead gives others the chance.
func TestLeadThatFails(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	cfg := DefaultControllerConfig()
	cfg.Config, cfg.Name = r.cfg, "sick"
	tries := make(chan struct{}, 100)
	sick := NewController(cfg, ControllerDeps{Log: testLog(t), Registerer: newRegistry(), Lead: func(context.Context, *Term) error {
		tries <- struct{}{}
		return errors.New("no store")
	}})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- sick.Run(ctx) }()
	<-tries
	healthy := r.controller("healthy")
	healthy.term(t)
	cancel()
	require.NoError(t, <-ended)
}

// TestCompressedIdealState is HC24: it is read, and its view is compressed too.
func TestCompressedIdealState(t *testing.T) {
	t.Parallel()
	r, s := newRig(t), newStage()
	r.enter(s, "a_1", nil)
	r.controller("ctrl1").term(t)
	is := NewIdealState("topic", 1, 1)
	is.Record.Simple[keyCompress] = configTrue
	is.Assign("0", "a_1", Online)
	require.NoError(t, r.admin.AddResource(t.Context(), is))
	r.awaitView("topic", "a_1")
	data, _, err := r.session().Get(t.Context(), r.cfg.Cluster.externalView("topic"), nil)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(data), "\x1f\x8b"))
}

// TestSessionSync: a participant's wish that the controller look again is granted and removed.
func TestSessionSync(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := r.puppet("a_1")
	r.controller("ctrl1").term(t)
	sync := &Message{ID: sessionSync, Type: msgSessionChange, Status: msgNew, Source: "a_1", Target: controllerName, TargetSession: anySession}
	require.NoError(t, r.session().Create(t.Context(), r.cfg.Cluster.controllerMessage(sessionSync), encoded(t, sync.record())))
	eventually(t, func() error {
		there, _, err := r.session().Exists(t.Context(), r.cfg.Cluster.controllerMessage(sessionSync), nil)
		if there {
			return errors.New("still there")
		}
		return err
	})
	r.add("topic", "a_1")
	a.awaitQueue(1)
}

// TestNoConfigurationOfAnInstance is HC16: it is assigned partitions all the same.
func TestNoConfigurationOfAnInstance(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := r.puppet("a_1")
	r.controller("ctrl1").term(t)
	require.NoError(t, r.session().Delete(t.Context(), r.cfg.Cluster.configParticipant("a_1"), AnyVersion))
	r.add("topic", "a_1")
	a.awaitQueue(1)
}

func TestControllerConfigNamesAllFaults(t *testing.T) {
	t.Parallel()
	err := ControllerConfig{Debounce: -1, ViewInterval: time.Hour, MaxOutstanding: 1 << 20}.Validate()
	for _, key := range []string{"zookeeper", "cluster", "session_timeout", "controller", "debounce", "view_interval", "max_outstanding", "stale_after"} {
		require.ErrorContains(t, err, key)
	}
}
