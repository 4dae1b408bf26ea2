package helix_test

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/internal/testkit"
	"github.com/causeway-mirror/causeway/test/helix/peers"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

const (
	soon  = 2 * time.Minute // machines that run tests are busy
	often = 20 * time.Millisecond

	topicA = "topicA"
	ctrl   = "ctrl_1"
	a, b   = "a_1", "b_2" // instances: host and port
)

// releases are the Helix releases that every test is run beside.
var releases = []string{peers.Helix06, peers.Helix14}

// lab is one cluster that Java has made, of one test beside one release.
type lab struct {
	*testing.T

	version string
	cluster string
	addr    string // of ZooKeeper
	java    *peers.Peer
	admin   peers.Admin
	tree    *tree
}

// beside runs a test in a new cluster beside each release.
func beside(t *testing.T, test func(l *lab)) {
	t.Helper()
	t.Parallel()
	for _, version := range releases {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, version)
			l.admin.AddCluster(map[string]string{"allowParticipantAutoJoin": "true"})
			test(l)
		})
	}
}

// newLab is a lab whose cluster does not exist yet.
func newLab(t *testing.T, version string) *lab {
	t.Helper()
	l := &lab{T: t, version: version, cluster: clusterOf(t), java: peers.Shared(t, version)}
	l.addr = kafkatest.SharedZooKeeper(t).Addr()
	l.admin = l.java.Admin(t, l.cluster)
	l.tree = openTree(t, l.addr, l.cluster)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(l.tree.dump())
		}
	})
	return l
}

// clusterOf is a name that a test uses for its cluster, another one each time it is run.
func clusterOf(t *testing.T) string {
	t.Helper()
	return strings.ReplaceAll(t.Name(), "/", "-") + "-" + strconv.FormatInt(time.Now().UnixNano(), 36)
}

// old says whether the peer is of the line that uReplicator runs.
func (l *lab) old() bool { return l.version == peers.Helix06 }

// javaLeads starts a Java controller.
func (l *lab) javaLeads() *peers.Controller {
	l.Helper()
	return l.java.Controller(l.T, l.cluster, ctrl)
}

// ideal is an ideal state, written like "0:a_1=ONLINE 1:a_1=OFFLINE,b_2=ONLINE 2:", with simple fields like "REPLICAS=1" among them.
func ideal(text string) peers.Record {
	r := peers.Record{Simple: map[string]string{"REPLICAS": "1"}, Replicas: map[string]map[string]string{}}
	for field := range strings.FieldsSeq(text) {
		partition, replicas, ok := strings.Cut(field, ":")
		if !ok {
			key, value, _ := strings.Cut(field, "=")
			r.Simple[key] = value
			continue
		}
		r.Replicas[partition] = map[string]string{}
		for replica := range strings.SplitSeq(replicas, ",") {
			if instance, state, ok := strings.Cut(replica, "="); ok {
				r.Replicas[partition][instance] = state
			}
		}
	}
	return r
}

// written is the inverse of ideal for replicas alone.
func written(replicas map[string]map[string]string) string {
	var fields []string
	for _, partition := range slices.Sorted(maps.Keys(replicas)) {
		var states []string
		for _, instance := range slices.Sorted(maps.Keys(replicas[partition])) {
			states = append(states, instance+"="+replicas[partition][instance])
		}
		fields = append(fields, partition+":"+strings.Join(states, ","))
	}
	return strings.Join(fields, " ")
}

// many is n partitions in one state on one instance.
func many(n int, instance, state string) string {
	replicas := map[string]map[string]string{}
	for p := range n {
		replicas[strconv.Itoa(p)] = map[string]string{instance: state}
	}
	return written(replicas)
}

// size is how many partitions a test takes: the second number at full length.
func size(short, long int) int {
	if testkit.Long() {
		return long
	}
	return short
}

// wait waits until got gives want, and fails with what it gave last.
func wait[T any](t *testing.T, want T, got func() T, about ...any) {
	t.Helper()
	tick := time.NewTicker(often)
	defer tick.Stop()
	for deadline := time.Now().Add(soon); ; <-tick.C {
		last := got()
		if equal(want, last) {
			return
		}
		if time.Now().After(deadline) {
			require.Equal(t, want, last, about...)
		}
	}
}

// view waits until topicA's external view, as Java reads it, is as written.
func (l *lab) view(want string) {
	l.Helper()
	wait(l.T, want, func() string { return written(l.admin.ExternalView(topicA).Replicas) }, "external view")
}

// states waits until the current states of topicA on an instance's live session are as written, like "0=ONLINE 1=ERROR"; "" if there are
// none.
func (l *lab) states(instance, want string) {
	l.Helper()
	wait(l.T, want, func() string { return l.tree.line(instance, topicA) }, "current states of "+instance)
}

// onlyMessage waits until one message is left for an instance, and returns its name.
func (l *lab) onlyMessage(instance string) string {
	l.Helper()
	var messages []string
	wait(l.T, 1, func() int {
		messages = l.tree.children("INSTANCES", instance, "MESSAGES")
		return len(messages)
	}, "messages of "+instance)
	return messages[0]
}

// quiet waits until no message is left for an instance.
func (l *lab) quiet(instance string) {
	l.Helper()
	wait(l.T, nil, func() []string { return l.tree.children("INSTANCES", instance, "MESSAGES") }, "messages of "+instance)
}

// settled waits until nothing is left to do for topicA: no message for any instance, current states of live instances as written, and so
// the external view. They are read in the order in which they are changed.
func (l *lab) settled(want string) {
	l.Helper()
	wait(l.T, [3]string{"", want, want}, func() [3]string {
		var messages []string
		for _, instance := range l.tree.children("INSTANCES") {
			messages = append(messages, l.tree.children("INSTANCES", instance, "MESSAGES")...)
		}
		replicas := map[string]map[string]string{}
		for _, instance := range l.tree.children("LIVEINSTANCES") {
			for partition, state := range l.tree.states(instance, topicA) {
				if replicas[partition] == nil {
					replicas[partition] = map[string]string{}
				}
				replicas[partition][instance] = state
			}
		}
		return [3]string{strings.Join(messages, " "), written(replicas), written(l.admin.ExternalView(topicA).Replicas)}
	}, "messages, current states, external view")
}

// failAndReset lets the transition to ONLINE of one of topicA's partitions that is held on an instance fail, and then resets it.
//
// Release 1.4 soon drops what is in ERROR though the ideal state wants it, also from its own participants, so it is paused meanwhile.
func (l *lab) failAndReset(instance, partition string, fail, succeed func(partition, from, to string), reset func()) {
	l.Helper()
	if !l.old() {
		l.admin.Do("enableCluster", "false")
	}
	fail(partition, "OFFLINE", "ONLINE")
	wait(l.T, "ERROR", func() string { return l.tree.states(instance, topicA)[partition] }, "state of "+partition)
	l.quiet(instance)
	if l.old() {
		wait(l.T, "ERROR", func() string { return l.admin.ExternalView(topicA).Replicas[partition][instance] }, "view of "+partition)
	}
	succeed(partition, "OFFLINE", "ONLINE")
	reset()
	if !l.old() {
		wait(l.T, "OFFLINE", func() string { return l.tree.states(instance, topicA)[partition] }, "state of "+partition)
		l.admin.Do("enableCluster", "true")
	}
}
