package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// machine is what the figures were measured on.
type machine struct {
	cpu, kernel, java, revision string
	memory                      float64 // GB of 2^30 bytes
}

func thisMachine(ctx context.Context) machine {
	return machine{
		cpu:      orUnknown(field(read("/proc/cpuinfo"), "model name")),
		kernel:   orUnknown(strings.TrimSpace(read("/proc/sys/kernel/osrelease"))),
		memory:   kilobytes(read("/proc/meminfo"), "MemTotal") / (1 << 20),
		java:     orUnknown(javaVersion(output(ctx, javaProgram(), "-version"))),
		revision: orUnknown(strings.TrimSpace(output(ctx, "git", "describe", "--always", "--dirty"))),
	}
}

// conditions is one paragraph that says when and where a part was measured, and how many cores others kept busy before.
func (m machine) conditions(at time.Time, busy float64) string {
	text := fmt.Sprintf("Measured %s: %s, %d cores, %.0f GB, Linux %s; %s, Java %s, Kafka %s, Causeway %s.",
		at.UTC().Format(time.DateOnly), m.cpu, runtime.NumCPU(), m.memory, m.kernel, runtime.Version(), m.java, kafkatest.Kafka3, m.revision)
	if busy > float64(runtime.NumCPU())/10 {
		text += fmt.Sprintf(" **The machine was not idle** (%.1f cores were busy before): compare ratios only, if anything.", busy)
	}
	return text
}

// javaVersion finds "17.0.15" in what `java -version` prints.
func javaVersion(printed string) string {
	_, rest, _ := strings.Cut(printed, `"`)
	version, _, found := strings.Cut(rest, `"`)
	if !found {
		return ""
	}
	return version
}

// javaProgram is the Java that the brokers run on, too.
func javaProgram() string {
	if home := os.Getenv("JAVA_HOME"); home != "" {
		return home + "/bin/java"
	}
	return "java"
}

// read returns a small file's text, nothing if it can't be read.
func read(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(text)
}

// output returns what a program prints, nothing if it fails.
func output(ctx context.Context, name string, args ...string) string {
	text, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return ""
	}
	return string(text)
}

func orUnknown(text string) string {
	if text == "" {
		return "unknown"
	}
	return text
}
