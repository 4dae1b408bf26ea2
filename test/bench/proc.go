package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// ticksPerSecond is USER_HZ, in which Linux gives CPU times to programs on every architecture Go knows.
const ticksPerSecond = 100

// usage is what a process has used so far.
type usage struct {
	cpu      float64 // user and system seconds
	resident float64 // MB of 2^20 bytes
	peak     float64 // MB, the most it ever had
}

// usageOf reads what a running process has used from /proc.
func usageOf(pid int) (usage, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return usage{}, err
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return usage{}, err
	}
	u := usage{resident: kilobytes(string(status), "VmRSS") / 1024, peak: kilobytes(string(status), "VmHWM") / 1024}
	u.cpu, err = cpuSeconds(string(stat))
	return u, err
}

// cpuSeconds reads user and system time from the text of /proc/PID/stat. The program's name, in brackets, may hold anything.
func cpuSeconds(stat string) (float64, error) {
	const user, system = 11, 12 // counted from behind the name
	end := strings.LastIndexByte(stat, ')')
	fields := strings.Fields(stat[end+1:])
	if end < 0 || len(fields) <= system {
		return 0, errors.New("read /proc stat: too few fields")
	}
	u, errUser := strconv.ParseFloat(fields[user], 64)
	s, errSystem := strconv.ParseFloat(fields[system], 64)
	return (u + s) / ticksPerSecond, errors.Join(errUser, errSystem)
}

// kilobytes reads one value of /proc/PID/status or /proc/meminfo; 0 if it is not there, as in a zombie.
func kilobytes(text, key string) float64 {
	value := field(text, key)
	n, err := strconv.ParseFloat(strings.TrimSuffix(value, " kB"), 64)
	if err != nil {
		return 0
	}
	return n
}

// field returns what stands behind "key:" at the beginning of a line.
func field(text, key string) string {
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(line, ":")
		if ok && strings.TrimSpace(name) == key {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// busyFor is how long busyCores looks.
const busyFor = 3 * time.Second

// busyCores is how many cores somebody keeps busy while this program waits; 0 if unknown. The load average would still count what the part
// before has done.
func busyCores(ctx context.Context) float64 {
	before := busySeconds(read("/proc/stat"))
	began := time.Now()
	select {
	case <-ctx.Done():
		return 0
	case <-time.After(busyFor):
	}
	return (busySeconds(read("/proc/stat")) - before) / time.Since(began).Seconds()
}

// busySeconds sums what all cores have worked, from the text of /proc/stat.
func busySeconds(stat string) float64 {
	const idle, ioWait, steal = 3, 4, 7 // of the first line's columns: user nice system idle iowait irq softirq steal …
	first, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(strings.TrimPrefix(first, "cpu "))
	var ticks float64
	for i, f := range fields {
		if n, err := strconv.ParseFloat(f, 64); err == nil && i != idle && i != ioWait && i <= steal {
			ticks += n
		}
	}
	return ticks / ticksPerSecond
}
