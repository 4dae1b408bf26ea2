package zk

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	zookeeper "github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/offsets/storetest"
	"github.com/causeway-mirror/causeway/route"
)

// The nodes are read by uReplicator's workers and by operators: what this test says of them is a promise.
func TestNodes(t *testing.T) {
	t.Parallel()
	place := newPlace()
	s, o := open(t, config(t, place)), other(t, place)
	c := storetest.Checkpoint("orders", 3, 1200)
	require.NoError(t, s.Begin(t.Context(), nil, c))
	require.NoError(t, s.Begin(t.Context(), nil, storetest.Checkpoint("orders", 0, 5)))
	require.NoError(t, s.SaveRoute(t.Context(), offsets.Route{SourceCluster: "x", ProducerID: 4001}))

	require.Equal(t, "1200", o.get(o.plain("orders", 3)))
	text, err := json.Marshal(c)
	require.NoError(t, err)
	require.JSONEq(t, string(text), o.get(o.rest("orders", 3)))
	require.JSONEq(t, `{"v":1,"source_topic_id":"AQIDAAAAAAAAAAAAAAAAAA","partitions":[0,3]}`, o.get(o.root+"/causeway/orders"))
	require.Contains(t, o.get(o.root+"/causeway"), `"producer_id":4001`)

	c = advanced(c, 1)
	require.NoError(t, s.Save(t.Context(), []offsets.Checkpoint{c}))
	require.Equal(t, "1201", o.get(o.plain("orders", 3)))

	c.SourceTopicID, c.ProducerEpoch = route.TopicID{4}, c.ProducerEpoch+1
	before, _ := loadOne(t, s, "orders", 3)
	require.NoError(t, s.Begin(t.Context(), &before, c))
	require.JSONEq(t, `{"v":1,"source_topic_id":"BAAAAAAAAAAAAAAAAAAAAA","partitions":[0,3]}`, o.get(o.root+"/causeway/orders"))
}

func TestOnlyWhatChangedIsWritten(t *testing.T) {
	t.Parallel()
	place := newPlace()
	s, o := open(t, config(t, place)), other(t, place)
	a, b := storetest.Checkpoint("t", 0, 10), storetest.Checkpoint("t", 1, 10)
	require.NoError(t, s.BeginAll(t.Context(), []offsets.Beginning{{Next: a}, {Next: b}}))
	a = advanced(a, 1)
	b.Clean = true
	require.NoError(t, s.Save(t.Context(), []offsets.Checkpoint{a, b}))
	require.NoError(t, s.Save(t.Context(), []offsets.Checkpoint{a, b}))
	for path, version := range map[string]int32{o.plain("t", 0): 1, o.rest("t", 0): 1, o.plain("t", 1): 0, o.rest("t", 1): 1} {
		require.Equal(t, version, o.version(path), path)
	}
	requireStored(t, s, a)
	requireStored(t, s, b)
}

func TestOneSaveMayHoldAPartitionTwice(t *testing.T) {
	t.Parallel()
	s := open(t, config(t, newPlace()))
	c := storetest.Checkpoint("t", 0, 10)
	require.NoError(t, s.Begin(t.Context(), nil, c))
	var conflict *offsets.ConflictError
	require.ErrorAs(t, s.Save(t.Context(), []offsets.Checkpoint{advanced(c, 2), advanced(c, 1), advanced(c, 3)}), &conflict)
	require.Len(t, conflict.Refused, 1)
	require.Equal(t, advanced(c, 1), conflict.Refused[0].Checkpoint)
	requireStored(t, s, advanced(c, 3))
}

