package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

// bench is a Go benchmark, run as a process of its own.
type bench struct {
	pkg, name string
	times     int
}

// build compiles the tests of its package.
func (b bench) build(ctx context.Context, l *lab) error {
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-o", l.program(b.pkg+".test"), module+"/"+b.pkg)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the tests of %s: %w\n%s", b.pkg, err, out)
	}
	return nil
}

var metric = regexp.MustCompile(`([0-9.e+]+) (\S+)`)

// run returns what it reports, by unit.
func (b bench) run(ctx context.Context, l *lab) (map[string]float64, error) {
	cmd := exec.CommandContext(ctx, l.program(b.pkg+".test"), "-test.run", "^$", "-test.bench", b.name, "-test.benchtime", strconv.Itoa(b.times)+"x")
	cmd.Env = append(os.Environ(), "TMPDIR="+l.dir) // the disk on which everything else is written, too
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("run %s: %w\n%s", b.name, err, out)
	}
	figures := map[string]float64{}
	for _, f := range metric.FindAllStringSubmatch(string(out), -1) {
		if x, err := strconv.ParseFloat(f[1], 64); err == nil {
			figures[f[2]] = x
		}
	}
	return figures, nil
}

const megabyte = 1 << 20

// dd writes a file of so many megabytes and syncs it, and returns MB/s.
func (l *lab) dd(ctx context.Context, megabytes int) (float64, error) {
	file := filepath.Join(l.dir, "dd")
	defer os.Remove(file)
	began := time.Now()
	cmd := exec.CommandContext(ctx, "dd", "if=/dev/zero", "of="+file, "bs=1M", "count="+strconv.Itoa(megabytes), "conv=fsync")
	if out, err := cmd.CombinedOutput(); err != nil {
		return math.NaN(), fmt.Errorf("dd: %w\n%s", err, out)
	}
	return float64(megabytes) * megabyte / 1e6 / time.Since(began).Seconds(), nil
}

// spill asks how fast a spill is written, synced, and read again, against a plain file of the same size on the same disk.
func (l *lab) spill(ctx context.Context) (*report, error) {
	size := 2048
	if l.opts.quick {
		size = 64
	}
	warm, cold := bench{"spill", "^BenchmarkSpill$/^warm$", size}, bench{"spill", "^BenchmarkSpill$/^cold$", size}
	if err := warm.build(ctx, l); err != nil {
		return nil, err
	}
	what := []string{"dd", "spill: written", "spill: drained", "plain file: read from the disk", "spill: drained from the disk"}
	all := make([][]float64, len(what))
	for round := range l.opts.pairs {
		dd, err := l.dd(ctx, size)
		if err != nil {
			return nil, err
		}
		w, err := warm.run(ctx, l)
		if err != nil {
			return nil, err
		}
		c, err := cold.run(ctx, l)
		if err != nil {
			return nil, err
		}
		for i, x := range []float64{dd, w["write-MB/s"], w["drain-MB/s"], c["plain-read-MB/s"], c["drain-MB/s"]} {
			all[i] = append(all[i], x)
			l.say("spill: round %d: %s: %.0f MB/s", round+1, what[i], x)
		}
	}
	rep := &report{
		about: fmt.Sprintf("%d MB in batches of 64 KiB, with checksums, synced at the usual interval and at the end, then read again in the order of writing: from the operating system's memory, where a spill of this size still is, and from the disk alone. "+
			"`dd` is `dd if=/dev/zero bs=1M count=%d conv=fsync` on the same disk, before each run.", size, size),
		figures: table{head: []string{"case", "what", "MB/s", "runs"}},
		ratios:  table{head: []string{"case", "ratio", "MB/s"}},
	}
	name := fmt.Sprintf("%d MB", size)
	for i, of := range all {
		rep.figures.add(name, what[i], thousands(median(of)), strconv.Itoa(len(of)))
	}
	for _, pair := range [][2]int{{1, 0}, {2, 0}, {4, 3}} {
		rep.ratios.add(name, what[pair[0]]+" / "+what[pair[1]], ratios(all[pair[0]], all[pair[1]]).String())
	}
	return rep, nil
}

// purgatory asks what it costs to wait.
func (l *lab) purgatory(ctx context.Context) (*report, error) {
	b := bench{"purgatory", "^BenchmarkCrowd$", 1}
	if err := b.build(ctx, l); err != nil {
		return nil, err
	}
	all := map[string][]float64{}
	units := []string{"MB", "added/s", "ended/s", "late-ms"}
	for range l.opts.pairs {
		f, err := b.run(ctx, l)
		if err != nil {
			return nil, err
		}
		for _, unit := range units {
			all[unit] = append(all[unit], f[unit])
		}
	}
	rep := &report{
		about:   "100,000 operations that wait at once, each for a key of its own: the heap that they take together, how fast they are added and ended, and how late they are (the median) when all of them expire within one second.",
		figures: table{head: []string{"case", "what", "median", "runs"}},
	}
	for i, what := range []string{"heap, MB", "added a second", "ended a second"} {
		rep.figures.add("100,000", what, thousands(median(all[units[i]])), strconv.Itoa(len(all[units[i]])))
	}
	rep.figures.add("100,000", "late, ms", decimal(median(all["late-ms"]), 2), strconv.Itoa(len(all["late-ms"])))
	return rep, nil
}
