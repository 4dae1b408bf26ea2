package faults_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/offsets/bolt"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// pretend changes what is stored of a topic's only partition while the process does not run: a position that lies beyond what was copied is what is
// left of a target that has lost its tail.
func (m *mirrorer) pretend(t *testing.T, topic string, change func(*offsets.Checkpoint)) {
	t.Helper()
	s, err := bolt.Open(m.state())
	require.NoError(t, err)
	defer s.Close()
	key := route.Partition{Topic: topic}
	known, err := s.Load(t.Context(), []route.Partition{key})
	require.NoError(t, err)
	at := known[key]
	change(&at)
	require.NoError(t, s.Save(t.Context(), []offsets.Checkpoint{at}))
}

// ahead moves all that is counted in a checkpoint: so many source offsets, and so many records of them.
func ahead(positions route.Offset, records int32) func(*offsets.Checkpoint) {
	return func(at *offsets.Checkpoint) {
		at.SourceOffset, at.LeaderEpoch = at.SourceOffset+positions, -1
		at.Sequence, at.TargetOffset = offsets.Plus(at.Sequence, records), at.TargetOffset+route.Offset(records)
	}
}

// awaitTold waits for the event of a type about a topic whose message is that.
func (m *mirrorer) awaitTold(t *testing.T, kind, topic, message string) (e happening) {
	t.Helper()
	require.Eventually(t, func() bool {
		var list struct {
			Items []struct {
				happening

				Message string `json:"message"`
			} `json:"items"`
		}
		code, body := get(t, m.api(t)+"/api/v1/events?limit=1000&type="+kind)
		if code != http.StatusOK || json.Unmarshal([]byte(body), &list) != nil {
			return false
		}
		for i := range list.Items {
			if e = list.Items[i].happening; e.Topic == topic && list.Items[i].Message == message {
				return true
			}
		}
		return false
	}, 2*time.Minute, 50*time.Millisecond, "no %s of %s", kind, topic)
	return e
}

// transact writes numbered records in one transaction, which it commits or aborts.
func transact(t *testing.T, k *kafkatest.Cluster, topic string, numbers []int, commit kgo.TransactionEndTry) {
	t.Helper()
	cl := k.Client(t, kgo.DefaultProduceTopic(topic), kgo.TransactionalID(topic))
	require.NoError(t, cl.BeginTransaction())
	for _, n := range numbers {
		require.NoError(t, cl.ProduceSync(t.Context(), kgo.StringRecord(fmt.Sprintf("%012d", n))).FirstErr())
	}
	require.NoError(t, cl.EndTransaction(t.Context(), commit))
}

// TestLostRecordsAreSentAgainByPolicy: what the target has lost is copied again, once, behind what it has, and nothing that it still holds; where the
// source has deleted it meanwhile that is a gap; and where the first lost record can't be told the partition halts.
func TestLostRecordsAreSentAgainByPolicy(t *testing.T) {
	t.Parallel()
	k := kafkatest.Shared(t, kafkatest.Kafka4)
	const tail, holed, purged, anew, unclear = "lost.tail", "lost.holed", "lost.purged", "lost.anew", "lost.unclear"
	const again = "what the target has lost is copied again"
	m := newMirrorer(t, "mirror", between(k.Bootstrap(), k.Bootstrap(), strings.Join([]string{tail, holed, purged, anew, unclear}, ","), "--rename", "{topic}.copy")...)
	m.args = append(m.args, "--config", m.file(t, "route: {on: {target_lost: resend}}\n"))
	for _, topic := range []string{tail, purged, anew, unclear} {
		k.CreateTopic(t, topic, 1, nil)
		load(t, k, topic, 0, 100)
	}
	k.CreateTopic(t, holed, 1, nil)
	transact(t, k, holed, ranges([2]int{0, 50}), kgo.TryCommit)
	m.start(t)
	for _, topic := range []string{tail, holed, purged, anew, unclear} {
		m.caughtUp(t, topic)
	}
	m.stop(t)
	for _, topic := range []string{tail, purged, anew, unclear} {
		load(t, k, topic, 100, 100)
	}
	transact(t, k, holed, ranges([2]int{1000, 1010}), kgo.TryAbort)
	transact(t, k, holed, ranges([2]int{50, 70}), kgo.TryCommit)
	m.pretend(t, tail, ahead(60, 60))
	m.pretend(t, holed, ahead(11+21, 20)) // each transaction ends with a marker
	m.pretend(t, purged, ahead(60, 60))
	m.pretend(t, unclear, ahead(60, 70)) // ten records were there that the source has no more
	k.Remake(t, anew+".copy", 1)
	var before kadm.Offsets
	before.AddOffset(purged, 0, 120, -1)
	_, err := kadm.NewClient(k.Client(t)).DeleteRecords(t.Context(), before)
	require.NoError(t, err)

	m.start(t)
	e := m.awaitTold(t, "target_changed", anew, again)
	require.Equal(t, [2]int64{0, 99}, [2]int64{*e.FirstOffset, *e.LastOffset})
	m.kill(t) // between the decision and what is stored of it, or a little later
	m.start(t)
	for topic, want := range map[string][2]int64{tail: {100, 159}, holed: {62, 82}, purged: {100, 159}} {
		e := m.awaitTold(t, "target_changed", topic, again)
		require.Equal(t, want, [2]int64{*e.FirstOffset, *e.LastOffset}, topic)
	}
	e = m.awaitEvent(t, "source_truncated", purged, 10*time.Second)
	require.Equal(t, [2]int64{100, 119}, [2]int64{*e.FirstOffset, *e.LastOffset})
	for _, topic := range []string{tail, holed, purged, anew} {
		m.caughtUp(t, topic)
	}
	require.Eventually(t, func() bool {
		p := m.places(t, unclear)
		return len(p) == 1 && p[0].State == "halted" && strings.Contains(p[0].Reason, "from which on can't be told")
	}, 20*time.Second, 50*time.Millisecond)
	require.EqualValues(t, 100, recordsOf(t, k, unclear+".copy"))
	m.reset(t, unclear, "100")
	m.caughtUp(t, unclear)
	load(t, k, tail, 200, 10)
	m.caughtUp(t, tail)
	m.stop(t)
	require.Equal(t, ranges([2]int{0, 210}), numbers(t, k, tail+".copy", 210))
	require.Equal(t, ranges([2]int{0, 70}), numbers(t, k, holed+".copy", 70))
	require.Equal(t, ranges([2]int{0, 100}, [2]int{120, 200}), numbers(t, k, purged+".copy", 180))
	require.Equal(t, ranges([2]int{0, 200}), numbers(t, k, anew+".copy", 200))
	require.Equal(t, ranges([2]int{0, 200}), numbers(t, k, unclear+".copy", 200))
}
