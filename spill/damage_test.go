package spill

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/internal/testkit"
	"github.com/causeway-mirror/causeway/route"
)

// isRefusal says that a put found no room, which is no fault.
func isRefusal(err error) bool { return errors.Is(err, ErrFull) || errors.Is(err, ErrTooLarge) }

// written makes a folder with items from position 0 on, in transactions of up to three, and returns its files and the position after them.
func written(t *testing.T, items int) (files map[string][]byte, next route.Offset) {
	t.Helper()
	cfg := small(t.TempDir())
	cfg.Limits.MemoryCapacity = 0
	r := newRig(t, cfg, 0)
	for n := 0; n < items; n += 3 {
		group := (source{}).items(next, min(3, items-n))
		require.NoError(t, r.put(group...))
		next = group[len(group)-1].Next
	}
	files = map[string][]byte{}
	dir := filepath.Join(cfg.Dir, "orders-3")
	bases, err := segments(dir)
	require.NoError(t, err)
	require.Greater(t, len(bases), 2)
	for _, base := range bases {
		b, err := os.ReadFile(filepath.Join(dir, segmentName(base)))
		require.NoError(t, err)
		files[segmentName(base)] = b
	}
	return files, next
}

// lay writes the files into a new folder.
func lay(t *testing.T, files map[string][]byte) Config {
	t.Helper()
	cfg := small(t.TempDir())
	dir := filepath.Join(cfg.Dir, "orders-3")
	require.NoError(t, os.Mkdir(dir, 0o700))
	for name, b := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), b, 0o600))
	}
	return cfg
}

