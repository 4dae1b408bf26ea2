package batch

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// benchmark is a batch of the usual sizes: the producer's default, and a tuned one; lz4, records of 1 KB. What counts is the size on the wire.
type benchmark struct {
	name    string
	batch   Batch
	records int
}

func benchmarks(b *testing.B) []benchmark {
	b.Helper()
	rows := []benchmark{{name: "16KB", records: 37}, {name: "64KB", records: 152}}
	for i := range rows {
		rows[i].batch = dense(0, Lz4, rows[i].records, 1000).encode(b)
	}
	return rows
}

// start counts bytes on the wire.
func (r benchmark) start(b *testing.B) {
	b.Helper()
	b.ReportAllocs()
	b.SetBytes(int64(len(r.batch)))
}

func (r benchmark) stop(b *testing.B) {
	b.Helper()
	b.ReportMetric(float64(r.records)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}

// BenchmarkPatch is all that the raw path does to a batch.
func BenchmarkPatch(b *testing.B) {
	for _, row := range benchmarks(b) {
		b.Run(row.name, func(b *testing.B) {
			row.start(b)
			for n := range b.N {
				one, _, err := Next(row.batch)
				if err != nil || one.Check() != nil {
					b.Fatal("not a batch")
				}
				one.Patch(Producer{ID: 9001, Sequence: int32(n)})
			}
			row.stop(b)
		})
	}
}

func BenchmarkCheckCRC(b *testing.B) {
	for _, row := range benchmarks(b) {
		b.Run(row.name, func(b *testing.B) {
			row.start(b)
			for b.Loop() {
				if row.batch.CheckCRC() != nil {
					b.Fatal("not a batch")
				}
			}
			row.stop(b)
		})
	}
}

// BenchmarkScan is a filter that keeps all.
func BenchmarkScan(b *testing.B) {
	for _, row := range benchmarks(b) {
		b.Run(row.name, func(b *testing.B) {
			var w Rewriter
			row.start(b)
			for b.Loop() {
				changed, _, err := w.Scan(row.batch, func(*Record) (Verdict, error) { return Keep, nil })
				if changed || err != nil {
					b.Fatal(changed, err)
				}
			}
			row.stop(b)
		})
	}
}

func BenchmarkRewrite(b *testing.B) {
	for _, row := range benchmarks(b) {
		for _, codec := range codecs() { // none: what this package itself costs
			b.Run(row.name+"/"+codec.String(), func(b *testing.B) {
				var w Rewriter
				pieces, err := w.Rewrite([]Batch{row.batch}, Options{Codec: &codec})
				require.NoError(b, err)
				row.batch = pieces[0].Batch
				in := []Batch{row.batch}
				row.start(b)
				for b.Loop() {
					if _, err := w.Rewrite(in, Options{}); err != nil {
						b.Fatal(err)
					}
				}
				row.stop(b)
			})
		}
	}
}
