package helix_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/helix"
	"github.com/causeway-mirror/causeway/test/helix/peers"
)

const our = "our_1" // our controller

// leads starts a controller of ours in the lab's cluster, which ends by stop or with the test. It does not wait for anything.
func (l *lab) leads() (stop func()) {
	l.Helper()
	cfg := helix.DefaultControllerConfig()
	cfg.Config, cfg.Name = l.config(l.addr, 10*time.Second), our
	require.NoError(l, cfg.Validate())
	c := helix.NewController(cfg, helix.ControllerDeps{Log: hclog.NewNullLogger(), Registerer: prometheus.NewRegistry()})
	ctx, cancel := context.WithCancel(context.WithoutCancel(l.Context()))
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	stopped := false
	stop = func() {
		l.Helper()
		if !stopped {
			stopped = true
			cancel()
			require.NoError(l, <-done)
		}
	}
	l.Cleanup(stop)
	return stop
}

// leader waits until that controller leads.
func (l *lab) leader(name string) {
	l.Helper()
	wait(l.T, name, func() string {
		if r := l.tree.record("CONTROLLER", "LEADER"); r != nil {
			return r.ID
		}
		return ""
	}, "leader")
}

// weLead starts a controller of ours and waits until it leads.
func (l *lab) weLead() (stop func()) {
	l.Helper()
	stop = l.leads()
	l.leader(our)
	return stop
}

// until waits for a line in a Java participant's log.
func (l *lab) until(p *peers.Participant, line string) {
	l.Helper()
	wait(l.T, true, func() bool { return slices.Contains(happened(p), line) }, line)
}

// ran is the transitions of one partition that a Java participant has begun.
func ran(p *peers.Participant, partition string) []string {
	var all []string
	for _, line := range happened(p) {
		if rest, ok := strings.CutPrefix(line, "begin "+partition+" "); ok {
			all = append(all, rest)
		}
	}
	return all
}

// HC1, HC22: the administrator has installed another definition of the state model; ours replaces it, as Java's controllers do.
func TestOurControllerTakesOffice(t *testing.T) {
	beside(t, func(l *lab) {
		l.weLead()
		leader, stat := l.tree.stat("CONTROLLER", "LEADER")
		require.Equal(l, hexID(stat.EphemeralOwner), leader.Simple["SESSION_ID"])
		require.NotEmpty(l, leader.Simple["HELIX_VERSION"])
		require.NotNil(l, leader.List)
		require.NotNil(l, leader.Map)
		wait(l.T, []string{our}, func() []string { return l.tree.record("CONTROLLER", "HISTORY").List[l.cluster] })
		model := newRecord("OnlineOffline")
		model.Simple["INITIAL_STATE"] = "OFFLINE"
		model.List = map[string][]string{
			"STATE_PRIORITY_LIST":           {"ONLINE", "OFFLINE", "DROPPED"},
			"STATE_TRANSITION_PRIORITYLIST": {"OFFLINE-ONLINE", "ONLINE-OFFLINE", "OFFLINE-DROPPED"},
		}
		model.Map = map[string]map[string]string{
			"ONLINE.meta": {"count": "R"}, "OFFLINE.meta": {"count": "-1"}, "DROPPED.meta": {"count": "-1"},
			"ONLINE.next": {"OFFLINE": "OFFLINE", "DROPPED": "OFFLINE"}, "OFFLINE.next": {"ONLINE": "ONLINE", "DROPPED": "DROPPED"},
		}
		wait(l.T, model, func() *znRecord { return l.tree.record("STATEMODELDEFS", "OnlineOffline") })
	})
}