func names(files map[string][]byte) []string {
	var all []string
	for name := range files {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// TestAnyFlippedBitIsFound flips one bit of a byte of a file, of many in turn (of all, at full length): everything comes but the damage, which is told with its range.
func TestAnyFlippedBitIsFound(t *testing.T) {
	t.Parallel()
	files, next := written(t, 14)
	all := names(files)
	for i, name := range all {
		last := i == len(all)-1
		for at := range files[name] {
			if heads := headFixed + len(origin) + 4 + frameFixed; at > heads && at%37 != i && !testkit.Long() {
				continue
			}
			broken := map[string][]byte{}
			for n, b := range files {
				broken[n] = bytes.Clone(b)
			}
			broken[name][at] ^= 1 << (at % 8)
			r := &rig{t: t, cfg: lay(t, broken), lazy: true}
			r.open(0)
			lost, end := r.take()
			switch {
			case end < next: // the end is damaged: from there on the source is asked
				require.True(t, last || i == len(all)-2, "%s at %d", name, at)
				require.Contains(t, r.kinds(), Corrupt, "%s at %d", name, at)
				require.Equal(t, end, r.notices[0].First)
				require.Equal(t, route.NoOffset, r.notices[0].Next)
			case at < headFixed+len(origin)+4 && !last:
				// The head of a segment: all of it is taken for lost when the folder is opened.
				require.NotEmpty(t, lost, "%s at %d", name, at)
			default:
				require.Len(t, lost, 1, "%s at %d", name, at)
			}
			for _, c := range lost {
				require.Equal(t, filepath.Join(r.cfg.Dir, "orders-3", name), c.Path)
			}
			require.Zero(t, r.queue.Stats().Items)
			require.NoError(t, r.queue.Trim(end))
			require.NotContains(t, r.kinds(), SetAside)
			aside, err := os.ReadDir(filepath.Join(r.cfg.Dir, asideFolder))
			require.NoError(t, err)
			require.Len(t, aside, 1, "the damaged file is kept")
			require.Equal(t, "orders-3.1."+name, aside[0].Name())
			r.fill(end, 10)
			_, _ = r.take()
			require.NoError(t, r.store.Close())
		}
	}
}

// TestFileThatEndsAnywhereIsGoneOnWith cuts the last file at each length: a kill in a write leaves just that.
func TestFileThatEndsAnywhereIsGoneOnWith(t *testing.T) {
	t.Parallel()
	files, next := written(t, 14)
	all := names(files)
	name := all[len(all)-1]
	whole := files[name]
	for n := range whole {
		if n > 100 && n%11 != 0 && !testkit.Long() {
			continue
		}
		files[name] = whole[:n]
		r := &rig{t: t, cfg: lay(t, files), lazy: true}
		r.open(0)
		require.Empty(t, r.notices, "no damage: the write was never finished")
		lost, end := r.take()
		require.Empty(t, lost)
		require.Less(t, end, next)
		again := r.fill(end, 8)
		require.NoError(t, r.store.Close())
		r.open(end)
		_, end = r.take()
		require.LessOrEqual(t, end, again)
		require.Empty(t, slices.DeleteFunc(r.kinds(), func(k Kind) bool { return k == Started || k == Drained }))
		require.NoError(t, r.store.Close())
	}
}

func TestZerosAtTheEndAreDamage(t *testing.T) {
	t.Parallel()
	files, next := written(t, 14)
	all := names(files)
	name := all[len(all)-1]
	files[name] = append(files[name], make([]byte, 100)...) // a lost machine may leave the length of a file without its content
	r := newRig(t, lay(t, files), 0)
	require.Equal(t, []Kind{Corrupt}, r.kinds())
	require.Equal(t, next, r.notices[0].First)
	_, end := r.take()
	require.Equal(t, next, end)
}

func TestMissingFileIsToldWithItsRange(t *testing.T) {
	t.Parallel()
	files, next := written(t, 14)
	all := names(files)
	delete(files, all[1])
	r := newRig(t, lay(t, files), 0)
	lost, end := r.take()
	require.Equal(t, next, end)
	require.Len(t, lost, 1)
	from, _ := segmentBase(all[1])
	to, _ := segmentBase(all[2])
	require.Equal(t, []route.Offset{from, to}, []route.Offset{lost[0].First, lost[0].Next})
	require.NoError(t, r.queue.Trim(end))
}

// TestDamageWhileInUse breaks files under the queue: the damage is told once and counted once, however often it is come upon.
func TestDamageWhileInUse(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		damage func(path string) error
	}{
		{"removed", os.Remove},
		{"cut", func(path string) error { return os.Truncate(path, 150) }},
		{"body", func(path string) error { return flip(path, headFixed+int64(len(origin))+4+frameFixed+20) }},
		{"head of a frame", func(path string) error { return flip(path, headFixed+int64(len(origin))+4+3) }},
	} {
		for _, last := range []bool{false, true} {
			t.Run(tc.name, func(t *testing.T) {
				t.Parallel()
				cfg := small(t.TempDir())
				cfg.Limits.MemoryCapacity = 0
				r := newRig(t, cfg, 0)
				next := r.fill(0, 20)
				dir := filepath.Join(cfg.Dir, "orders-3")
				bases, err := segments(dir)
				require.NoError(t, err)
				base := bases[1]
				if last {
					base = bases[len(bases)-1]
				}
				require.NoError(t, tc.damage(filepath.Join(dir, segmentName(base))))
				for range 3 { // rolled back each time
					take, err := r.queue.Take()
					require.NoError(t, err)
					found := 0
					for {
						_, err := take.Next(0)
						if errors.Is(err, ErrEmpty) {
							break
						}
						if c := (*Corruption)(nil); errors.As(err, &c) {
							found++
							continue
						}
						require.NoError(t, err)
					}
					require.Equal(t, 1, found)
					require.Equal(t, take.Taken(), r.queue.Stats().Items)
					take.Rollback()
					next = r.fill(next, 2)
				}
				require.Equal(t, []Kind{Started, Corrupt}, r.kinds())
				lost, end := r.take()
				require.Equal(t, next, end)
				require.Len(t, lost, 1)
				require.GreaterOrEqual(t, lost[0].First, base)
				require.Contains(t, lost[0].Error(), segmentName(base))
				require.Positive(t, r.queue.Stats().Lost)
				require.NoError(t, r.queue.Trim(end))
				require.Equal(t, []Kind{Started, Corrupt, Drained}, r.kinds())
			})
		}
	}
}

// flip changes one bit of the byte at a place of a file.
func flip(path string, at int64) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	b[at] ^= 0x10
	return os.WriteFile(path, b, 0o600) // in place: whoever has it open sees it
}

