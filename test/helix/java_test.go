package helix_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/test/helix/peers"
)

// TestReleasesWorkTogether has each release's controller drive a participant of each release through every transition, without anything of
// ours: so that another test that fails tells of our side.
func TestReleasesWorkTogether(t *testing.T) {
	beside(t, func(l *lab) {
		require.True(l, l.javaLeads().Leads())
		p := peers.Shared(l.T, peers.Helix06).Participant(l.T, l.cluster, a)
		q := peers.Shared(l.T, peers.Helix14).Participant(l.T, l.cluster, b)
		require.Equal(l, l.tree.session(a), p.Session())
		require.Equal(l, l.tree.session(b), q.Session())
		p.Hold("1", "OFFLINE", "ONLINE")
		q.Hold("3", "OFFLINE", "ONLINE")
		l.admin.AddResource(topicA, ideal("0:a_1=ONLINE 1:a_1=ONLINE 2:b_2=ONLINE 3:b_2=ONLINE"))
		l.view("0:a_1=ONLINE 2:b_2=ONLINE")
		read := l.admin.IdealState(topicA)
		require.Equal(l, "0:a_1=ONLINE 1:a_1=ONLINE 2:b_2=ONLINE 3:b_2=ONLINE", written(read.Replicas))
		require.Equal(l, "4", read.Simple["NUM_PARTITIONS"])

		l.failAndReset(a, "1", p.Fail, p.Succeed, func() { l.admin.ResetPartition(a, topicA, "1") })
		l.failAndReset(b, "3", q.Fail, q.Succeed, func() { l.admin.ResetPartition(b, topicA, "3") })
		l.settled("0:a_1=ONLINE 1:a_1=ONLINE 2:b_2=ONLINE 3:b_2=ONLINE")
		_, err := l.admin.Try("resetPartition", a, topicA, "1")
		require.ErrorContains(l, err, "ERROR", "what Java refuses is told")

		l.admin.DropResource(topicA)
		l.settled("")
		require.Equal(l, []string{"OFFLINE-ONLINE", "ERROR-OFFLINE", "OFFLINE-ONLINE", "ONLINE-OFFLINE", "OFFLINE-DROPPED"}, ran(p, "1"))
		require.Equal(l, []string{"OFFLINE-ONLINE", "ERROR-OFFLINE", "OFFLINE-ONLINE", "ONLINE-OFFLINE", "OFFLINE-DROPPED"}, ran(q, "3"))
	})
}