// HC2: Java's controller dies while a transition is under way.
func TestOurControllerSucceedsJavas(t *testing.T) {
	beside(t, func(l *lab) {
		doomed := peers.Start(l.T, l.version, l.addr, 3*time.Second)
		doomed.Controller(l.T, l.cluster, ctrl)
		l.leads()
		p := l.java.Participant(l.T, l.cluster, a)
		p.Hold("0", "OFFLINE", "ONLINE")
		l.admin.AddResource(topicA, ideal("0:a_1=ONLINE 1:a_1=ONLINE"))
		l.states(a, "1=ONLINE")
		l.leader(ctrl)
		pending := l.onlyMessage(a)
		require.NoError(l, doomed.Kill())
		l.leader(our)
		l.admin.SetIdealState(topicA, ideal("0:a_1=ONLINE 1:a_1=ONLINE 2:a_1=ONLINE"))
		l.until(p, "end 2 OFFLINE-ONLINE")
		require.Equal(l, pending, l.onlyMessage(a), "nothing was sent a second time")
		p.Succeed("0", "OFFLINE", "ONLINE")
		l.settled("0:a_1=ONLINE 1:a_1=ONLINE 2:a_1=ONLINE")
		require.Equal(l, []string{"OFFLINE-ONLINE"}, ran(p, "0"))
	})
}

// HC3.
func TestJavasControllerSucceedsOurs(t *testing.T) {
	beside(t, func(l *lab) {
		stop := l.weLead()
		heir := l.javaLeads()
		require.False(l, heir.Leads())
		p := l.java.Participant(l.T, l.cluster, a)
		p.Hold("0", "OFFLINE", "ONLINE")
		l.admin.AddResource(topicA, ideal("0:a_1=ONLINE 1:a_1=ONLINE"))
		l.until(p, "begin 0 OFFLINE-ONLINE")
		l.view("1:a_1=ONLINE")
		stop()
		l.leader(ctrl)
		wait(l.T, true, heir.Leads)
		l.admin.SetIdealState(topicA, ideal("0:a_1=ONLINE 1:a_1=OFFLINE"))
		l.view("1:a_1=OFFLINE")
		p.Succeed("0", "OFFLINE", "ONLINE")
		l.settled("0:a_1=ONLINE 1:a_1=OFFLINE")
		require.Equal(l, []string{"OFFLINE-ONLINE"}, ran(p, "0"))
	})
}

// HC4, for participants of each release: the rule is the controller's.
func TestOurControllerHandsOverInOrder(t *testing.T) {
	beside(t, func(l *lab) {
		l.weLead()
		p, q := l.java.Participant(l.T, l.cluster, a), l.java.Participant(l.T, l.cluster, b)
		l.admin.AddResource(topicA, ideal("0:a_1=ONLINE"))
		l.settled("0:a_1=ONLINE")
		p.Hold("0", "ONLINE", "OFFLINE")
		l.admin.SetIdealState(topicA, ideal("0:b_2=ONLINE 9:b_2=ONLINE"))
		l.until(p, "begin 0 ONLINE-OFFLINE")
		l.until(q, "end 9 OFFLINE-ONLINE")
		l.quiet(b)
		require.Empty(l, ran(q, "0"))
		p.Succeed("0", "ONLINE", "OFFLINE")
		l.settled("0:b_2=ONLINE 9:b_2=ONLINE")
		require.Equal(l, []string{"OFFLINE-ONLINE", "ONLINE-OFFLINE", "OFFLINE-DROPPED"}, ran(p, "0"))
		require.Equal(l, []string{"OFFLINE-ONLINE"}, ran(q, "0"))
	})
}

// HC5, HC6.
func TestOurControllerCountsReplicas(t *testing.T) {
	beside(t, func(l *lab) {
		l.weLead()
		l.java.Participant(l.T, l.cluster, a)
		l.java.Participant(l.T, l.cluster, b)
		l.admin.AddResource(topicA, ideal("REPLICAS=2 0:a_1=ONLINE,b_2=ONLINE"))
		l.settled("0:a_1=ONLINE,b_2=ONLINE")

		l.admin.AddResource("none", ideal("REPLICAS=0 0:a_1=ONLINE"))
		absent := newRecord("absent")
		absent.Simple = map[string]string{"REBALANCE_MODE": "CUSTOMIZED", "STATE_MODEL_DEF_REF": "OnlineOffline", "NUM_PARTITIONS": "2"}
		absent.Map = map[string]map[string]string{"0": {a: "ONLINE", b: "ONLINE"}, "1": {a: "ONLINE"}}
		l.tree.put(absent, "IDEALSTATES", "absent")
		wait(l.T, "0:a_1=ONLINE,b_2=ONLINE 1:a_1=ONLINE", func() string { return written(l.admin.ExternalView("absent").Replicas) })
		l.admin.AddResource("last", ideal("0:a_1=ONLINE")) // everything before has been looked at when this is there
		wait(l.T, "0:a_1=ONLINE", func() string { return written(l.admin.ExternalView("last").Replicas) })
		require.Empty(l, l.tree.states(a, "none"))
	})
}

