package peers_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/test/helix/peers"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

const (
	soon  = time.Minute
	often = 50 * time.Millisecond
)

var autoJoin = map[string]string{"allowParticipantAutoJoin": "true"}

// phases is the transitions as "phase partition from-to".
func phases(p *peers.Participant) []string {
	var all []string
	for _, tr := range p.Transitions() {
		all = append(all, tr.Phase+" "+tr.Partition+" "+tr.From+"-"+tr.To)
	}
	return all
}

// eventually waits until the external view is that, and shows the last one if it does not become so.
func eventually(t *testing.T, admin peers.Admin, resource string, want map[string]map[string]string) {
	t.Helper()
	var got map[string]map[string]string
	for end := time.Now().Add(soon); time.Now().Before(end); <-time.After(often) {
		if got = admin.ExternalView(resource).Replicas; reflect.DeepEqual(want, got) {
			return
		}
	}
	require.Equal(t, want, got)
}

// TestReleasesWorkTogether has each release's controller drive a participant of each release through every transition, so that a
// conformance test that fails tells of our side.
func TestReleasesWorkTogether(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, controller, participant string }{
		{"0.6 drives 0.6", peers.Helix06, peers.Helix06},
		{"0.6 drives 1.4", peers.Helix06, peers.Helix14},
		{"1.4 drives 0.6", peers.Helix14, peers.Helix06},
		{"1.4 drives 1.4", peers.Helix14, peers.Helix14},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			controller, participant := peers.Shared(t, tc.controller), peers.Shared(t, tc.participant)
			cluster := "smoke-" + tc.controller + "-" + tc.participant
			admin := controller.Admin(t, cluster)
			admin.AddCluster(autoJoin)
			require.True(t, controller.Controller(t, cluster, "ctrl").Leads())
			a := participant.Participant(t, cluster, "a_1")
			a.Hold("1", "OFFLINE", "ONLINE")
			ideal := peers.Record{
				Simple:   map[string]string{"REPLICAS": "1"},
				Replicas: map[string]map[string]string{"0": {"a_1": "ONLINE"}, "1": {"a_1": "ONLINE"}},
			}
			admin.AddResource("topic", ideal)
			eventually(t, admin, "topic", map[string]map[string]string{"0": {"a_1": "ONLINE"}})
			require.Equal(t, ideal.Replicas, admin.IdealState("topic").Replicas)
			require.Equal(t, "2", admin.IdealState("topic").Simple["NUM_PARTITIONS"])

			admin.Do("enableCluster", "false") // 1.4 would soon drop what is in ERROR
			a.Fail("1", "OFFLINE", "ONLINE")
			require.Eventually(t, func() bool {
				_, err := admin.Try("resetPartition", "a_1", "topic", "1") // refused until it is in ERROR
				return err == nil
			}, soon, often)
			a.Succeed("1", "OFFLINE", "ONLINE")
			admin.Do("enableCluster", "true")
			eventually(t, admin, "topic", map[string]map[string]string{"0": {"a_1": "ONLINE"}, "1": {"a_1": "ONLINE"}})
			_, err := admin.Try("resetPartition", "a_1", "topic", "1")
			require.ErrorContains(t, err, "ERROR", "what Java refuses is told")

			admin.DropResource("topic")
			require.Eventually(t, func() bool { return len(admin.ExternalView("topic").Replicas) == 0 }, soon, often)
			require.Subset(t, phases(a), []string{
				"failed 1 OFFLINE-ONLINE", "end 1 ERROR-OFFLINE", "end 0 OFFLINE-ONLINE", "end 0 ONLINE-OFFLINE", "end 0 OFFLINE-DROPPED", "end 1 OFFLINE-DROPPED",
			})
		})
	}
}

func TestAKilledProcessLeavesAtItsSessionTimeout(t *testing.T) {
	t.Parallel()
	zk := kafkatest.SharedZooKeeper(t)
	doomed := peers.Start(t, peers.Helix06, zk.Addr(), 3*time.Second)
	admin := peers.Shared(t, peers.Helix06).Admin(t, "doomed")
	admin.AddCluster(autoJoin)
	peers.Shared(t, peers.Helix06).Controller(t, "doomed", "ctrl")
	a := doomed.Participant(t, "doomed", "a_1")
	require.Regexp(t, "^[0-9a-f]+$", a.Session())
	admin.AddResource("topic", peers.Record{Replicas: map[string]map[string]string{"0": {"a_1": "ONLINE"}}})
	eventually(t, admin, "topic", map[string]map[string]string{"0": {"a_1": "ONLINE"}})

	require.NoError(t, doomed.Kill())
	_, err := doomed.Ask(t.Context(), "participant.session", "doomed", "a_1")
	require.Error(t, err, "nobody answers any more")
	require.Eventually(t, func() bool { return len(admin.ExternalView("topic").Replicas) == 0 }, soon, often)
}
