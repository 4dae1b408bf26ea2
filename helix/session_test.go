package helix

import (
	"context"
	"errors"
	"io"
	"net"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSessionReadsAndWritesBelowItsChroot(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	cfg := r.cfg
	cfg.ZooKeeper += "/chroot-" + string(cfg.Cluster) + "/deep"
	s := r.open(cfg)
	ctx := t.Context()
	require.NoError(t, s.CreateAll(ctx, "/a/b/c", []byte("x")), "with everything above, the chroot too")
	require.ErrorIs(t, s.CreateAll(ctx, "/a/b/c", nil), ErrExists)
	data, _, err := r.session().Get(ctx, "/chroot-"+string(cfg.Cluster)+"/deep/a/b/c", nil)
	require.NoError(t, err)
	require.Equal(t, "x", string(data))

	events := make(chan Event, 4)
	_, stat, err := s.Get(ctx, "/a/b/c", func(e Event) { events <- e })
	require.NoError(t, err)
	_, err = s.Children(ctx, "/a/b", func(e Event) { events <- e })
	require.NoError(t, err)
	_, err = s.Set(ctx, "/a/b/c", []byte("y"), stat.Version+1)
	require.ErrorIs(t, err, ErrBadVersion)
	_, err = s.Set(ctx, "/a/b/c", []byte("y"), stat.Version)
	require.NoError(t, err)
	require.Equal(t, Event{NodeChanged, "/a/b/c"}, <-events)
	require.ErrorIs(t, s.Delete(ctx, "/a/b", AnyVersion), ErrNotEmpty)
	require.NoError(t, s.DeleteTree(ctx, "/a"))
	require.Equal(t, Event{ChildrenChanged, "/a/b"}, <-events)
	_, _, err = s.Get(ctx, "/a", nil)
	require.ErrorIs(t, err, ErrNotFound)
	require.Empty(t, s.watches)
}

func TestSessionTransactionNamesWhatFailed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s, ctx, root := r.session(), t.Context(), r.cfg.Cluster.Root()
	err := s.Multi(ctx, CreateOp(root+"/a", nil), DeleteOp(root+"/absent", AnyVersion), CreateOp(root+"/b", nil))
	var failed *MultiError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, 1, failed.Index)
	require.ErrorIs(t, err, ErrNotFound)
	require.EqualError(t, err, "transact "+root+"/absent: operation 1 of a transaction: znode does not exist")
	found, _, err := s.Exists(ctx, root+"/a", nil)
	require.NoError(t, err)
	require.False(t, found)
	require.ErrorIs(t, s.Create(ctx, root+"/large", make([]byte, 1<<20)), ErrTooLarge)
	require.NoError(t, s.Multi(ctx, CreateEphemeralOp(root+"/e", nil), CheckOp(root, 0)))
	_, stat, err := s.Exists(ctx, root+"/e", nil)
	require.NoError(t, err)
	require.Equal(t, s.ID(), stat.Owner)
}

func TestSessionOutlivesShortCuts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.open(r.through())
	ctx, root := t.Context(), r.cfg.Cluster.Root()
	require.NoError(t, s.CreateEphemeral(ctx, root+"/e", nil))
	events := make(chan Event, 1)
	_, err := s.Children(ctx, root, func(e Event) { events <- e })
	require.NoError(t, err)
	for range 3 {
		r.proxy.Cut()
		_, stat, err := s.Get(ctx, root+"/e", nil) // reads are repeated
		require.NoError(t, err)
		require.Equal(t, s.ID(), stat.Owner)
	}
	require.NoError(t, r.session().Create(ctx, root+"/new", nil))
	require.Equal(t, Event{ChildrenChanged, root}, <-events, "the watch goes along")
	require.NoError(t, s.Err())
	eventually(t, func() error {
		if s.Silence() > s.Timeout()/3 {
			return errors.New("still silent")
		}
		return nil
	})
}

// The library has a new connection's server set the watches again for what has changed since the newest answer. Answers to requests that had
// waited for the connection moved that point on meanwhile, and what had changed before was never told.
func TestNoChangeBetweenTwoConnectionsGoesUntold(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	cfg := r.through()
	cfg.SessionTimeout = 20 * time.Second
	s := r.open(cfg)
	node := r.cfg.Cluster.Property("node")
	require.NoError(t, r.session().CreateAll(t.Context(), node+"/child", nil))
	for round := range 3 {
		var data, children atomic.Bool
		_, _, err := s.Get(t.Context(), node, func(Event) { data.Store(true) })
		require.NoError(t, err)
		_, err = s.Children(t.Context(), node, func(Event) { children.Store(true) })
		require.NoError(t, err)
		r.proxy.Refuse()
		_, err = r.session().Set(t.Context(), node, []byte{byte(round)}, AnyVersion)
		require.NoError(t, err)
		require.NoError(t, r.session().Create(t.Context(), node+"/"+strconv.Itoa(round), nil))
		var waiting sync.WaitGroup
		var early atomic.Int32
		for range 32 {
			waiting.Go(func() {
				_, _, err := s.Exists(t.Context(), node+"/child", nil)
				if err != nil || !data.Load() || !children.Load() {
					early.Add(1)
				}
			})
		}
		require.NoError(t, r.proxy.Heal())
		waiting.Wait()
		require.Zero(t, early.Load(), "answers before the notices of what had changed by then")
	}
}

