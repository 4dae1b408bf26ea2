package batch

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// fuzzMax keeps a fuzzing process small.
const fuzzMax = 1 << 20

// seed adds what the Java client wrote; testdata/fuzz has what fuzzing found to be worth keeping.
func seed(f *testing.F) {
	f.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "golden", "*.bin"))
	require.NoError(f, err)
	require.NotEmpty(f, files)
	for _, name := range files {
		b, err := os.ReadFile(name)
		require.NoError(f, err)
		if len(b) < 4096 {
			f.Add(b)
		}
	}
}

// FuzzNext cuts anything into batches and asks each for everything.
func FuzzNext(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, records []byte) {
		total := 0
		for rest := records; ; {
			b, next, err := Next(rest)
			if err != nil {
				require.Equal(t, err == io.EOF, len(rest) == 0) //nolint:errorlint // the contract is io.EOF itself
				return
			}
			require.Equal(t, len(rest), len(b)+len(next))
			total += len(b)
			require.LessOrEqual(t, total, len(records))
			rest = next
			_, _ = headerOf(b), b.Abort()
			checked := b.Check()
			if checked != nil || b.legacy() {
				continue
			}
			require.GreaterOrEqual(t, b.NextOffset(), b.BaseOffset())
			signed := b.CheckCRC() == nil
			patched := append(Batch{}, b...)
			patched.Patch(Producer{ID: 1, Epoch: 2, Sequence: 3})
			require.NoError(t, patched.Check())
			require.Equal(t, signed, patched.CheckCRC() == nil, "a patch neither signs nor breaks")
		}
	})
}

// FuzzRewrite reads whatever passes Check, in all formats. What can be rewritten must read the same afterwards.
func FuzzRewrite(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, records []byte) {
		w, r := Rewriter{MaxDecoded: fuzzMax}, Reader{MaxDecoded: fuzzMax}
		for rest := records; ; {
			b, next, err := Next(rest)
			if err != nil {
				return
			}
			rest = next
			codec := Lz4
			pieces, err := w.Rewrite([]Batch{b}, Options{Codec: &codec, MaxBytes: 500})
			changed, kept, scanned := w.Scan(b, func(*Record) (Verdict, error) { return Keep, nil })
			require.False(t, changed)
			if b.Check() == nil && b.Control() {
				require.Empty(t, pieces)
				continue
			}
			require.Equal(t, err == nil, scanned == nil)
			if err != nil {
				var corrupt *CorruptError
				require.ErrorAs(t, err, &corrupt)
				continue
			}
			want, got := read(t, &r, b), []Record{}
			require.Len(t, want, int(kept))
			for _, p := range pieces {
				require.NoError(t, p.Batch.CheckCRC())
				got = append(got, read(t, &r, p.Batch)...)
			}
			require.Len(t, got, len(want))
			for i := range want {
				want[i].Offset, got[i].Offset = 0, 0
			}
			require.Equal(t, want, got)
		}
	})
}

// FuzzDecompress gives anything to each codec.
func FuzzDecompress(f *testing.F) {
	for _, codec := range codecs()[1:] {
		f.Add(int8(codec), dumbCompress(f, codec, bytes.Repeat([]byte("again and "), 20)))
	}
	f.Add(int8(Snappy), []byte(xerial+"\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x05\x03\x08one"))
	f.Add(int8(Lz4), []byte("\x04\x22\x4d\x18\x40\x40\x00\x05\x00\x00\x00\x40abcd\x09\x00\x00\x00\x04\x04\x00\x50efghi\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, codec int8, src []byte) {
		var d decompressor
		var c compressor
		out, err := d.decompress(nil, Codec(codec), src, fuzzMax)
		if err != nil {
			return
		}
		require.LessOrEqual(t, len(out), fuzzMax)
		packed, err := c.compress(Codec(codec), out)
		require.NoError(t, err)
		again, err := d.decompress(nil, Codec(codec), packed, fuzzMax)
		require.NoError(t, err)
		require.True(t, bytes.Equal(out, again))
	})
}