func TestOffsetOfUReplicatorIsFoundWithoutACheckpoint(t *testing.T) {
	t.Parallel()
	place := newPlace()
	s, o := open(t, config(t, place)), other(t, place)
	o.set(o.plain("orders", 3), "1200")
	parts, err := s.Partitions(t.Context())
	require.NoError(t, err)
	require.Equal(t, []route.Partition{{Topic: "orders", Partition: 3}}, parts)

	got, ok := loadOne(t, s, "orders", 3)
	require.True(t, ok)
	require.Equal(t, offsets.Checkpoint{
		Partition: route.Partition{Topic: "orders", Partition: 3}, SourceOffset: 1200, TargetOffset: -1, ProducerID: -1, ProducerEpoch: -1,
		LeaderEpoch: -1, Foreign: true,
	}, got)

	own := storetest.Checkpoint("orders", 3, 1200)
	require.ErrorIs(t, s.Save(t.Context(), []offsets.Checkpoint{own}), offsets.ErrConflict)
	require.ErrorIs(t, s.Begin(t.Context(), nil, own), offsets.ErrConflict, "the caller does not know of it")
	o.set(o.plain("orders", 3), "1300")
	require.ErrorIs(t, s.Begin(t.Context(), &got, own), offsets.ErrConflict, "uReplicator went on")
	got, _ = loadOne(t, s, "orders", 3)
	require.Equal(t, route.Offset(1300), got.SourceOffset)
	own.SourceOffset = 1300
	require.NoError(t, s.Begin(t.Context(), &got, own))
	requireStored(t, s, own)
	require.Equal(t, "1300", o.get(o.plain("orders", 3)))
}

func TestForeignOffsetWins(t *testing.T) {
	t.Parallel()
	place := newPlace()
	s, o := open(t, config(t, place)), other(t, place)
	c := storetest.Checkpoint("orders", 3, 1200)
	require.NoError(t, s.Begin(t.Context(), nil, c))
	o.set(o.plain("orders", 3), "1200") // again what is there: nothing was overridden
	require.NoError(t, s.Save(t.Context(), []offsets.Checkpoint{advanced(c, 1)}))

	for _, offset := range []int{700, 2500} {
		o.set(o.plain("orders", 3), strconv.Itoa(offset))
		var conflict *offsets.ConflictError
		require.ErrorAs(t, s.Save(t.Context(), []offsets.Checkpoint{advanced(c, 2)}), &conflict)
		require.ErrorContains(t, conflict, fmt.Sprintf("source offset %d was stored by another program", offset))
		requireNotSavedOver(t, config(t, place), advanced(c, 1))

		got, ok := loadOne(t, s, "orders", 3)
		require.True(t, ok)
		require.Equal(t, offsets.Checkpoint{
			Partition: c.Partition, SourceOffset: route.Offset(offset), TargetOffset: -1, ProducerID: c.ProducerID, ProducerEpoch: c.ProducerEpoch,
			SourceTopicID: c.SourceTopicID, TargetTopicID: c.TargetTopicID, LeaderEpoch: -1, Foreign: true,
		}, got)

		next := c
		next.SourceOffset, next.Sequence, next.ProducerEpoch, next.Opened = got.SourceOffset, 0, got.ProducerEpoch+1, false
		require.NoError(t, s.Begin(t.Context(), &got, next))
		requireStored(t, s, next)
		require.NoError(t, s.Save(t.Context(), []offsets.Checkpoint{advanced(next, 1)}))
		c = advanced(next, 1)
	}
}

// requireNotSavedOver saves what leaves the offset as it was, from a store that remembers how it was before it was overridden.
func requireNotSavedOver(t *testing.T, cfg Config, before offsets.Checkpoint) {
	t.Helper()
	s := open(t, cfg)
	found, err := s.fetch(t.Context(), []route.Partition{before.Partition})
	require.NoError(t, err)
	e := found[before.Partition]
	e.checkpoint, e.offset, e.plain = &before, before.SourceOffset, e.plain-1
	s.cache.put(map[route.Partition]entry{before.Partition: e})
	clean := before
	clean.Clean = true
	require.ErrorIs(t, s.Save(t.Context(), []offsets.Checkpoint{clean}), offsets.ErrConflict)
}