// HC7, HC8, HC9.
func TestOurControllerLeavesErrorsAlone(t *testing.T) {
	beside(t, func(l *lab) {
		ctx, ours := l.Context(), l.ours()
		l.weLead()
		p := l.java.Participant(l.T, l.cluster, a)
		p.Fail("0", "OFFLINE", "ONLINE")
		l.admin.AddResource(topicA, ideal("0:a_1=ONLINE 1:a_1=ONLINE"))
		l.settled("0:a_1=ERROR 1:a_1=ONLINE")
		const off, on = "0:a_1=ERROR 1:a_1=OFFLINE", "0:a_1=ERROR 1:a_1=ONLINE"
		l.admin.EnableInstance(a, false)
		l.settled(off)
		l.admin.EnableInstance(a, true)
		l.settled(on)
		l.admin.EnablePartition(a, topicA, "1", false)
		l.settled(off)
		l.admin.EnablePartition(a, topicA, "1", true)
		l.settled(on)
		l.admin.EnableResource(topicA, false)
		l.settled(off)
		l.admin.EnableResource(topicA, true)
		l.settled(on)
		require.Equal(l, []string{"OFFLINE-ONLINE"}, ran(p, "0"))

		p.Succeed("0", "OFFLINE", "ONLINE")
		require.NoError(l, ours.ResetPartitions(ctx, a, topicA, "0"))
		l.settled("0:a_1=ONLINE 1:a_1=ONLINE")
		p.Fail("0", "ONLINE", "OFFLINE")
		l.admin.SetIdealState(topicA, ideal("1:a_1=ONLINE"))
		l.settled("1:a_1=ONLINE")
		require.Equal(l, []string{"OFFLINE-ONLINE", "ERROR-OFFLINE", "OFFLINE-ONLINE", "ONLINE-OFFLINE", "ERROR-DROPPED"}, ran(p, "0"))
	})
}

// HC10, HC11, HC12: a participant dies in the middle of a transition and comes back.
func TestJavasParticipantDiesUnderOurController(t *testing.T) {
	beside(t, func(l *lab) {
		l.weLead()
		doomed := peers.Start(l.T, l.version, l.addr, 3*time.Second)
		p := doomed.Participant(l.T, l.cluster, a)
		p.Hold("1", "OFFLINE", "ONLINE")
		l.admin.AddResource(topicA, ideal("0:a_1=ONLINE 1:a_1=ONLINE"))
		l.until(p, "begin 1 OFFLINE-ONLINE")
		l.view("0:a_1=ONLINE")
		before := l.tree.session(a)
		l.states(a, "0=ONLINE")
		pending := l.onlyMessage(a)
		require.NoError(l, doomed.Kill())
		wait(l.T, "", func() string { return l.tree.session(a) })
		l.view("")
		require.Equal(l, []string{before}, l.tree.children("INSTANCES", a, "CURRENTSTATES"), "nothing of it is removed")

		back := l.java.Participant(l.T, l.cluster, a)
		l.settled("0:a_1=ONLINE 1:a_1=ONLINE")
		require.Equal(l, back.Session(), l.tree.session(a))
		require.Equal(l, []string{"OFFLINE-ONLINE"}, ran(back, "0"))
		require.Equal(l, []string{"OFFLINE-ONLINE"}, ran(back, "1"))
		require.NotContains(l, l.tree.children("INSTANCES", a, "MESSAGES"), pending)
	})
}

