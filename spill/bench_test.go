package spill

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/internal/slab"
	"github.com/causeway-mirror/causeway/route"
)

// benchBytes is what a round writes: -benchtime 2048x makes 2 GiB of it.
const benchBytes = 1 << 20

// BenchmarkSpill writes items of 64 KiB, 16 in a transaction, all of it to disk, synced meanwhile as ever and at the end, and then takes them: warm, when the operating system still
// has them in memory, or cold. MB/s are of the writes with the syncs, of the reads, and of a plain file of the same size in the same folder, written by
// 1 MiB and synced at its end, and, cold, read again.
func BenchmarkSpill(b *testing.B) {
	for _, name := range []string{"warm", "cold"} {
		b.Run(name, func(b *testing.B) { benchmark(b, name == "cold") })
	}
}

func benchmark(b *testing.B, cold bool) {
	b.Helper()
	cfg := DefaultConfig()
	cfg.Dir, cfg.MaxBytes, cfg.Limits.MemoryCapacity = b.TempDir(), 1<<40, 0
	pool := slab.NewPool(slab.NewBudget(1<<40), 64<<20)
	s, err := Open(cfg, Deps{Alloc: func(n int) ([]byte, Holder) {
		pool.Budget().Force(int64(n))
		sl := pool.Get(n, int64(n))
		data := sl.Bytes()
		return data, sl
	}})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, s.Close()) })
	q, err := s.Queue(orders, origin, 0)
	require.NoError(b, err)
	ctx, end := context.WithCancel(b.Context())
	syncs := make(chan error, 1)
	go func() { syncs <- s.Run(ctx) }() // the benchmark waits for it
	b.Cleanup(func() {
		end()
		require.NoError(b, <-syncs)
	})
	block := make([]byte, benchBytes)
	for i := range block {
		block[i] = byte(i * i >> 7)
	}
	plain, again := plainFile(b, filepath.Join(b.TempDir(), "plain"), block)
	b.ReportAllocs()
	b.ResetTimer()
	begun := time.Now()
	const items = 16
	for n := range b.N {
		p := q.Put()
		for i := range items {
			first := route.Offset(n*items + i)
			p.Add(Item{First: first, Next: first + 1, Data: block[i*benchBytes/items : (i+1)*benchBytes/items]})
		}
		require.NoError(b, p.Commit(b.Context()))
	}
	require.NoError(b, q.log.sync())
	written := time.Since(begun)
	if cold {
		forget(b, filepath.Join(cfg.Dir, orders.String()))
	}
	begun = time.Now()
	take, err := q.Take()
	require.NoError(b, err)
	for n := 0; ; n++ {
		_, err := take.Next(0)
		if errors.Is(err, ErrEmpty) {
			require.Equal(b, b.N*items, int(q.Stats().TakenItems)+take.Taken())
			break
		}
		require.NoError(b, err)
		if n%items == items-1 {
			require.NoError(b, take.Commit(items))
		}
	}
	require.NoError(b, take.End())
	read := time.Since(begun)
	speed := func(d time.Duration) float64 { return float64(b.N) * benchBytes / 1e6 / d.Seconds() }
	b.ReportMetric(speed(written), "write-MB/s")
	b.ReportMetric(speed(read), "drain-MB/s")
	b.ReportMetric(speed(plain), "plain-MB/s")
	b.ReportMetric(speed(again), "plain-read-MB/s")
}

// forget has the operating system drop what it has of a folder's files in memory: in a long outage they are larger than that. Where it can't, the
// files are read from memory.
func forget(b *testing.B, dir string) {
	b.Helper()
	files, err := os.ReadDir(dir)
	require.NoError(b, err)
	for _, f := range files {
		_ = exec.CommandContext(b.Context(), "dd", "of="+filepath.Join(dir, f.Name()), "oflag=nocache", "conv=notrunc,fdatasync", "count=0").Run()
	}
}

// plainFile writes a block b.N times and syncs, and reads the file again from the disk, and returns how long both took.
func plainFile(b *testing.B, path string, block []byte) (written, read time.Duration) {
	b.Helper()
	begun := time.Now()
	f, err := os.Create(path)
	require.NoError(b, err)
	for range b.N {
		_, err := f.Write(block)
		require.NoError(b, err)
	}
	require.NoError(b, f.Sync())
	written = time.Since(begun)
	forget(b, filepath.Dir(path))
	begun = time.Now()
	_, err = f.Seek(0, io.SeekStart)
	require.NoError(b, err)
	again := make([]byte, len(block))
	for range b.N {
		_, err := io.ReadFull(f, again)
		require.NoError(b, err)
	}
	read = time.Since(begun)
	require.NoError(b, errors.Join(f.Close(), os.Remove(path)))
	return written, read
}

// BenchmarkMemory puts and takes an item that never sees the disk.
func BenchmarkMemory(b *testing.B) {
	cfg := DefaultConfig()
	cfg.Dir, cfg.MaxBytes = b.TempDir(), 1<<30
	s, err := Open(cfg, Deps{})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, s.Close()) })
	q, err := s.Queue(orders, origin, 0)
	require.NoError(b, err)
	take, err := q.Take()
	require.NoError(b, err)
	data := make([]byte, 1000)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		p := q.Put()
		p.Add(Item{First: route.Offset(n), Next: route.Offset(n + 1), Data: data})
		require.NoError(b, p.Commit(b.Context()))
		_, err := take.Next(0)
		require.NoError(b, err)
		require.NoError(b, take.Commit(1))
	}
}
