package helix_test

import (
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// Numbers like HP4 are those of the list of conformance cases: H for Helix, P for our participant beside a Java controller, C for our
// controller with Java participants, A for the administrators.

// HP1.
func TestOurParticipantJoinsByItself(t *testing.T) {
	beside(t, func(l *lab) {
		l.javaLeads()
		l.admin.AddResource(topicA, ideal("0:a_1=ONLINE 1:a_1=ONLINE"))
		l.worker(a)
		l.view("0:a_1=ONLINE 1:a_1=ONLINE")

		config := l.tree.record("CONFIGS", "PARTICIPANT", a)
		require.Equal(l, a, config.ID)
		require.Equal(l, "a", config.Simple["HELIX_HOST"])
		require.Equal(l, "1", config.Simple["HELIX_PORT"])
		require.Equal(l, "true", config.Simple["HELIX_ENABLED"])
		require.Subset(l, l.tree.children("INSTANCES", a), []string{"CURRENTSTATES", "ERRORS", "HISTORY", "MESSAGES", "STATUSUPDATES"})
		live := l.tree.record("LIVEINSTANCES", a)
		require.Equal(l, a, live.ID)
		require.Equal(l, l.tree.session(a), live.Simple["SESSION_ID"])
		require.Equal(l, "0.6.8", live.Simple["HELIX_VERSION"])
		require.NotNil(l, live.List)
		require.NotNil(l, live.Map)
		require.Contains(l, l.admin.Do("instances"), a)
		require.Equal(l, []string{a, "a", "1", "true", "[]", "{}"}, l.admin.Do("instance", a), "Java reads the configuration")

		state := l.tree.record("INSTANCES", a, "CURRENTSTATES", l.tree.session(a), topicA)
		require.Equal(l, topicA, state.ID)
		require.Equal(l, l.tree.session(a), state.Simple["SESSION_ID"])
		require.Equal(l, "OnlineOffline", state.Simple["STATE_MODEL_DEF"])
	})
}

// HP4, HP5, HP6.
func TestOurParticipantIsTakenOfflineAndDropped(t *testing.T) {
	beside(t, func(l *lab) {
		l.javaLeads()
		w := l.worker(a)
		l.admin.AddResource(topicA, ideal("0:a_1=ONLINE 1:a_1=ONLINE"))
		l.view("0:a_1=ONLINE 1:a_1=ONLINE")

		l.admin.SetIdealState(topicA, ideal("0:a_1=OFFLINE 1:a_1=ONLINE"))
		l.view("0:a_1=OFFLINE 1:a_1=ONLINE")
		l.states(a, "0=OFFLINE 1=ONLINE")

		l.admin.SetIdealState(topicA, ideal("1:a_1=ONLINE"))
		l.view("1:a_1=ONLINE")
		l.states(a, "1=ONLINE")

		session := l.tree.session(a)
		l.admin.DropResource(topicA)
		wait(l.T, false, func() bool {
			return l.tree.exists("INSTANCES", a, "CURRENTSTATES", session, topicA) || l.tree.exists("EXTERNALVIEW", topicA)
		})
		require.False(l, l.tree.exists("CONFIGS", "RESOURCE", topicA))
		l.quiet(a)
		require.Equal(l, []string{"OFFLINE-ONLINE", "ONLINE-OFFLINE", "OFFLINE-DROPPED"}, w.ran("0"))
		require.Equal(l, []string{"OFFLINE-ONLINE", "ONLINE-OFFLINE", "OFFLINE-DROPPED"}, w.ran("1"))
	})
}

// HP7, HP8, HP9.
func TestOurParticipantFailsIsResetAndDropped(t *testing.T) {
	beside(t, func(l *lab) {
		l.javaLeads()
		w := l.worker(a)
		w.hold("0", "OFFLINE", "ONLINE")
		l.admin.AddResource(topicA, ideal("0:a_1=ONLINE 1:a_1=ONLINE"))
		w.until("begin 0 OFFLINE-ONLINE")
		w.until("end 1 OFFLINE-ONLINE")
		l.failAndReset(a, "0", w.fail, w.succeed, func() {
			if l.old() {
				l.admin.SetIdealState(topicA, ideal("0:a_1=ONLINE 1:a_1=ONLINE 2:a_1=ONLINE"))
				l.settled("0:a_1=ERROR 1:a_1=ONLINE 2:a_1=ONLINE")
				l.admin.SetIdealState(topicA, ideal("0:a_1=ONLINE 1:a_1=ONLINE"))
				l.settled("0:a_1=ERROR 1:a_1=ONLINE")
				require.Equal(l, []string{"OFFLINE-ONLINE"}, w.ran("0"), "nothing more was sent for it")
			}
			l.admin.ResetPartition(a, topicA, "0")
		})
		l.settled("0:a_1=ONLINE 1:a_1=ONLINE")
		require.Equal(l, []string{"OFFLINE-ONLINE", "ERROR-OFFLINE", "OFFLINE-ONLINE"}, w.ran("0"))

		w.hold("0", "ONLINE", "OFFLINE")
		l.admin.SetIdealState(topicA, ideal("1:a_1=ONLINE"))
		w.until("begin 0 ONLINE-OFFLINE")
		w.fail("0", "ONLINE", "OFFLINE")
		l.settled("1:a_1=ONLINE")
		require.Equal(l, []string{"OFFLINE-ONLINE", "ERROR-OFFLINE", "OFFLINE-ONLINE", "ONLINE-OFFLINE", "ERROR-DROPPED"}, w.ran("0"))
	})
}

// HP10, HP11, HP12, HP13.
func TestOurParticipantIsDisabledAndEnabled(t *testing.T) {
	beside(t, func(l *lab) {
		l.javaLeads()
		w := l.worker(a)
		l.admin.AddResource(topicA, ideal("0:a_1=ONLINE 1:a_1=ONLINE"))
		l.settled("0:a_1=ONLINE 1:a_1=ONLINE")

		l.admin.EnablePartition(a, topicA, "1", false)
		l.settled("0:a_1=ONLINE 1:a_1=OFFLINE")
		l.admin.EnablePartition(a, topicA, "1", true)
		l.settled("0:a_1=ONLINE 1:a_1=ONLINE")

		l.admin.EnableResource(topicA, false)
		l.settled("0:a_1=OFFLINE 1:a_1=OFFLINE")
		l.admin.EnableResource(topicA, true)
		l.settled("0:a_1=ONLINE 1:a_1=ONLINE")

		l.admin.EnableInstance(a, false)
		l.settled("0:a_1=OFFLINE 1:a_1=OFFLINE")
		l.admin.SetIdealState(topicA, ideal("1:a_1=ONLINE"))
		l.admin.AddResource("other", ideal("0:a_1=ONLINE")) // the controller has looked when its view is there
		wait(l.T, true, func() bool { return l.tree.exists("EXTERNALVIEW", topicA) })
		l.settled("0:a_1=OFFLINE 1:a_1=OFFLINE")
		l.admin.EnableInstance(a, true)
		l.settled("1:a_1=ONLINE")
		require.Contains(l, w.ran("0"), "OFFLINE-DROPPED")

		if !l.old() {
			return // 1.4 does not leave what is in ERROR alone
		}
		w.fail("5", "OFFLINE", "ONLINE")
		l.admin.SetIdealState(topicA, ideal("1:a_1=ONLINE 5:a_1=ONLINE"))
		l.settled("1:a_1=ONLINE 5:a_1=ERROR")
		w.succeed("5", "OFFLINE", "ONLINE")
		l.admin.EnableInstance(a, false)
		l.settled("1:a_1=OFFLINE 5:a_1=ERROR")
		l.admin.EnableInstance(a, true)
		l.settled("1:a_1=ONLINE 5:a_1=ERROR")
	})
}

// HP14: the next owner is a Java participant, then ours again.
func TestAPartitionMovesBetweenOurParticipantAndJavas(t *testing.T) {
	beside(t, func(l *lab) {
		l.javaLeads()
		w := l.worker(a)
		p := l.java.Participant(l.T, l.cluster, b)
		l.admin.AddResource(topicA, ideal("0:a_1=ONLINE"))
		l.settled("0:a_1=ONLINE")

		w.hold("0", "ONLINE", "OFFLINE")
		l.admin.SetIdealState(topicA, ideal("0:b_2=ONLINE"))
		w.until("begin 0 ONLINE-OFFLINE")
		l.admin.AddResource("other", ideal("9:b_2=ONLINE")) // the controller has looked again when this is ONLINE
		wait(l.T, true, func() bool { return slices.Contains(happened(p), "end 9 OFFLINE-ONLINE") })
		if l.old() {
			require.NotContains(l, happened(p), "begin 0 OFFLINE-ONLINE", "the old owner has not ended")
		}
		w.succeed("0", "ONLINE", "OFFLINE")
		l.settled("0:b_2=ONLINE")
		require.Equal(l, []string{"OFFLINE-ONLINE", "ONLINE-OFFLINE", "OFFLINE-DROPPED"}, w.ran("0"))

		p.Hold("0", "ONLINE", "OFFLINE")
		l.admin.SetIdealState(topicA, ideal("0:a_1=ONLINE"))
		wait(l.T, true, func() bool { return slices.Contains(happened(p), "begin 0 ONLINE-OFFLINE") })
		p.Succeed("0", "ONLINE", "OFFLINE")
		l.settled("0:a_1=ONLINE")
	})
}

// HP15.
func TestTheIdealStateChangesBackWhileOursIsAtWork(t *testing.T) {
	beside(t, func(l *lab) {
		l.javaLeads()
		w := l.worker(a)
		l.admin.AddResource(topicA, ideal("0:a_1=ONLINE"))
		l.settled("0:a_1=ONLINE")
		w.hold("0", "ONLINE", "OFFLINE")
		l.admin.SetIdealState(topicA, ideal("0:a_1=OFFLINE"))
		w.until("begin 0 ONLINE-OFFLINE")
		l.admin.SetIdealState(topicA, ideal("0:a_1=ONLINE 1:a_1=ONLINE")) // the controller has looked when 1 is ONLINE
		l.states(a, "0=ONLINE 1=ONLINE")
		require.Len(l, l.tree.children("INSTANCES", a, "MESSAGES"), 1)
		w.succeed("0", "ONLINE", "OFFLINE")
		l.settled("0:a_1=ONLINE 1:a_1=ONLINE")
		require.Equal(l, []string{"OFFLINE-ONLINE", "ONLINE-OFFLINE", "OFFLINE-ONLINE"}, w.ran("0"))
	})
}

// HP16, HP17, HP18: messages that nobody should have sent, while a Java controller leads.
func TestOurParticipantPassesOverWhatMeansNothing(t *testing.T) {
	beside(t, func(l *lab) {
		l.javaLeads()
		w := l.worker(a)
		l.admin.AddResource(topicA, ideal("0:a_1=ONLINE"))
		l.settled("0:a_1=ONLINE")
		before := w.log()

		noOp := newRecord("noop-1")
		noOp.Simple = map[string]string{
			"MSG_ID": "noop-1", "MSG_TYPE": "NO_OP", "MSG_STATE": "new", "SRC_NAME": a, "TGT_NAME": a, "TGT_SESSION_ID": "*", "CREATE_TIMESTAMP": "1",
		}
		l.tree.put(noOp, "INSTANCES", a, "MESSAGES", "noop-1")
		l.tree.put(l.tree.transition("again", a, "0", "OFFLINE", "ONLINE"), "INSTANCES", a, "MESSAGES", "again")
		l.tree.put(l.tree.transition("unknown", a, "7", "ONLINE", "OFFLINE"), "INSTANCES", a, "MESSAGES", "unknown")
		l.quiet(a)
		require.Equal(l, before, w.log(), "no transition was run")
		require.NotContains(l, l.tree.line(a, topicA), "7=ERROR")
		require.Contains(l, l.tree.line(a, topicA), "0=ONLINE")

		l.admin.SetIdealState(topicA, ideal("0:a_1=ONLINE 1:a_1=ONLINE"))
		l.settled("0:a_1=ONLINE 1:a_1=ONLINE")
	})
}

// HP25, HP26.
func TestOurParticipantTakesBatches(t *testing.T) {
	beside(t, func(l *lab) {
		partitions := size(200, 1000)
		l.javaLeads()
		w := l.worker(a)
		w.hold("17", "OFFLINE", "ONLINE")
		l.admin.AddResource(topicA, ideal("BATCH_MESSAGE_MODE=true "+many(partitions, a, "ONLINE")))
		w.until("begin 17 OFFLINE-ONLINE")
		require.Len(l, l.tree.children("INSTANCES", a, "MESSAGES"), 1)
		l.failAndReset(a, "17", w.fail, w.succeed, func() {
			require.Equal(l, "ONLINE", l.tree.states(a, topicA)["18"], "the others of the batch are not touched")
			l.admin.ResetPartition(a, topicA, "17")
		})
		l.settled(many(partitions, a, "ONLINE"))

		session := l.tree.session(a)
		l.admin.DropResource(topicA)
		wait(l.T, false, func() bool { return l.tree.exists("INSTANCES", a, "CURRENTSTATES", session, topicA) })
		l.quiet(a)
		for p := range partitions {
			ran := w.ran(strconv.Itoa(p))
			require.Equal(l, []string{"ONLINE-OFFLINE", "OFFLINE-DROPPED"}, ran[len(ran)-2:], "partition %d", p)
		}
	})
}