// HC13, HC14.
func TestOurControllerPausesAndCleansUp(t *testing.T) {
	beside(t, func(l *lab) {
		l.weLead()
		p := l.java.Participant(l.T, l.cluster, a)
		l.admin.AddResource(topicA, ideal("0:a_1=ONLINE"))
		l.settled("0:a_1=ONLINE")
		l.admin.Do("enableCluster", "false")
		l.admin.SetIdealState(topicA, ideal("0:a_1=OFFLINE"))
		q := l.java.Participant(l.T, l.cluster, b) // much that would make it send
		require.Equal(l, []string{"OFFLINE-ONLINE"}, ran(p, "0"))
		l.admin.SetIdealState(topicA, ideal("0:a_1=OFFLINE 1:b_2=ONLINE"))
		l.admin.Do("enableCluster", "true")
		l.settled("0:a_1=OFFLINE 1:b_2=ONLINE")
		require.Equal(l, []string{"OFFLINE-ONLINE", "ONLINE-OFFLINE"}, ran(p, "0"))

		p.Stop()
		q.Stop()
		l.view("")
		l.admin.DropResource(topicA)
		wait(l.T, false, func() bool { return l.tree.exists("EXTERNALVIEW", topicA) })
	})
}

// HC15: batches, but not of DROPPED, which Java's participants mishandle.
func TestOurControllerSendsBatches(t *testing.T) {
	beside(t, func(l *lab) {
		partitions := size(200, 1000)
		l.weLead()
		p := l.java.Participant(l.T, l.cluster, a)
		p.Hold("0", "OFFLINE", "ONLINE")
		l.admin.AddResource(topicA, ideal("BATCH_MESSAGE_MODE=true "+many(partitions, a, "ONLINE")))
		l.until(p, "begin 0 OFFLINE-ONLINE")
		messages := l.tree.children("INSTANCES", a, "MESSAGES")
		require.Len(l, messages, 1)
		require.Len(l, l.tree.record("INSTANCES", a, "MESSAGES", messages[0]).List["PARTITION_NAME"], partitions)
		p.Succeed("0", "OFFLINE", "ONLINE")
		l.settled(many(partitions, a, "ONLINE"))

		session := l.tree.session(a)
		l.admin.DropResource(topicA)
		wait(l.T, false, func() bool {
			return l.tree.exists("INSTANCES", a, "CURRENTSTATES", session, topicA) || l.tree.exists("EXTERNALVIEW", topicA)
		})
		l.quiet(a)
		for n := range partitions {
			require.Equal(l, []string{"OFFLINE-ONLINE", "ONLINE-OFFLINE", "OFFLINE-DROPPED"}, ran(p, strconv.Itoa(n)), "partition %d", n)
		}
	})
}

// HC16, HC17, HC23, HC24, and what a Java administrator may leave about.
func TestOurControllerTakesWhatItFinds(t *testing.T) {
	beside(t, func(l *lab) {
		l.weLead()
		l.java.Participant(l.T, l.cluster, a)
		l.java.Participant(l.T, l.cluster, b)
		l.tree.remove("CONFIGS", "PARTICIPANT", a)
		for _, broken := range [][]string{
			{"IDEALSTATES", "broken"},
			{"LIVEINSTANCES", "broken"},
			{"INSTANCES", a, "MESSAGES", "broken"},
		} {
			l.tree.putBytes([]byte(`{"id":"broken","simpleFields":{"REBALANCE_MODE`), broken...)
		}
		l.admin.AddResource(topicA, ideal("enableCompression=true 0:a_1=ONLINE @src@dst@0:b_2=ONLINE"))
		l.view("0:a_1=ONLINE @src@dst@0:b_2=ONLINE")
		require.Equal(l, "\x1f\x8b", string(l.tree.bytes("IDEALSTATES", topicA)[:2]), "Java has compressed it")
		require.Equal(l, "\x1f\x8b", string(l.tree.bytes("EXTERNALVIEW", topicA)[:2]), "so ours compresses the view")

		l.tree.putBytes([]byte("{"), "INSTANCES", a, "CURRENTSTATES", l.tree.session(a), "broken")
		l.admin.SetIdealState(topicA, ideal("0:b_2=ONLINE @src@dst@0:a_1=ONLINE"))
		l.view("0:b_2=ONLINE @src@dst@0:a_1=ONLINE")
	})
}
