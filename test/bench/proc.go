package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
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

// loadAverage is how many processes wanted a core in the last minute; 0 if unknown.
func loadAverage() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), " ")
	load, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0
	}
	return load
}
