package bolt

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/offsets/storetest"
	"github.com/causeway-mirror/causeway/route"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) storetest.Open {
		t.Helper()
		dir := filepath.Join(t.TempDir(), "state")
		return func() offsets.Store {
			s, err := Open(dir)
			require.NoError(t, err)
			return s
		}
	})
}

func TestFileModes(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "deep", "state")
	fill(t, dir, 1)
	for path, mode := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, FileName): 0o600} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Perm(), path)
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "one file is the whole state")
}

func TestSecondProcessIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := Open(dir)
	require.NoError(t, err)
	began := time.Now()
	_, err = Open(dir)
	var storage *offsets.StorageError
	require.ErrorAs(t, err, &storage)
	require.ErrorIs(t, err, ErrLocked)
	require.Equal(t, "open state in "+dir+": another process uses this folder", err.Error())
	require.Less(t, time.Since(began), 3*LockTimeout)

	require.NoError(t, s.Close())
	s, err = Open(dir)
	require.NoError(t, err, "the folder is free again")
	require.NoError(t, s.Close())
}

func TestClosedStoreAnswersWithAnError(t *testing.T) {
	t.Parallel()
	s, err := Open(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, s.Close())
	var storage *offsets.StorageError
	require.ErrorAs(t, s.Begin(t.Context(), nil, storetest.Checkpoint("a", 0, 1)), &storage)
	_, err = s.Route(t.Context())
	require.ErrorAs(t, err, &storage)
}

func TestCopiedFolder(t *testing.T) {
	t.Parallel()
	dir, copied := t.TempDir(), t.TempDir()
	fill(t, dir, 200)
	copyFile(t, filepath.Join(dir, FileName), filepath.Join(copied, FileName))
	require.Equal(t, 200, count(t, copied))
}

// TestDamagedFile damages a store in many ways. Each must be refused with an error that names the file, or, where the damage hit what is
// not in use, leave everything readable: never a panic, never a wrong answer.
func TestDamagedFile(t *testing.T) {
	t.Parallel()
	const n = 300
	dir := t.TempDir()
	fill(t, dir, n)
	whole, err := os.ReadFile(filepath.Join(dir, FileName))
	require.NoError(t, err)
	page := os.Getpagesize()

	type row struct {
		name   string
		damage func([]byte) []byte
		fatal  bool
		lost   int // transactions that the damage may undo
	}
	rows := []row{
		{"text", func([]byte) []byte { return []byte("this is not a database, but it is long enough to be read as one") }, true, 0},
		{"zeros", func(b []byte) []byte { clear(b); return b }, true, 0},
		{"both meta pages", func(b []byte) []byte { clear(b[:2*page]); return b }, true, 0},
		{"one meta page", func(b []byte) []byte { clear(b[:page]); return b }, false, 1},
		{"cut to two pages", func(b []byte) []byte { return b[:2*page] }, true, 0},
		{"cut to one page", func(b []byte) []byte { return b[:page] }, true, 0},
		{"cut to four pages", func(b []byte) []byte { return b[:4*page] }, true, 0},
		{"noise behind the meta pages", func(b []byte) []byte {
			for i := 2 * page; i < len(b); i++ {
				b[i] = byte(i * 7)
			}
			return b
		}, true, 0},
	}
	for at := 2 * page; at < len(whole); at += 3*page + 613 {
		rows = append(rows, row{fmt.Sprintf("byte %d", at), func(b []byte) []byte { b[at] ^= 0x15; return b }, false, 0})
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			damaged := t.TempDir()
			path := filepath.Join(damaged, FileName)
			require.NoError(t, os.WriteFile(path, r.damage(append([]byte(nil), whole...)), 0o600))
			s, err := Open(damaged)
			if err == nil {
				require.False(t, r.fatal, "must be refused")
				require.NoError(t, s.Close())
				require.GreaterOrEqual(t, count(t, damaged), n-r.lost)
				return
			}
			var storage *offsets.StorageError
			require.ErrorAs(t, err, &storage)
			require.Equal(t, path, storage.Path)
			require.ErrorIs(t, err, offsets.ErrCorrupt)
			began := time.Now()
			_, err = Open(damaged)
			require.ErrorIs(t, err, offsets.ErrCorrupt, "the lock is free after a refusal")
			require.Less(t, time.Since(began), LockTimeout)
		})
	}
}

func TestChangedDigitIsFound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fill(t, dir, 3)
	change(t, dir, func(tx *bbolt.Tx) error {
		b, key := tx.Bucket(checkpointsBucket()), partitionKey(route.Partition{Topic: "topic", Partition: 1})
		value := append([]byte(nil), b.Get(key)...)
		for i, c := range value {
			if c == '1' {
				value[i] = '2'
			}
		}
		return b.Put(key, value)
	})
	_, err := Open(dir)
	require.ErrorIs(t, err, offsets.ErrCorrupt)
	require.ErrorContains(t, err, "checkpoint of topic-1")
}

func TestOtherVersionIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fill(t, dir, 1)
	change(t, dir, func(tx *bbolt.Tx) error { return put(tx.Bucket(metaBucket()), layoutKey(), []byte("2")) })
	_, err := Open(dir)
	var version *offsets.VersionError
	require.ErrorAs(t, err, &version)
	require.Equal(t, 2, version.Got)
	require.ErrorContains(t, err, filepath.Join(dir, FileName))

	dir = t.TempDir()
	fill(t, dir, 1)
	change(t, dir, func(tx *bbolt.Tx) error { return put(tx.Bucket(routeBucket()), stateKey(), []byte(`{"v":9}`)) })
	_, err = Open(dir)
	require.ErrorAs(t, err, &version)
	require.Equal(t, 9, version.Got)
}

func fill(t *testing.T, dir string, n int) {
	t.Helper()
	s, err := Open(dir)
	require.NoError(t, err)
	for i := range n {
		require.NoError(t, s.Begin(t.Context(), nil, storetest.Checkpoint("topic", int32(i), 100)))
	}
	require.NoError(t, s.Close())
}

func count(t *testing.T, dir string) int {
	t.Helper()
	s, err := Open(dir)
	require.NoError(t, err)
	parts, err := s.Partitions(t.Context())
	require.NoError(t, err)
	found, err := s.Load(t.Context(), parts)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	for p, c := range found {
		require.True(t, c.Equal(storetest.Checkpoint("topic", p.Partition, 100)))
	}
	return len(found)
}

func change(t *testing.T, dir string, write func(*bbolt.Tx) error) {
	t.Helper()
	db, err := bbolt.Open(filepath.Join(dir, FileName), 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(write))
	require.NoError(t, db.Close())
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(to, content, 0o600))
}

func BenchmarkSave1000(b *testing.B) {
	s, err := Open(b.TempDir())
	require.NoError(b, err)
	defer func() { require.NoError(b, s.Close()) }()
	checkpoints := make([]offsets.Checkpoint, 1000)
	for i := range checkpoints {
		checkpoints[i] = storetest.Checkpoint("topic", int32(i), 0)
		require.NoError(b, s.Begin(b.Context(), nil, checkpoints[i]))
	}
	b.ReportAllocs()
	for b.Loop() {
		for i := range checkpoints {
			checkpoints[i].SourceOffset++
		}
		require.NoError(b, s.Save(b.Context(), checkpoints))
	}
}
