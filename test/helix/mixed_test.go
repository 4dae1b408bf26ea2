package helix_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/helix"
	"github.com/causeway-mirror/causeway/test/helix/peers"
)

// TestAllKindsInOneCluster hands partitions from kind to kind, once round, as a site does that replaces one worker after the other: under
// each release's controller, then under ours, which takes over in the middle.
func TestAllKindsInOneCluster(t *testing.T) {
	beside(t, func(l *lab) {
		const partitions, c = 6, "c_3"
		old := l.javaLeads()
		l.leads()
		w := l.worker(a)
		p := peers.Shared(l.T, peers.Helix06).Participant(l.T, l.cluster, b)
		q := peers.Shared(l.T, peers.Helix14).Participant(l.T, l.cluster, c)
		owners := []string{a, b, c}
		assignment := func(round int) string {
			replicas := map[string]map[string]string{}
			for n := range partitions {
				replicas[strconv.Itoa(n)] = map[string]string{owners[(n+round)%len(owners)]: "ONLINE"}
			}
			return written(replicas)
		}
		l.admin.AddResource(topicA, ideal(assignment(0)))
		l.settled(assignment(0))
		l.admin.SetIdealState(topicA, ideal(assignment(1)))
		l.settled(assignment(1))
		old.Stop()
		l.leader(our)
		l.admin.SetIdealState(topicA, ideal(assignment(2)))
		l.settled(assignment(2))
		l.admin.SetIdealState(topicA, ideal(assignment(3)))
		l.settled(assignment(0))

		turn := []string{"OFFLINE-ONLINE", "ONLINE-OFFLINE", "OFFLINE-DROPPED"}
		for n := range partitions {
			name := strconv.Itoa(n)
			for i, got := range [][]string{w.ran(name), ran(p, name), ran(q, name)} {
				want := turn
				if owners[n%len(owners)] == owners[i] { // it comes back to whom it was with at first
					want = slices.Concat(turn, turn[:1])
				}
				require.Equal(l, want, got, "partition %d on %s", n, owners[i])
			}
		}
	})
}

// HP27, with one message a transition.
func TestOurParticipantTakesVeryManyPartitions(t *testing.T) {
	beside(t, func(l *lab) {
		partitions := size(300, 5000)
		l.javaLeads()
		l.worker(a)
		l.admin.AddResource(topicA, ideal(many(partitions, a, "ONLINE")))
		l.settled(many(partitions, a, "ONLINE"))
		l.admin.DropResource(topicA)
		l.settled("")
		require.Empty(l, l.tree.children("INSTANCES", a, "CURRENTSTATES", l.tree.session(a)))
	})
}

// HP24: the name belongs to a live Java participant.
func TestOurParticipantTakesNoLiveName(t *testing.T) {
	beside(t, func(l *lab) {
		l.javaLeads()
		p := l.java.Participant(l.T, l.cluster, a)
		l.admin.AddResource(topicA, ideal("0:a_1=ONLINE"))
		l.settled("0:a_1=ONLINE")
		session := l.tree.session(a)

		cfg := helix.DefaultParticipantConfig()
		cfg.Config, cfg.Instance, cfg.TakeoverGrace = l.config(l.addr, time.Second), a, 100*time.Millisecond
		w := newScript()
		ours := helix.NewParticipant(cfg, helix.ParticipantDeps{Handler: w, Log: hclog.NewNullLogger(), Registerer: prometheus.NewRegistry()})
		var taken *helix.TakenError
		require.ErrorAs(l, ours.Run(l.Context()), &taken)
		require.Equal(l, session, taken.Session)
		require.NotEmpty(l, taken.Process)
		require.Empty(l, w.log())
		require.Equal(l, session, l.tree.session(a))
		l.settled("0:a_1=ONLINE")
		require.Equal(l, []string{"OFFLINE-ONLINE"}, ran(p, "0"))
	})
}

func TestOurSpectatorSeesWhatJavaSays(t *testing.T) {
	beside(t, func(l *lab) {
		l.javaLeads()
		p := l.java.Participant(l.T, l.cluster, a)
		l.java.Participant(l.T, l.cluster, b)
		s := l.open()
		spectator := helix.NewSpectator(s, helix.Cluster(l.cluster), hclog.NewNullLogger())
		ctx, cancel := context.WithCancel(l.Context())
		done := make(chan error, 1)
		go func() { done <- spectator.Run(ctx) }()
		defer func() {
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				require.NoError(l, err)
			}
		}()
		serving := func(partition string) func() []string {
			return func() []string {
				var names []string
				for _, in := range spectator.Serving(topicA, partition) {
					names = append(names, in.Name+" at "+in.Host+":"+in.Port)
				}
				return names
			}
		}
		l.admin.AddResource(topicA, ideal("0:a_1=ONLINE 1:b_2=OFFLINE"))
		wait(l.T, []string{"a_1 at a:1"}, serving("0"))
		require.Empty(l, serving("1")())
		l.admin.SetIdealState(topicA, ideal("0:a_1=ONLINE 1:b_2=ONLINE"))
		wait(l.T, []string{"b_2 at b:2"}, serving("1"))
		p.Stop()
		wait(l.T, nil, serving("0"))
		l.admin.DropResource(topicA)
		wait(l.T, 0, func() int { return len(spectator.Resources()) })
	})
}
