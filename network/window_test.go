package network

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWhoAsksTooMuchIsMuted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var told []bool
		w := NewWindow[int](2, func(idle bool) { told = append(told, idle) })
		require.True(t, w.Put(1))
		require.True(t, w.Put(2))
		third := make(chan bool)
		go func() { third <- w.Put(3) }()
		synctest.Wait()
		select {
		case <-third:
			require.Fail(t, "there is no room")
		default:
		}
		first, ok := w.First()
		require.True(t, ok)
		require.Equal(t, 1, first)
		w.Pop()
		require.True(t, <-third)
		require.Zero(t, w.Idle())
		w.Pop()
		w.Pop()
		_, ok = w.First()
		require.False(t, ok)
		time.Sleep(time.Minute)
		require.Equal(t, time.Minute, w.Idle())
		require.Equal(t, []bool{false, true}, told)
		w.AwaitEmpty()
	})
}

func TestTheEndOfAWindowWakesAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := NewWindow[int](1, func(bool) {})
		require.True(t, w.Put(1))
		put, empty := make(chan bool, 1), make(chan struct{})
		go func() { put <- w.Put(2) }()
		go func() {
			w.AwaitEmpty()
			close(empty)
		}()
		synctest.Wait()
		w.End()
		require.False(t, <-put)
		<-empty
	})
}
