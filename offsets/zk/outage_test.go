package zk

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	zookeeper "github.com/go-zookeeper/zk"
	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/offsets/storetest"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// proxied gives a store that reaches the shared server through a proxy of its own.
func proxied(t *testing.T, place string, timeout time.Duration) (*Store, *kafkatest.Proxy) {
	t.Helper()
	p, err := kafkatest.NewProxy(kafkatest.SharedZooKeeper(t).Addr())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	cfg := config(t, place)
	cfg.Address, cfg.SessionTimeout, cfg.Timeout = p.Addr()+place, leastSession, timeout
	return open(t, cfg), p
}

func requireUnavailable(t *testing.T, err error) {
	t.Helper()
	require.ErrorIs(t, err, offsets.ErrUnavailable)
	require.NotErrorIs(t, err, offsets.ErrConflict)
	require.NotErrorIs(t, err, context.DeadlineExceeded, "only the caller's own deadline is one to it")
	var storage *offsets.StorageError
	require.NotErrorAs(t, err, &storage, "it would stop the process")
}

// eventually waits until the servers's side shows it.
func eventually(t *testing.T, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, 20*time.Second, 5*time.Millisecond)
}

func TestLinkIsCutAndComesBack(t *testing.T) {
	t.Parallel()
	s, p := proxied(t, newPlace(), 20*time.Second)
	c := storetest.Checkpoint("t", 0, 10)
	require.NoError(t, s.Begin(t.Context(), nil, c))
	id := s.session.conn.SessionID()
	for range 3 {
		p.Cut()
		c = advanced(c, 1)
		require.NoError(t, s.Save(t.Context(), []offsets.Checkpoint{c}))
		requireStored(t, s, c)
	}
	require.Equal(t, id, s.session.conn.SessionID(), "the session outlives its link")
}

func TestTroubleIsToldWhileItLasts(t *testing.T) {
	t.Parallel()
	s, p := proxied(t, newPlace(), 200*time.Millisecond)
	parts := []route.Partition{{Topic: "t"}}
	require.NoError(t, s.Trouble())
	p.Refuse()
	eventually(t, func() bool { _, err := s.Load(t.Context(), parts); return err != nil })
	requireUnavailable(t, s.Trouble())
	require.NoError(t, p.Heal())
	eventually(t, func() bool { _, err := s.Load(t.Context(), parts); return err == nil })
	require.NoError(t, s.Trouble())
	p.Refuse()
	eventually(t, func() bool { _, err := s.Load(t.Context(), parts); return err != nil })
	eventually(t, func() bool { return s.Trouble() == nil }) // nobody asks any more
}

// The answer to a write is held back until the write can be seen, then the link is cut: the write must be found to be our own.
func TestOwnWriteWhoseAnswerWasLostIsNoRival(t *testing.T) {
	t.Parallel()
	place := newPlace()
	s, p := proxied(t, place, 20*time.Second)
	o := other(t, place)
	c := storetest.Checkpoint("t", 0, 10)
	lost := func(write func() error, seen func() bool) {
		t.Helper()
		p.HoldAnswers()
		answer := make(chan error, 1)
		go func() { answer <- write() }() // owned by the test, which waits for the answer
		eventually(t, seen)
		p.Cut()
		require.NoError(t, p.Heal())
		require.NoError(t, <-answer)
	}
	require.NoError(t, s.Begin(t.Context(), nil, c))
	for range 3 {
		c = advanced(c, 1)
		lost(func() error { return s.Save(t.Context(), []offsets.Checkpoint{c}) },
			func() bool { return o.get(o.plain("t", 0)) == string(formatPlain(c.SourceOffset)) })
		requireStored(t, s, c)
		require.Equal(t, o.version(o.plain("t", 0)), o.version(o.rest("t", 0)), "it was written once")
	}
	require.Equal(t, int32(3), o.version(o.plain("t", 0)))
}

// One writer alone, its link cut all the time: whatever was lost on the way, nobody else wrote, so nothing may look like a rival's work.
func TestLoneWriterMeetsNoRival(t *testing.T) {
	t.Parallel()
	s, p := proxied(t, newPlace(), time.Minute)
	ctx, stop := context.WithCancel(t.Context())
	var cutter sync.WaitGroup
	defer cutter.Wait()
	defer stop()
	cutter.Go(func() {
		for cuts := 0; ctx.Err() == nil; cuts++ {
			p.Cut()
			select {
			case <-ctx.Done():
			case <-time.After(time.Duration(20+cuts*7%43) * time.Millisecond):
			}
		}
	})
	r := offsets.NoRoute()
	for i := range 6 {
		r.ProducerID = int64(i)
		require.NoError(t, s.SaveRoute(t.Context(), r))
		r.Version++
		c := storetest.Checkpoint("t", int32(i), 10)
		require.NoError(t, s.Begin(t.Context(), nil, c))
		for range 2 {
			c = advanced(c, 1)
			require.NoError(t, s.Save(t.Context(), []offsets.Checkpoint{c}))
		}
		next := c
		next.ProducerEpoch++
		require.NoError(t, s.Begin(t.Context(), &c, next))
		requireStored(t, s, next)
	}
	stop()
	got, err := s.Route(t.Context())
	require.NoError(t, err)
	require.Equal(t, r, got)
}