func TestWhatCannotBeReadIsNamed(t *testing.T) {
	t.Parallel()
	place := newPlace()
	s, o := open(t, config(t, place)), other(t, place)
	good := storetest.Checkpoint("t", 1, 10)
	begin := func() {
		require.NoError(t, s.BeginAll(t.Context(), []offsets.Beginning{{Next: good}, {Next: storetest.Checkpoint("t", 0, 10)}}))
	}
	begin()
	plain, rest, topic := o.plain("t", 0), o.rest("t", 0), o.root+"/causeway/t"
	right := map[string]string{plain: o.get(plain), rest: o.get(rest)}
	tests := []struct {
		name, path, value, reason string
		cause                     error
	}{
		{"no number", plain, "12x", `holds "12x": stored state is corrupt: no decimal offset: invalid syntax`, offsets.ErrCorrupt},
		{"line end", plain, "12\n", `holds "12\n": stored state is corrupt: no decimal offset`, offsets.ErrCorrupt},
		{"too large", plain, "9223372036854775808", "value out of range", offsets.ErrCorrupt},
		{"negative", plain, "-2", "an offset is at least 0", offsets.ErrCorrupt},
		{"unresolved", plain, "-1", "an offset is at least 0", offsets.ErrCorrupt},
		{"empty offset", plain, "", "it is empty", offsets.ErrCorrupt},
		{"removed offset", plain, "remove", "write here the offset to resume from", offsets.ErrMissing},
		{"cut checkpoint", rest, right[rest][:50], "unexpected end of JSON input", offsets.ErrCorrupt},
		{"empty checkpoint", rest, "", "it is empty", offsets.ErrCorrupt},
		{"checkpoint of another", rest, strings.Replace(right[rest], `"partition":0`, `"partition":1`, 1), "it is the checkpoint of t-1", offsets.ErrCorrupt},
		{"newer version", rest, strings.Replace(right[rest], `"v":1`, `"v":9`, 1), "format version is 9", offsets.ErrCorrupt},
	}
	for _, test := range tests {
		if test.value == "remove" {
			o.remove(test.path)
		} else {
			o.set(test.path, test.value)
		}
		found, err := s.Load(t.Context(), []route.Partition{{Topic: "t"}, {Topic: "t", Partition: 1}})
		var fault *NodeError
		require.ErrorAs(t, err, &fault, test.name)
		require.Equal(t, test.path, fault.Path, test.name)
		require.ErrorIs(t, err, test.cause, test.name)
		require.ErrorContains(t, err, test.path, test.name)
		require.ErrorContains(t, err, test.reason, test.name)
		var storage *offsets.StorageError
		require.NotErrorAs(t, err, &storage, "it would stop the process")
		require.Len(t, found, 1, test.name)
		require.True(t, found[good.Partition].Equal(good), "the other partition is not concerned")

		next := advanced(good, 1)
		var conflict *offsets.ConflictError
		require.ErrorAs(t, s.Save(t.Context(), []offsets.Checkpoint{storetest.Checkpoint("t", 0, 11), next}), &conflict, test.name)
		require.Len(t, conflict.Refused, 1, test.name)
		require.Contains(t, conflict.Refused[0].Reason, test.reason, test.name)
		good = next
		require.ErrorIs(t, s.Begin(t.Context(), nil, storetest.Checkpoint("t", 0, 11)), test.cause, test.name)
		o.set(test.path, right[test.path])
		requireStored(t, s, storetest.Checkpoint("t", 0, 10))
	}
	requireStored(t, s, good)

	o.set(topic, `{"v":2}`)
	err := s.Begin(t.Context(), nil, storetest.Checkpoint("t", 7, 1))
	require.ErrorContains(t, err, topic)
	require.ErrorContains(t, err, "format version is 2, this program knows 1 only")
	o.set(o.root+"/causeway", `{"v":`)
	_, err = s.Route(t.Context())
	require.ErrorContains(t, err, "node "+o.root+`/causeway holds "{\"v\":"`)
	require.ErrorIs(t, s.SaveRoute(t.Context(), offsets.NoRoute()), offsets.ErrCorrupt)
}

