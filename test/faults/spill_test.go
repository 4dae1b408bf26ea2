package faults_test

import (
	"io/fs"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// outlastsTheSource: the target is away for longer than the source keeps its records, and the process is killed meanwhile. What is on disk by then
// arrives in order, once. What the source had is compared with a second topic that was given the same.
func outlastsTheSource(t *testing.T, k *kafkatest.Cluster) {
	t.Helper()
	const topic, witness, valueBytes = "outlasted", "outlasted-witness", 1000
	k.CreateTopic(t, topic, 2, nil)
	k.CreateTopic(t, witness, 2, nil)
	m := newMirrorer(t, "mirror", between(k.Bootstrap(), k.ProxyBootstrap(), topic, "--rename", "{topic}.copy", "--commit-interval", "300ms",
		"--memory", "64MiB", "--spill-max", "4GiB")...)
	written := 0
	write := func(records int) {
		for _, to := range []string{topic, witness} {
			kafkatest.Load(t, k.Bootstrap(), kafkatest.LoadOptions{
				Topic: to, First: written, Records: records, ValueBytes: valueBytes, Codec: "none", BatchBytes: 32 << 10,
			})
		}
		written += records
	}
	write(1000)
	m.start(t)
	m.caughtUp(t, topic)
	proxy := k.Broker(0).Proxy()
	proxy.Refuse()
	down := time.Now()
	dark := time.Duration(rounds(20, 180)) * time.Second
	rate := rounds(1500, 10_000) // records a second
	for killed := false; time.Since(down) < dark; {
		began := time.Now()
		write(rate)
		if !killed && time.Since(down) > dark/2 {
			m.awaitSpilled(t, int64(written-1000)*valueBytes)
			deleteAll(t, k, topic)
			m.kill(t)
			m.start(t)
			killed = true
		}
		pass(t, time.Second-time.Since(began))
	}
	m.awaitSpilled(t, int64(written-1000)*valueBytes)
	deleteAll(t, k, topic)
	require.NoError(t, proxy.Heal())
	m.caughtUp(t, topic)
	m.stop(t)
	d, err := kafkatest.CompareTopics(t.Context(), kafkatest.Comparison{
		Source: k.Bootstrap(), Target: k.Bootstrap(), Topic: witness, ToTopic: topic + ".copy", IgnoreTimestamps: true,
	})
	require.NoError(t, err)
	t.Log(d.String())
	require.True(t, d.Equal(), d.String())
	require.EqualValues(t, written, d.Records)
}

// awaitSpilled waits until so many bytes are on disk.
func (m *mirrorer) awaitSpilled(t *testing.T, bytes int64) {
	t.Helper()
	require.Eventually(t, func() bool {
		on := int64(0)
		_ = filepath.WalkDir(filepath.Join(m.state(), "spill"), func(_ string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				if info, err := e.Info(); err == nil {
					on += info.Size()
				}
			}
			return nil
		})
		return on >= bytes
	}, caughtWithin, 50*time.Millisecond, "not on disk")
}

// deleteAll deletes what a topic has.
func deleteAll(t *testing.T, k *kafkatest.Cluster, topic string) {
	t.Helper()
	admin := kadm.NewClient(k.Client(t))
	ends, err := admin.ListEndOffsets(t.Context(), topic)
	require.NoError(t, err)
	done, err := admin.DeleteRecords(t.Context(), ends.Offsets())
	require.NoError(t, err)
	require.NoError(t, done.Error())
}
