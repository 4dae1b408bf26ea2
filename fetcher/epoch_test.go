package fetcher

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/causeway-mirror/causeway/route"
)

// reign is one leader epoch of a log.
type reign struct {
	epoch int32
	start int64
}

// compareEpochs lets a cluster do what it leaves out: a leader compares the epoch of what was read last with its own log (KIP-595). The log of
// a/0 consists of the reigns and ends at end.
func compareEpochs(kc *kfake.Cluster, end int64, reigns ...reign) {
	id := kc.TopicInfo("a").TopicID
	kc.ControlKey(int16(kmsg.Fetch), func(kr kmsg.Request) (kmsg.Response, error, bool) {
		kc.KeepControl()
		req, ok := kr.(*kmsg.FetchRequest)
		if !ok || len(req.Topics) == 0 {
			return nil, nil, false
		}
		p := &req.Topics[0].Partitions[0]
		last, ends := reigns[len(reigns)-1], end
		for i := len(reigns) - 1; i >= 0 && reigns[i].epoch > p.LastFetchedEpoch; i-- {
			ends = reigns[i].start
			if last = (reign{epoch: p.LastFetchedEpoch}); i > 0 {
				last = reigns[i-1]
			}
		}
		unknown := p.LastFetchedEpoch > reigns[len(reigns)-1].epoch
		if p.LastFetchedEpoch < 0 || !unknown && last.epoch == p.LastFetchedEpoch && ends >= p.FetchOffset {
			return nil, nil, false
		}
		resp := corruptAnswer(req, nil)
		rt := &resp.Topics[0]
		rt.TopicID, resp.SessionID = id, req.SessionID
		if unknown {
			rt.Partitions[0].ErrorCode = kerr.OffsetOutOfRange.Code
			return resp, nil, true
		}
		rt.Partitions[0].DivergingEpoch.Epoch, rt.Partitions[0].DivergingEpoch.EndOffset = last.epoch, ends
		return resp, nil, true
	})
}

// laneAt is a lane that begins at a checkpoint.
func laneAt(at route.Position) *fakeLane {
	l := newLane(at.Offset)
	l.epoch = at.LeaderEpoch
	return l
}

// The checkpoint lies at 8, in epoch 0. While nobody fetched, an unclean election cut the source to 6 records, and it has grown to 12 since.
func TestLogThatWasReplacedWhileNobodyFetchedIsTold(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]kfake.Opt{
		"leader compares":   nil,
		"leader is asked":   {kfake.MaxVersions(kversion.V2_6_0())},
		"without a session": {kfake.BrokerConfigs(map[string]string{"max.incremental.fetch.session.cache.slots": "0"})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kc := newKfake(t, append(opts, kfake.NumBrokers(2), kfake.SeedTopics(1, "a"))...)
			r := newRig(t, kc, fast(), 64<<20)
			r.replaced(kc)
			if name != "leader is asked" {
				compareEpochs(kc, 12, reign{0, 0}, reign{1, 6})
			}
			l := r.add("a", 0, laneAt(route.Position{Offset: 8, LeaderEpoch: 0}))
			for range 2 { // also when it is tried again
				eventually(t, func() bool { return l.fault() != nil || l.count() > 0 }, "the lane hears something")
				require.Zero(t, l.count(), "it went on in another log, and nobody was told of the records 6 and 7")
				var e *DivergedError
				require.ErrorAs(t, l.fault(), &e)
				require.Equal(t, &DivergedError{Epoch: 0, End: 6}, e)
				require.Equal(t, route.SourceChanged, l.fault().Class)
				l.with(func() { l.faults = nil })
				r.wake("a", 0)
			}
			eventually(t, func() bool { return l.fault() != nil }, "and again")
		})
	}
}

// replaced writes 6 records in epoch 0 and 6 more in epoch 1.
func (r *rig) replaced(kc *kfake.Cluster) {
	r.t.Helper()
	r.produce("a", 0, 0, 6)
	require.NoError(r.t, kc.MoveTopicPartition("a", 0, 1-kc.LeaderFor("a", 0)))
	r.cl = nil // it would look for the leader for seconds
	r.produce("a", 0, 6, 6)
}

