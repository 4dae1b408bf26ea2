package spill

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/route"
)

// FuzzSegment opens a folder with anything for its second of three files. What comes is the source's or is told to be damaged, without a gap.
func FuzzSegment(f *testing.F) {
	first, _ := appendFrame(headOf(origin, 0), source{}.items(0, 2))
	from := source{}.items(0, 2)[1].Next
	second, _ := appendFrame(headOf(origin, from), source{}.items(from, 3))
	then := source{}.items(from, 3)[2].Next
	second, _ = appendFrame(second, source{}.items(then, 1))
	to := source{}.item(then).Next
	third, _ := appendFrame(headOf(origin, to), source{}.items(to, 2))
	end := source{}.items(to, 2)[1].Next
	f.Add(second, false)
	f.Add(second, true)
	f.Add(second[:100], true)
	f.Add([]byte{}, false)
	f.Fuzz(func(t *testing.T, b []byte, last bool) {
		dir := t.TempDir()
		folder := filepath.Join(dir, "orders-3")
		require.NoError(t, os.Mkdir(folder, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(folder, segmentName(0)), first, 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(folder, segmentName(from)), b, 0o600))
		if !last {
			require.NoError(t, os.WriteFile(filepath.Join(folder, segmentName(to)), third, 0o600))
		}
		r := &rig{t: t, cfg: small(dir), lazy: true}
		r.open(0)
		defer func() { require.NoError(t, r.store.Close()) }()
		take, err := r.queue.Take()
		require.NoError(t, err)
		at := route.Offset(0)
		for {
			item, err := take.Next(0)
			var c *Corruption
			switch {
			case errors.As(err, &c):
				require.Equal(t, at, c.First)
				require.Greater(t, c.Next, at)
				at = c.Next
				continue
			case errors.Is(err, ErrEmpty):
				require.NoError(t, take.End())
				if !last && !slices.Contains(r.kinds(), SetAside) {
					require.Equal(t, end, at)
				}
				require.Equal(t, r.queue.Stats().Next, max(at, r.queue.Stats().Committed))
				require.Zero(t, r.queue.Stats().Items)
				return
			}
			require.NoError(t, err)
			require.Equal(t, at, item.First)
			at = item.Next
		}
	})
}
