package faults_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// The positions' disk is full: the process ends by itself with one clear line, and once there is room again nothing is missing and nothing is
// there twice.
func TestStateDiskFull(t *testing.T) {
	t.Parallel()
	k := kafkatest.Shared(t, kafkatest.Kafka3)
	const topic = "full"
	k.CreateTopic(t, topic, 40, nil)
	kafkatest.Load(t, k.Bootstrap(), kafkatest.LoadOptions{Topic: topic, Records: 20_000})
	m := newMirrorer(t, "mirror", between(k.Bootstrap(), k.Bootstrap(), topic, "--rename", "{topic}.copy", "--commit-interval", "20ms")...)
	require.NoError(t, os.MkdirAll(m.state(), 0o700))
	if err := syscall.Mount("tmpfs", m.state(), "tmpfs", 0, "size=1m"); errors.Is(err, syscall.EPERM) {
		t.Skip("SKIPPED: a small file system can only be mounted by root")
	} else {
		require.NoError(t, err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(m.state(), syscall.MNT_DETACH)) })
	filler := filepath.Join(m.state(), "filler")
	require.NoError(t, os.WriteFile(filler, make([]byte, 1<<20-56<<10), 0o600)) // room for some checkpoints, not for all

	m.start(t)
	require.Eventually(t, func() bool { return !m.run.Running() }, time.Minute, 20*time.Millisecond, "the process goes on although it can't store positions")
	require.Equal(t, 70, m.run.ExitCode())
	require.Contains(t, m.run.Log(), "no space left on device")

	require.NoError(t, os.Remove(filler))
	m.start(t)
	m.caughtUp(t, topic)
	m.stop(t)
	requireCopy(t, k.Bootstrap(), k.Bootstrap(), topic, topic+".copy", 20_000)
}