func TestWhatDoesNotFitIsSetAside(t *testing.T) {
	t.Parallel()
	files, next := written(t, 14)
	all := names(files)
	second, _ := segmentBase(all[1])
	tail := map[string][]byte{}
	for _, name := range all[1:] {
		tail[name] = files[name]
	}
	newer := map[string][]byte{}
	for name, b := range files {
		newer[name] = bytes.Clone(b)
		newer[name][9]++
	}
	for _, tc := range []struct {
		name   string
		files  map[string][]byte
		origin string
		from   route.Offset
		items  int // -1: set aside
		reason string
	}{
		{"all of it", files, origin, 0, 14, ""},
		{"from the middle of an item", files, origin, firstOf(t, 2) + 1, 12, ""},
		{"from its end", files, origin, next, 0, ""},
		{"committed long ago", files, origin, next + 100, 0, ""},
		{"a gap before it", tail, origin, second - 1, -1, "it begins at"},
		{"no gap", tail, origin, second, -2, ""},
		{"another source", files, "cluster-1/AgAAAAAAAAAAAAAAAAAAAA", 0, -1, "written for another source"},
		{"another version", newer, origin, 0, -1, "format 2, this program knows 1 only"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := &rig{t: t, cfg: lay(t, tc.files)}
			var err error
			r.store, err = Open(r.cfg, Deps{Notify: r.notify})
			require.NoError(t, err)
			before := r.store.Bytes()
			r.queue, err = r.store.Queue(orders, tc.origin, tc.from)
			require.NoError(t, err)
			switch s := r.queue.Stats(); tc.items {
			case -1:
				require.Equal(t, []Kind{SetAside}, r.kinds())
				require.Contains(t, r.notices[0].Reason, tc.reason)
				require.Zero(t, s.Items)
				require.Equal(t, before, r.store.Bytes(), "it is still there")
				kept, err := segments(filepath.Join(r.cfg.Dir, asideFolder, "orders-3.1"))
				require.NoError(t, err)
				require.Len(t, kept, len(tc.files))
			case -2:
				require.Positive(t, s.Items)
				require.Empty(t, r.kinds())
			default:
				require.Equal(t, tc.items, s.Items)
				require.Empty(t, r.kinds())
			}
			r.fill(r.queue.Stats().Next, 6)
			require.NoError(t, r.store.Close())
		})
	}
}

// firstOf is where the source's nth item begins, counted from 0; it stands for more than one position.
func firstOf(t *testing.T, n int) route.Offset {
	t.Helper()
	items := (source{}).items(0, n+8)
	i := n
	for items[i].Next == items[i].First+1 {
		i++
	}
	require.Equal(t, n, i, "choose another one")
	return items[i].First
}

func TestOwnerSetsAside(t *testing.T) {
	t.Parallel()
	r := newRig(t, small(t.TempDir()), 0)
	next := r.fill(0, 6)
	require.NoError(t, r.queue.SetAside("the source's topic was made anew"))
	require.Equal(t, []Kind{Started, SetAside}, r.kinds())
	require.Equal(t, Notice{
		Kind: SetAside, Partition: orders, First: 0, Next: next, Path: filepath.Join(r.cfg.Dir, "orders-3"), Reason: "the source's topic was made anew",
	}, r.notices[1])
	var err error
	r.queue, err = r.store.Queue(orders, origin, 0)
	require.NoError(t, err)
	require.Zero(t, r.queue.Stats().Items)
	require.NoError(t, r.queue.SetAside("nothing is there"))
	require.Len(t, r.kinds(), 2)
}
