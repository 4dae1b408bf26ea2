package main

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

func TestDemoOnRealBrokers(t *testing.T) {
	t.Parallel()
	kafkatest.Require(t)
	dir := t.TempDir()
	code, stdout, stderr := command(t.Context(), "demo", "--kafka", "--for", "2s", "--rate", "1000", "--listen", "127.0.0.1:0", "--dir", dir)
	require.Equal(t, 0, code, stdout+stderr)
	require.Contains(t, stdout, "starting two brokers of Kafka ")
	require.Contains(t, stdout, "verdict: equal: ")
	require.DirExists(t, filepath.Join(dir, "kafka", "source", "data"))
	for _, side := range []string{"source", "target"} {
		address := regexp.MustCompile(side + ` cluster +([0-9.:]+)`).FindStringSubmatch(stdout)
		require.Len(t, address, 2, stdout)
		require.True(t, refuses(address[1]), "the broker has ended with the demo")
	}
}

// TestKilledDemoLeavesNoBroker: nobody cleans up behind a kill -9 but the kernel.
func TestKilledDemoLeavesNoBroker(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends the children of a process that was killed")
	}
	kafkatest.Require(t)
	p := launch(t, "demo", "--kafka", "--listen", "127.0.0.1:0", "--dir", t.TempDir())
	brokers := regexp.MustCompile(`cluster +(127\.0\.0\.1:[0-9]+)`)
	require.True(t, eventually(func() bool { return len(brokers.FindAllString(p.out.String(), -1)) == 2 }, 3*time.Minute), p.out.String()+p.errs.String())
	require.NoError(t, p.cmd.Process.Kill())
	p.wait(t)
	for _, m := range brokers.FindAllStringSubmatch(p.out.String(), -1) {
		require.True(t, eventually(func() bool { return refuses(m[1]) }, 20*time.Second), m[1])
	}
}

// refuses says that nobody listens at an address.
func refuses(address string) bool {
	conn, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return true
	}
	_ = conn.Close()
	return false
}

// TestDemoSaysWhatRealBrokersLack is not parallel: it changes the environment.
func TestDemoSaysWhatRealBrokersLack(t *testing.T) {
	empty := t.TempDir()
	for _, name := range []string{"JAVA_HOME", "KAFKA_HOME"} {
		t.Setenv(name, "")
	}
	t.Setenv("PATH", empty)
	t.Setenv("CAUSEWAY_KAFKA_HOME", empty)
	code, _, stderr := command(t.Context(), "demo", "--kafka", "--rate", "0")
	require.Equal(t, 1, code)
	for _, text := range []string{"--rate", "install a Java runtime", empty, "run `make kafka`", "set KAFKA_HOME"} {
		require.Contains(t, stderr, text)
	}
	t.Setenv("KAFKA_HOME", empty)
	code, _, stderr = command(t.Context(), "demo", "--kafka")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, `KAFKA_HOME "`+empty+`"`)
	require.Contains(t, stderr, "kafka-clients-VERSION.jar")
	require.NoError(t, os.WriteFile(filepath.Join(empty, "java"), []byte("#!/bin/sh\n"), 0o700))
	t.Setenv("JAVA_HOME", "/nope")
	code, _, stderr = command(t.Context(), "demo", "--kafka")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, `JAVA_HOME "/nope": has no bin/java`, "another Java than the one that is named must not be taken silently")
}