func TestNoAnswerIsUnavailableAndNothingElse(t *testing.T) {
	t.Parallel()
	const timeout = 300 * time.Millisecond
	s, p := proxied(t, newPlace(), timeout)
	c := storetest.Checkpoint("t", 0, 10)
	eventually(t, func() bool { return s.Begin(t.Context(), nil, c) == nil })
	parts := []route.Partition{c.Partition, {Topic: "never"}}

	for name, fault := range map[string]func(){"silent": p.Blackhole, "refused": p.Refuse} {
		fault()
		began := time.Now()
		requireUnavailable(t, s.Save(t.Context(), []offsets.Checkpoint{advanced(c, 1)}))
		require.Less(t, time.Since(began), timeout+5*time.Second, "%s: the wait is bounded", name)
		requireUnavailable(t, s.Begin(t.Context(), nil, storetest.Checkpoint("t", 1, 0)))
		requireUnavailable(t, s.SaveRoute(t.Context(), offsets.NoRoute()))
		requireUnavailable(t, s.SaveEvent(t.Context(), []byte("{}")))
		found, err := s.Load(t.Context(), parts)
		requireUnavailable(t, err)
		require.Empty(t, found)
		_, err = s.Route(t.Context())
		requireUnavailable(t, err)
		_, err = s.Partitions(t.Context())
		requireUnavailable(t, err)
		_, err = s.Events(t.Context())
		requireUnavailable(t, err)

		require.NoError(t, p.Heal())
		eventually(t, func() bool {
			found, err := s.Load(t.Context(), parts)
			if err != nil {
				requireUnavailable(t, err)
				return false
			}
			require.Len(t, found, 1)
			return true
		})
	}
	eventually(t, func() bool { return s.Save(t.Context(), []offsets.Checkpoint{advanced(c, 5)}) == nil })
	requireStored(t, s, advanced(c, 5))
}

func TestCallerGoesWhileNobodyAnswers(t *testing.T) {
	t.Parallel()
	s, p := proxied(t, newPlace(), time.Minute)
	c := storetest.Checkpoint("t", 0, 10)
	require.NoError(t, s.Begin(t.Context(), nil, c))
	p.Blackhole()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := s.Load(ctx, []route.Partition{c.Partition})
	require.ErrorIs(t, err, context.DeadlineExceeded)

	ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	requireUnavailable(t, s.Save(ctx, []offsets.Checkpoint{advanced(c, 1)})) // it may have been stored
}

func TestSessionExpires(t *testing.T) {
	t.Parallel()
	s, p := proxied(t, newPlace(), 20*time.Second)
	c := storetest.Checkpoint("t", 0, 10)
	require.NoError(t, s.Begin(t.Context(), nil, c))
	id := s.session.conn.SessionID()
	p.Refuse()
	c = advanced(c, 1)
	saved := make(chan error, 1)
	go func() { saved <- s.Save(t.Context(), []offsets.Checkpoint{c}) }() // owned by the test, which waits for it
	z := kafkatest.SharedZooKeeper(t)
	eventually(t, func() bool { return !z.HasSession(t, id) })
	require.NoError(t, p.Heal())
	require.NoError(t, <-saved)
	requireStored(t, s, c)
	require.NotEqual(t, id, s.session.conn.SessionID())
}

func TestZooKeeperIsKilledAndComesBack(t *testing.T) {
	t.Parallel()
	z := kafkatest.StartZooKeeper(t)
	cfg := DefaultConfig()
	cfg.Address, cfg.Group, cfg.Timeout = z.Addr(), group, 30*time.Second
	s := open(t, cfg)
	c := storetest.Checkpoint("t", 0, 10)
	require.NoError(t, s.Begin(t.Context(), nil, c))
	require.NoError(t, z.Kill())
	c = advanced(c, 1)
	saved := make(chan error, 1)
	go func() { saved <- s.Save(t.Context(), []offsets.Checkpoint{c}) }() // owned by the test, which waits for it
	require.NoError(t, z.Start(t.Context()))
	require.NoError(t, <-saved)
	requireStored(t, s, c)
}

