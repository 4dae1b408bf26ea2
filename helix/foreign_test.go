package helix

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// oddNames can't be the name of one znode; some of them make a path that ZooKeeper's library refuses.
func oddNames() []string { return []string{"..", ".", "a/b", "a//b", "../x", "a\x01b"} }

// foreignStep is what somebody sends who does not look.
func foreignStep(target, session, resource string) *Message {
	return newTransition(Message{
		Source: "test", Target: target, TargetSession: session, Resource: resource, From: Offline, To: Online, Created: time.Now(),
	}, "0")
}

// A transition of such a resource was carried out; its result could not be written, so the participant left the cluster, joined again, and so on.
func TestMessageWhoseResourceIsNoZnodeNameThrowsNobodyOut(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := r.join("a_1")
	m.bring("topic", Offline, Online, "0")
	session := m.p.Session()
	for _, name := range oddNames() {
		m.post(foreignStep("a_1", anySession, name))
	}
	m.idle()
	m.bring("topic", Offline, Online, "1")
	require.Equal(t, all(2, Online), m.reported("topic"))
	require.Len(t, m.model.transitions(), 2)
	require.Same(t, session, m.p.Session())
}

// When such a message left an instance's queue, the controller looked for what had come of it, and its term ended by the answer.
func TestMessageWhoseResourceIsNoZnodeNameEndsNoTerm(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.puppet("p_1")
	l := r.controller("ctrl1")
	l.term(t)
	for _, name := range oddNames() {
		msg := foreignStep("p_1", p.session.ID(), name)
		require.NoError(t, r.session().Create(t.Context(), r.cfg.Cluster.message("p_1", msg.ID), encoded(t, msg.record())))
	}
	r.add("topic", "p_1")
	for _, m := range p.awaitQueue(len(oddNames()) + 1) {
		if m.Resource == "topic" {
			p.report("topic", map[string]State{"0": Online})
		}
		p.finish(m)
	}
	r.awaitView("topic", "p_1")
	r.assign("topic", "")
	require.Equal(t, Online, p.awaitQueue(1)[0].From)
	require.Empty(t, l.terms, "one term, without interruption")
}

// The controller took "it has children" for gone, and tried and told it again at each look.
func TestStaleMessageWithAChildIsRemoved(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.puppet("p_1")
	l := r.controller("ctrl1", func(c *ControllerConfig) { c.StaleAfter = time.Second })
	l.term(t)
	msg := foreignStep("p_1", "ffff", "topic")
	at := r.cfg.Cluster.message("p_1", msg.ID)
	create := func(ops ...Op) { require.NoError(t, r.session().Multi(t.Context(), ops...)) }
	create(CreateOp(at, encoded(t, msg.record())), CreateOp(at+"/child", nil), CreateOp(at+"/child/child", nil))
	p.awaitQueue(0)
	require.Equal(t, 1.0, l.count(t, "causeway_helix_stale_messages_total"))
	noOp := r.cfg.Cluster.controllerMessage("odd")
	create(CreateOp(noOp, encoded(t, (&Message{ID: "odd", Type: msgNoOp}).record())), CreateOp(noOp+"/child", nil))
	eventually(t, func() error {
		found, _, err := r.session().Exists(t.Context(), noOp, nil)
		if err == nil && found {
			err = fmt.Errorf("%s stays", noOp)
		}
		return err
	})
}

func TestWhatHasForeignChildrenCanBeRemoved(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx, s := t.Context(), r.session()
	is := NewIdealState("topic", 1, 1)
	require.NoError(t, r.admin.AddResource(ctx, is))
	command := r.cfg.Cluster.Property("app", "commands", "t", "0")
	require.NoError(t, s.CreateAll(ctx, command, []byte("a")))
	for _, at := range []string{r.cfg.Cluster.idealState("topic"), r.cfg.Cluster.configResource("topic"), command} {
		require.NoError(t, s.CreateAll(ctx, at+"/child/child", nil))
	}
	require.NoError(t, r.admin.DropResource(ctx, "topic"))
	require.ErrorIs(t, s.DeleteUnchanged(ctx, command, 1), ErrBadVersion)
	require.NoError(t, s.DeleteUnchanged(ctx, command, 0))
	for _, at := range []string{r.cfg.Cluster.idealState("topic"), r.cfg.Cluster.configResource("topic"), command} {
		found, _, err := s.Exists(ctx, at, nil)
		require.NoError(t, err)
		require.False(t, found, at)
	}
}

// A tree that is copied to another ZooKeeper has nodes of sessions that are none: nobody was elected, instances could not join, and others counted as
// alive for ever.
func TestNodesOfNoSessionHoldNobodyUp(t *testing.T) {
	t.Parallel()
	r, s := newRig(t), newStage()
	c := r.cfg.Cluster
	require.NoError(t, r.session().CreateAll(t.Context(), c.leader()+"/child", nil))
	for at, name := range map[string]string{c.leader(): "old", c.liveInstance("a_1"): "a_1", c.liveInstance("ghost"): "ghost"} {
		require.NoError(t, r.session().Put(t.Context(), at, encoded(t, liveRecord(name, "5e"))))
	}
	r.add("topic", "a_1")
	term := r.controller("ctrl1").term(t)
	r.enter(s, "a_1", nil)
	r.awaitView("topic", "a_1")
	for _, i := range term.Instances() {
		require.Equal(t, i.Name == "a_1", i.Live(), i.Name)
	}
}
