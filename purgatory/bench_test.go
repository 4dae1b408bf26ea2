package purgatory

import (
	"testing"
	"time"
)

func no() bool { return false }

func ignore(Outcome) {}

// crowd is a purgatory in which n operations wait for keys of their own.
func crowd(b *testing.B, n int) *Purgatory[int] {
	b.Helper()
	p := newPurgatory()
	for i := range n {
		p.TryCompleteElseWatch(Operation{Limit: time.Hour, Ready: no, Done: ignore}, -1-i)
	}
	b.Cleanup(p.Close)
	return p
}

func BenchmarkSignalThatNobodyWaitsFor(b *testing.B) {
	for name, n := range map[string]int{"empty": 0, "100000 others": 100_000} {
		b.Run(name, func(b *testing.B) {
			p := crowd(b, n)
			b.ReportAllocs()
			for b.Loop() {
				p.Signal(1)
			}
		})
	}
}

// BenchmarkOperation is the life of one: added, signalled in vain, completed.
func BenchmarkOperation(b *testing.B) {
	for name, n := range map[string]int{"alone": 0, "among 100000": 100_000} {
		b.Run(name, func(b *testing.B) {
			p := crowd(b, n)
			open := false
			op := Operation{Limit: time.Minute, Ready: func() bool { return open }, Done: ignore}
			b.ReportAllocs()
			for b.Loop() {
				open = false
				p.TryCompleteElseWatch(op, 1, 2)
				p.CheckAndComplete(1)
				open = true
				p.CheckAndComplete(2)
			}
		})
	}
}