// An error of the whole store ended the process, and each worker after it that the partition was given to.
func TestNodeWithAForeignACLHaltsItsPartitionAlone(t *testing.T) {
	t.Parallel()
	place := newPlace()
	s, o := open(t, config(t, place)), other(t, place)
	closed, good := storetest.Checkpoint("t", 0, 10), storetest.Checkpoint("t", 1, 10)
	require.NoError(t, s.BeginAll(t.Context(), []offsets.Beginning{{Next: closed}, {Next: good}}))
	for _, path := range []string{o.plain("t", 0), o.rest("t", 0), o.root + "/causeway/t"} {
		allow := func(acl []zookeeper.ACL) {
			_, err := o.conn.SetACL(path, acl, -1)
			require.NoError(t, err)
		}
		for _, all := range []int32{zookeeper.PermAdmin, zookeeper.PermAdmin | zookeeper.PermRead} { // nothing; reading alone
			allow(zookeeper.WorldACL(all))
			closed, good = advanced(closed, 1), advanced(good, 1)
			err := s.Save(t.Context(), []offsets.Checkpoint{closed, good})
			if path != o.root+"/causeway/t" { // which a save does not touch
				var conflict *offsets.ConflictError
				require.ErrorAs(t, err, &conflict, path)
				require.Len(t, conflict.Refused, 1, path)
				require.Contains(t, conflict.Refused[0].Reason, "zk: not authenticated")
				require.Equal(t, closed.Partition, conflict.Refused[0].Checkpoint.Partition)
				closed = advanced(closed, -1)
			}
			found, err := s.Load(t.Context(), []route.Partition{closed.Partition, good.Partition})
			require.True(t, found[good.Partition].Equal(good), path)
			var storage *offsets.StorageError
			require.NotErrorAs(t, err, &storage, "it would stop the process")
			require.NotErrorAs(t, s.Begin(t.Context(), nil, storetest.Checkpoint("t", 2, 1)), &storage)
		}
		allow(zookeeper.WorldACL(zookeeper.PermAll))
		requireStored(t, s, closed)
	}
}

func TestCheckpointThatIsGoneIsNoBeginning(t *testing.T) {
	t.Parallel()
	place := newPlace()
	s, o := open(t, config(t, place)), other(t, place)
	require.NoError(t, s.Begin(t.Context(), nil, storetest.Checkpoint("t", 0, 10)))
	o.remove(o.plain("t", 0))
	o.remove(o.rest("t", 0))

	_, err := s.Load(t.Context(), []route.Partition{{Topic: "t"}})
	require.ErrorIs(t, err, offsets.ErrMissing)
	require.ErrorContains(t, err, o.plain("t", 0))
	require.ErrorIs(t, s.Begin(t.Context(), nil, storetest.Checkpoint("t", 0, 0)), offsets.ErrMissing)
	require.ErrorIs(t, s.Save(t.Context(), []offsets.Checkpoint{storetest.Checkpoint("t", 0, 11)}), offsets.ErrConflict)
	require.NoError(t, s.Begin(t.Context(), nil, storetest.Checkpoint("t", 1, 0)), "another partition may begin")

	o.set(o.plain("t", 0), "10")
	got, ok := loadOne(t, s, "t", 0)
	require.True(t, ok)
	require.True(t, got.Foreign)
	require.NoError(t, s.Begin(t.Context(), &got, storetest.Checkpoint("t", 0, 10)))
}

func TestWhatZooKeeperRefusesStopsTheProcess(t *testing.T) {
	t.Parallel()
	place := newPlace()
	s, o := open(t, config(t, place)), other(t, place)
	require.NoError(t, s.SaveRoute(t.Context(), offsets.Route{SourceCluster: "x", ProducerID: 1}))
	_, err := o.conn.SetACL(o.root+"/causeway", zookeeper.WorldACL(zookeeper.PermAdmin), -1) // the route's: it concerns all partitions
	require.NoError(t, err)
	_, err = s.Route(t.Context())
	require.ErrorContains(t, err, "zk: not authenticated")
	var storage *offsets.StorageError
	require.ErrorAs(t, err, &storage)
	require.NotErrorIs(t, err, offsets.ErrUnavailable)
}

func TestForeignNodesAreLeftOut(t *testing.T) {
	t.Parallel()
	place := newPlace()
	s, o := open(t, config(t, place)), other(t, place)
	for _, path := range []string{o.root + "/offsets/t/x", o.root + "/offsets/t/-1", o.root + "/offsets/t/007", o.root + "/causeway/u/9999999999"} {
		o.set(path, "1")
	}
	require.NoError(t, s.Begin(t.Context(), nil, storetest.Checkpoint("t", 10, 1)))
	require.NoError(t, s.Begin(t.Context(), nil, storetest.Checkpoint("t", 9, 1)))
	parts, err := s.Partitions(t.Context())
	require.NoError(t, err)
	require.Equal(t, []route.Partition{{Topic: "t", Partition: 9}, {Topic: "t", Partition: 10}}, parts)
}