func TestZooKeeperIsNotThereAtTheStart(t *testing.T) {
	t.Parallel()
	p, err := kafkatest.NewProxy(kafkatest.SharedZooKeeper(t).Addr())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	p.Refuse()
	place := newPlace()
	cfg := config(t, place)
	cfg.Address, cfg.Timeout = p.Addr()+place, 300*time.Millisecond
	s := open(t, cfg)
	_, err = s.Route(t.Context())
	requireUnavailable(t, err)
	require.NoError(t, p.Heal())
	eventually(t, func() bool { return s.SaveRoute(t.Context(), offsets.NoRoute()) == nil })
}

func TestCloseIsPromptWhateverTheServerDoes(t *testing.T) {
	t.Parallel()
	p, err := kafkatest.NewProxy(kafkatest.SharedZooKeeper(t).Addr())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	place := newPlace()
	cfg := config(t, place)
	cfg.Address, cfg.SessionTimeout, cfg.Timeout = p.Addr()+place, time.Minute, time.Minute
	s := open(t, cfg)
	require.NoError(t, s.SaveRoute(t.Context(), offsets.NoRoute()))
	p.Blackhole()
	p.Cut() // the new link is accepted and silent
	answer := make(chan error, 1)
	go func() { answer <- s.SaveRoute(t.Context(), offsets.NoRoute()) }() // owned by the test, which waits for the answer
	began := time.Now()
	require.NoError(t, s.Close())
	require.Less(t, time.Since(began), 10*time.Second)
	require.ErrorIs(t, <-answer, errClosed)
	require.NoError(t, s.Close())
	_, err = s.Route(t.Context())
	require.ErrorIs(t, err, errClosed)
}

// A server that accepts and is silent is left for another after the session timeout. The library tries them in random order, so several
// stores try.
func TestSilentServerIsLeftForAnother(t *testing.T) {
	t.Parallel()
	good := kafkatest.SharedZooKeeper(t).Addr()
	var silent []string
	for range 2 {
		p, err := kafkatest.NewProxy(good)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, p.Close()) })
		p.Blackhole()
		silent = append(silent, p.Addr())
	}
	place := newPlace()
	cfg := config(t, place)
	cfg.Address, cfg.SessionTimeout, cfg.Timeout = strings.Join(append(silent, good), ",")+place, leastSession, 5*leastSession
	var stores sync.WaitGroup
	var errs [4]error
	for i := range errs {
		s := open(t, cfg)
		stores.Go(func() {
			_, errs[i] = s.Route(t.Context())
		})
	}
	stores.Wait()
	require.NoError(t, errors.Join(errs[:]...))
}

func TestOpenNeedsNoServer(t *testing.T) {
	t.Parallel()
	cfg := DefaultConfig()
	cfg.Address, cfg.Group = "no-such-host.invalid:1", group
	s, err := Open(t.Context(), cfg, hclog.NewNullLogger())
	require.NoError(t, err)
	require.NoError(t, s.Close())
}

// Events, and what is listed, were read one after the other: over a distance never within the time that an operation has.
func TestWhatIsStoredIsListedOverADistance(t *testing.T) {
	t.Parallel()
	place := newPlace()
	s, p := proxied(t, place, DefaultConfig().Timeout)
	const many = 200 // round trips of 100 ms each: twice the timeout
	require.NoError(t, s.SaveEvent(t.Context(), []byte(`{"id":0}`)))
	o := other(t, place)
	for i := 1; i < many; i++ {
		_, err := o.conn.Create(s.at.events()+"/"+eventPrefix, fmt.Appendf(nil, `{"id":%d}`, i), zookeeper.FlagSequence, zookeeper.WorldACL(zookeeper.PermAll))
		require.NoError(t, err)
	}
	cfg := config(t, place)
	cfg.Timeout = time.Minute
	require.NoError(t, open(t, cfg).BeginAll(t.Context(), firstOf(many)))
	p.SetDelay(50 * time.Millisecond) // one way
	found, _, err := s.EventsAfter(t.Context(), "")
	require.NoError(t, err)
	require.Len(t, found, many)
	require.JSONEq(t, `{"id":0}`, string(found[0]), "in order")
	require.JSONEq(t, `{"id":199}`, string(found[many-1]))
	parts, err := s.Partitions(t.Context())
	require.NoError(t, err)
	require.Len(t, parts, many)
}

// firstOf are first checkpoints of so many topics of one partition.
func firstOf(topics int) []offsets.Beginning {
	all := make([]offsets.Beginning, topics)
	for i := range all {
		all[i].Next = storetest.Checkpoint(fmt.Sprintf("topic-%d", i), 0, 1000)
	}
	return all
}