// Who watches and hears of each new connection watches anew. What he watched with before must not stay with the library.
func TestWatchesDoNotPileUpOverConnections(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.open(r.through())
	const rounds = 5
	for round := range rounds {
		told := make(chan struct{})
		_, _, err := s.Get(t.Context(), r.cfg.Cluster.configCluster(), func(Event) { close(told) })
		require.NoError(t, err)
		if round < rounds-1 {
			r.proxy.Cut()
			await(t, "the notice of a new connection", told)
		}
	}
	held := 0
	for watchers := reflect.ValueOf(s.conn).Elem().FieldByName("watchers").MapRange(); watchers.Next(); {
		held += watchers.Value().Len()
	}
	require.Equal(t, 1, held)
}

func TestSessionExpiresAndSendsNothingAfterwards(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	cfg := r.through()
	cfg.ZooKeeper += strings.Repeat(","+cfg.ZooKeeper, 7) // so that the library never thinks that it has tried all and drops what waits
	s := r.open(cfg)
	require.Equal(t, 2*time.Second, s.Timeout())
	ctx, root := t.Context(), r.cfg.Cluster.Root()
	gone := make(chan struct{})
	require.NoError(t, s.CreateEphemeral(ctx, root+"/e", nil))
	_, _, err := r.session().Get(ctx, root+"/e", func(Event) { close(gone) })
	require.NoError(t, err)
	r.proxy.Blackhole()
	eventually(t, func() error {
		if s.Connected() {
			return errors.New("connected")
		}
		return nil
	})
	late := make(chan error, 40)
	for range cap(late) { // more than the library's queue holds; they wait for a connection
		go func() { late <- s.Create(ctx, root+"/late", nil) }()
	}
	await(t, "the end of the ephemeral node", gone)
	require.Greater(t, s.Silence(), s.SilenceLimit(), "known before it was forgotten")
	require.NoError(t, s.Err(), "nobody could tell us")
	require.NoError(t, r.proxy.Heal())
	await(t, "the end of the session", s.Done())
	require.ErrorIs(t, s.Err(), ErrExpired)
	for range cap(late) {
		require.Error(t, <-late)
	}
	require.ErrorIs(t, s.Create(ctx, root+"/late", nil), ErrExpired)
	s.Close()
	found, _, err := r.session().Exists(ctx, root+"/late", nil)
	require.NoError(t, err)
	require.False(t, found, "written in another session's name")
}

func TestSessionSilenceIsNeverTooShort(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.open(r.through())
	const oneWay = 150 * time.Millisecond
	r.proxy.SetDelay(oneWay)
	_, err := s.Children(t.Context(), "/", nil)
	require.NoError(t, err)
	for range 10 { // whatever was answered last was sent a round trip ago
		require.GreaterOrEqual(t, s.Silence(), 2*oneWay)
		_, err := s.Children(t.Context(), "/", nil)
		require.NoError(t, err)
	}
	r.proxy.SetDelay(0)
	r.proxy.HoldAnswers()
	held := time.Now()
	eventually(t, func() error {
		if s.Silence() < s.SilenceLimit() {
			require.NoError(t, s.Err())
			return errors.New("not silent yet")
		}
		return nil
	})
	require.Less(t, time.Since(held), s.SilenceLimit()+time.Second)
	require.NoError(t, r.proxy.Heal())
}

func TestSessionOpensWhenZooKeeperComes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.proxy.Refuse()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := Open(ctx, r.through(), testLog(t))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, err, syscall.ECONNREFUSED, "and why")
	opened := make(chan *Session)
	go func() {
		s, err := Open(t.Context(), r.through(), testLog(t))
		if err != nil {
			t.Error(err)
		}
		opened <- s
	}()
	require.NoError(t, r.proxy.Heal())
	s := <-opened
	require.NotEmpty(t, s.ID())
	s.Close()
	s.Close()
	require.ErrorIs(t, s.Err(), ErrClosed)
	require.ErrorIs(t, s.Create(t.Context(), "/x", nil), ErrClosed)
}

func TestCloseEndsEphemeralsAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.open(r.cfg)
	path := r.cfg.Cluster.Root() + "/e"
	require.NoError(t, s.CreateEphemeral(t.Context(), path, nil))
	s.Close()
	found, _, err := r.session().Exists(t.Context(), path, nil)
	require.NoError(t, err)
	require.False(t, found)
}

func TestContextEndsWaiting(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.open(r.through())
	r.proxy.Blackhole()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, _, err := s.Get(ctx, "/", nil)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, r.proxy.Heal())
}

func TestSessionIDIsUnsigned(t *testing.T) {
	t.Parallel()
	// A server whose id is 128 or more gives session ids with the highest bit set.
	client, server := net.Pipe()
	l := &link{timeout: time.Second}
	granted := &tap{Conn: client, link: l}
	go func() {
		for _, part := range [][]byte{{0, 0, 0, 37, 0, 0}, {0, 0, 0, 0, 0x17, 0x70}, {0xf0, 0, 1, 0x87, 0xa8, 0x10, 0, 5, 0, 0}} {
			_, _ = server.Write(part)
		}
		_ = server.Close()
	}()
	_, err := io.ReadAll(granted)
	require.NoError(t, err)
	id, timeout, _ := l.granted()
	require.Equal(t, "f0000187a8100005", sessionID(id))
	require.Equal(t, 6*time.Second, timeout)
	require.Equal(t, "10000187a810005", sessionID(0x10000187a810005))
	require.Equal(t, "f00000187a810005", sessionID(-0x0fffffe7857efffb))
}