// Each store remembers what it wrote and finds out that the other was there since.
func TestTwoStoresTakeTurns(t *testing.T) {
	t.Parallel()
	cfg := config(t, newPlace())
	stores := []*Store{open(t, cfg), open(t, cfg)}
	var all []offsets.Checkpoint
	for i := range 2 * mostPartitions {
		all = append(all, storetest.Checkpoint("t", int32(i), 0))
	}
	var first []offsets.Beginning
	for _, c := range all {
		first = append(first, offsets.Beginning{Next: c})
	}
	require.NoError(t, stores[0].BeginAll(t.Context(), first))
	for turn := range 4 {
		mine := slices.Clone(all[turn*10:]) // some of what the other wrote, too
		for i := range mine {
			mine[i] = advanced(mine[i], route.Offset(1+turn))
		}
		require.NoError(t, stores[turn%2].Save(t.Context(), mine))
	}
	for i, c := range all {
		requireStored(t, stores[0], advanced(c, route.Offset(1+min(i/10, 3))))
	}
}

// Readers and writers of many checkpoints at once: no reader may ever take a half-read checkpoint for a foreign one, and none goes back.
func TestTwoStoresNeverSeeHalfAWrite(t *testing.T) {
	t.Parallel()
	cfg := config(t, newPlace())
	writers := []*Store{open(t, cfg), open(t, cfg)}
	reader := open(t, cfg)
	const partitions, saves = 10, 60
	var all []offsets.Checkpoint
	var parts []route.Partition
	for i := range partitions {
		all = append(all, storetest.Checkpoint("t", int32(i), 0))
		parts = append(parts, all[i].Partition)
		require.NoError(t, writers[0].Begin(t.Context(), nil, all[i]))
	}
	done := make(chan struct{})
	failed := make([]error, len(writers))
	var wg sync.WaitGroup
	for i, s := range writers {
		wg.Go(func() {
			for n := range saves {
				var some []offsets.Checkpoint
				for _, c := range all {
					some = append(some, advanced(c, route.Offset(2*n+i)))
				}
				if err := s.Save(t.Context(), some); err != nil && !errors.Is(err, offsets.ErrConflict) { // where the other is further
					failed[i] = err
					return
				}
			}
		})
	}
	go func() { // owned by the test, which waits for done
		wg.Wait()
		close(done)
	}()
	last := map[route.Partition]route.Offset{}
	for reads, ended := 0, false; !ended; reads++ {
		select {
		case <-done:
			ended = true
		default:
		}
		found, err := reader.Load(t.Context(), parts)
		require.NoError(t, err)
		require.Len(t, found, partitions)
		for p, c := range found {
			require.False(t, c.Foreign, "%s at %d after %d reads", p, c.SourceOffset, reads)
			require.GreaterOrEqual(t, c.SourceOffset, last[p])
			require.Equal(t, c.SourceOffset+7, c.TargetOffset)
			last[p] = c.SourceOffset
		}
	}
	require.NoError(t, errors.Join(failed...))
	for p, at := range last {
		require.Equal(t, route.Offset(2*saves-1), at, p)
	}
}

// A worker that read the checkpoints of its partitions while another one began theirs of the same topic was told that these were missing: it read
// their nodes before, and the topic's node after they were made.
func TestACheckpointThatIsBegunMeanwhileIsNotMissing(t *testing.T) {
	t.Parallel()
	cfg := config(t, newPlace())
	writer, reader := open(t, cfg), open(t, cfg)
	const topics, partitions = 60, 8
	var parts []route.Partition
	for n := range topics * partitions {
		parts = append(parts, route.Partition{Topic: "t" + strconv.Itoa(n/partitions), Partition: int32(n % partitions)})
	}
	began := make(chan error, 1)
	go func() { // owned by the test, which waits for its answer
		for _, p := range parts {
			if err := writer.Begin(t.Context(), nil, storetest.Checkpoint(p.Topic, p.Partition, 0)); err != nil {
				began <- err
				return
			}
		}
		began <- nil
	}()
	for ended := false; !ended; {
		select {
		case err := <-began:
			require.NoError(t, err)
			ended = true
		default:
		}
		_, err := reader.Load(t.Context(), parts)
		require.NoError(t, err)
	}
}
