package spill

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/internal/replace"
	"github.com/causeway-mirror/causeway/internal/testkit"
	"github.com/causeway-mirror/causeway/route"
)

const childVariable = "CAUSEWAY_SPILL_CHILD"

// checkpoint is a folder's stored position, 0 if there is none.
func checkpoint(t *testing.T, dir string) route.Offset {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "checkpoint"))
	if os.IsNotExist(err) {
		return 0
	}
	require.NoError(t, err)
	n, err := strconv.ParseInt(string(text), 10, 64)
	require.NoError(t, err)
	return route.Offset(n)
}

func store(dir string, at route.Offset) error {
	return replace.File(filepath.Join(dir, "checkpoint"), []byte(strconv.FormatInt(int64(at), 10)))
}

// TestKilledProcessLosesNothingThatItSpilled kills a process that puts, takes and trims as fast as it can, again and again in one folder. What it
// said is on disk must be there, what comes must be the source's, without a gap from the stored checkpoint on.
func TestKilledProcessLosesNothingThatItSpilled(t *testing.T) {
	t.Parallel()
	if os.Getenv(childVariable) != "" {
		spillUntilKilled(t)
		return
	}
	rounds := 12
	if testkit.Long() {
		rounds = 200
	}
	dir, killed := t.TempDir(), 0
	for round := range rounds {
		spilled, lines := killAfter(t, dir, 50+rand.IntN(400))
		killed += lines
		from := checkpoint(t, dir)
		r := &rig{t: t, cfg: small(filepath.Join(dir, "spill"))}
		r.open(from)
		require.GreaterOrEqual(t, r.queue.Stats().Next, spilled, "round %d", round)
		lost, end := r.take()
		require.Empty(t, lost)
		require.GreaterOrEqual(t, end, spilled)
		require.NotContains(t, r.kinds(), SetAside)
		require.NotContains(t, r.kinds(), Corrupt)
		if round%3 == 0 { // else the next process finds all of it again
			require.NoError(t, store(dir, end))
		}
		r.crash()
	}
	require.Greater(t, killed, 50*rounds/2)
}

// killAfter starts the process, kills it after a number of lines, and returns the last position that it said is on disk.
func killAfter(t *testing.T, dir string, enough int) (spilled route.Offset, lines int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	child := exec.CommandContext(ctx, os.Args[0], "-test.run", "^"+t.Name()+"$")
	child.Dir, child.Env = dir, append(os.Environ(), childVariable+"=1")
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	scanner := bufio.NewScanner(out)
	for scanner.Scan() {
		position, ok := strings.CutPrefix(scanner.Text(), "spilled ")
		require.True(t, ok, "the process said: %s", scanner.Text())
		n, err := strconv.ParseInt(position, 10, 64)
		require.NoError(t, err)
		spilled = max(spilled, route.Offset(n))
		if lines++; lines == enough {
			require.NoError(t, child.Process.Kill())
		}
	}
	require.Error(t, child.Wait())
	require.GreaterOrEqual(t, lines, enough)
	return spilled, lines
}

// spillUntilKilled is the process; it works in its own folder. Its target is sometimes fast, sometimes down.
func spillUntilKilled(t *testing.T) {
	t.Helper()
	const dir = "."
	cfg := small("spill")
	cfg.SyncInterval = 5 * time.Millisecond
	s, err := Open(cfg, Deps{Settle: func(_ context.Context, _ route.Partition, at route.Offset) error { return store(dir, at) }})
	require.NoError(t, err)
	q, err := s.Queue(orders, origin, checkpoint(t, dir))
	require.NoError(t, err)
	var running sync.WaitGroup
	running.Go(func() { _ = s.Run(t.Context()) })
	running.Go(func() { // the target
		for round := 0; ; round++ {
			take, err := q.Take()
			if err != nil {
				panic(err)
			}
			for range 5 + rand.IntN(100) {
				item, err := take.Next(time.Millisecond)
				if err != nil {
					continue
				}
				source{}.same(panics{}, item)
			}
			if round%4 == 3 {
				take.Rollback()
				continue
			}
			if take.End() != nil {
				panic("end")
			}
			<-time.After(time.Duration(rand.IntN(20)) * time.Millisecond)
		}
	})
	for n := 0; ; n++ {
		p := q.Put()
		items := source{}.items(q.Stats().Next, 1+rand.IntN(5))
		for _, i := range items {
			p.Add(i)
		}
		if err := p.Commit(t.Context()); err != nil {
			panic(err)
		}
		if s := q.Stats(); s.Fresh == 0 && s.Overflow > 0 {
			fmt.Fprintln(os.Stdout, "spilled", s.Next)
		}
		if n%50 == 49 {
			at := q.Stats().Committed
			if err := store(dir, at); err != nil {
				panic(err)
			}
			if err := q.Trim(at); err != nil {
				panic(err)
			}
		}
	}
}

// panics ends the process, whatever goroutine finds a difference.
type panics struct{}

func (panics) Errorf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (panics) FailNow()                          { panic("FailNow") }

// TestFolderIsFreeAtOnceAfterClose starts processes meanwhile: until each runs its program it has copies of all open files, and so of the lock.
func TestFolderIsFreeAtOnceAfterClose(t *testing.T) {
	t.Parallel()
	var starting sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	starting.Go(func() {
		for ctx.Err() == nil {
			_ = exec.CommandContext(ctx, os.Args[0], "-test.run", "^$").Run() // what becomes of it doesn't matter
		}
	})
	cfg := small(t.TempDir())
	for range 1000 {
		s, err := Open(cfg, Deps{})
		if err != nil {
			t.Error(err)
			break
		}
		require.NoError(t, s.Close())
	}
	cancel()
	starting.Wait()
}
