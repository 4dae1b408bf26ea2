package purgatory

import (
	"runtime"
	"slices"
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

// BenchmarkCrowd lets 100,000 operations wait at once: the heap that they take together, how fast they are added and ended, and how late they are
// (the median) when all expire within one second.
func BenchmarkCrowd(b *testing.B) {
	const n = 100_000
	for b.Loop() {
		before := used()
		begun := time.Now()
		p := crowd(b, n)
		added := time.Since(begun)
		b.ReportMetric(float64(used()-before)/1e6, "MB")
		b.ReportMetric(n/added.Seconds(), "added/s")
		begun = time.Now()
		for i := range n {
			p.Cancel(-1 - i)
		}
		b.ReportMetric(n/time.Since(begun).Seconds(), "ended/s")
		b.ReportMetric(lateness(n).Seconds()*1e3, "late-ms")
	}
}

func used() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// lateness has n operations expire within a second, evenly, and returns the median of how late each was.
func lateness(n int) time.Duration {
	p := newPurgatory()
	defer p.Close()
	late := make(chan time.Duration, n)
	for i := range n {
		limit := time.Second + time.Duration(i)*time.Second/time.Duration(n)
		due := time.Now().Add(limit)
		p.TryCompleteElseWatch(Operation{Limit: limit, Ready: no, Done: func(Outcome) { late <- time.Since(due) }}, i)
	}
	all := make([]time.Duration, n)
	for i := range all {
		all[i] = <-late
	}
	slices.Sort(all)
	return all[n/2]
}
