package batch

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// sizes are the usual ones: the producer's default batch, and a tuned one; lz4, 1 KB records. What counts is the size on the wire.
func benchmarkBatches(b *testing.B, run func(b *testing.B, batch Batch)) {
	b.Helper()
	for _, size := range []struct {
		name    string
		records int
	}{{"16KB", 37}, {"64KB", 152}} {
		batch := dense(0, Lz4, size.records, 1000).encode(b)
		b.Run(size.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(batch)))
			run(b, batch)
			b.ReportMetric(float64(size.records)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
		})
	}
}

// BenchmarkPatch is all that the raw path does to a batch.
func BenchmarkPatch(b *testing.B) {
	benchmarkBatches(b, func(b *testing.B, batch Batch) {
		for n := range b.N {
			one, _, err := Next(batch)
			if err != nil || one.Check() != nil {
				b.Fatal("not a batch")
			}
			one.Patch(Producer{ID: 9001, Sequence: int32(n)})
		}
	})
}

func BenchmarkCheckCRC(b *testing.B) {
	benchmarkBatches(b, func(b *testing.B, batch Batch) {
		for b.Loop() {
			require.NoError(b, batch.CheckCRC())
		}
	})
}

// BenchmarkScan is a filter that keeps all.
func BenchmarkScan(b *testing.B) {
	benchmarkBatches(b, func(b *testing.B, batch Batch) {
		var w Rewriter
		for b.Loop() {
			changed, _, err := w.Scan(batch, func(*Record) (Verdict, error) { return Keep, nil })
			if changed || err != nil {
				b.Fatal(changed, err)
			}
		}
	})
}

func BenchmarkRewrite(b *testing.B) {
	benchmarkBatches(b, func(b *testing.B, batch Batch) {
		var w Rewriter
		in := []Batch{batch}
		for b.Loop() {
			if _, err := w.Rewrite(in, Options{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkRewriteNone is the same without a codec: what this package itself costs.
func BenchmarkRewriteNone(b *testing.B) {
	benchmarkBatches(b, func(b *testing.B, batch Batch) {
		var w Rewriter
		codec := None
		pieces, err := w.Rewrite([]Batch{batch}, Options{Codec: &codec})
		require.NoError(b, err)
		in := []Batch{pieces[0].Batch}
		b.SetBytes(int64(len(in[0])))
		for b.Loop() {
			if _, err := w.Rewrite(in, Options{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