func TestLogThatGoesOnInAnotherEpochIsRead(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]route.Position{
		"from the end of an epoch":      {Offset: 6, LeaderEpoch: 0},
		"from the middle of an epoch":   {Offset: 4, LeaderEpoch: 0},
		"from within the newest":        {Offset: 8, LeaderEpoch: 1},
		"of which the epoch is unknown": {Offset: 8, LeaderEpoch: -1},
		"from the start":                {Offset: 0, LeaderEpoch: 5},
		"whose epochs began anew":       {Offset: 8, LeaderEpoch: 5},
	} {
		for version, opts := range map[string][]kfake.Opt{"leader compares": nil, "leader is asked": {kfake.MaxVersions(kversion.V2_6_0())}} {
			t.Run(name+", "+version, func(t *testing.T) {
				t.Parallel()
				kc := newKfake(t, append(opts, kfake.NumBrokers(2), kfake.SeedTopics(1, "a"))...)
				r := newRig(t, kc, fast(), 64<<20)
				r.replaced(kc)
				if opts == nil {
					compareEpochs(kc, 12, reign{0, 0}, reign{1, 6})
				}
				l := r.add("a", 0, laneAt(at))
				l.requireValues(t, values(int(at.Offset), 12-int(at.Offset)))
				require.Empty(t, l.faults)
				require.Equal(t, int32(1), l.epoch)
			})
		}
	}
}

// A replica that was made from a compacted log has seen nothing of an epoch whose records were all gone by then.
func TestEpochThatALeaderHasNotSeenIsNoOtherLog(t *testing.T) {
	t.Parallel()
	kc := newKfake(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "a"))
	r := newRig(t, kc, fast(), 64<<20)
	r.produce("a", 0, 0, 12)
	compareEpochs(kc, 12, reign{0, 0}, reign{4, 12})
	l := r.add("a", 0, laneAt(route.Position{Offset: 8, LeaderEpoch: 3}))
	l.requireValues(t, values(8, 4))
	require.Empty(t, l.faults)
}

// A replica that lags ends before the position, and says of it what a leader says of a log that was replaced.
func TestReplicaIsNotBelievedThatTheLogIsAnother(t *testing.T) {
	t.Parallel()
	kc := newKfake(t, kfake.NumBrokers(2), kfake.SeedTopics(1, "a"))
	require.NoError(t, kc.MoveTopicPartition("a", 0, 0))
	kc.SetFollowers("a", 0, []int32{1})
	id := kc.TopicInfo("a").TopicID
	var sent, denied atomic.Bool
	kc.ControlKey(int16(kmsg.Fetch), func(kr kmsg.Request) (kmsg.Response, error, bool) {
		kc.KeepControl()
		req, ok := kr.(*kmsg.FetchRequest)
		if !ok || len(req.Topics) == 0 || kc.CurrentNode() == 0 && sent.Load() {
			return nil, nil, false
		}
		resp := corruptAnswer(req, nil)
		resp.SessionID = req.SessionID
		rt := &resp.Topics[0]
		rt.TopicID = id
		if kc.CurrentNode() == 0 {
			sent.Store(true)
			rt.Partitions[0].PreferredReadReplica = 1
		} else {
			denied.Store(true)
			rt.Partitions[0].DivergingEpoch.Epoch, rt.Partitions[0].DivergingEpoch.EndOffset = 0, 3
		}
		return resp, nil, true
	})
	cfg := fast()
	cfg.Rack = "here"
	r := newRig(t, kc, cfg, 64<<20)
	r.produce("a", 0, 0, 6)
	l := r.add("a", 0, laneAt(route.Position{Offset: 4, LeaderEpoch: 0}))
	l.requireValues(t, values(4, 2))
	require.True(t, denied.Load(), "the replica was never asked")
	require.Empty(t, l.faults)
}
