package faults_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// spilling is a mirror that reads on while its target is away, and how it is known that nothing but its disk has what it read.
type spilling struct {
	*mirrorer

	topic, to string
}

func newSpilling(t *testing.T, src, dst *kafkatest.Cluster, topic string, id int) *spilling {
	t.Helper()
	s := &spilling{topic: topic, to: topic + ".copy"}
	s.mirrorer = newMirrorer(t, topic, between(src.Bootstrap(), dst.Bootstrap(), topic, "--rename", "{topic}.copy", "--commit-interval", "300ms",
		"--spill-max", "8GiB")...)
	s.args = append(s.args, "--config", s.file(t, fmt.Sprintf("route: {id: %d}\n", id)))
	src.CreateTopic(t, topic, 2, nil)
	return s
}

// start overrides the memory that mirrors have in this package.
func (s *spilling) start(t *testing.T) {
	t.Helper()
	s.mirrorer.start(t, "--memory", "64MiB")
}

// purge deletes what the source has, once all of it was read.
func (s *spilling) purge(t *testing.T, src *kafkatest.Cluster) {
	t.Helper()
	admin := kadm.NewClient(src.Client(t))
	ends, err := admin.ListEndOffsets(t.Context(), s.topic)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		places, read := s.places(t, s.topic), 0
		for i, p := range places {
			if end, _ := ends.Lookup(s.topic, int32(i)); p.Position >= end.Offset && p.SpilledBytes > 0 {
				read++
			}
		}
		return read == 2
	}, caughtWithin, 50*time.Millisecond, "%s: the source is not read to its end, to disk", s.topic)
	_, err = admin.DeleteRecords(t.Context(), ends.Offsets())
	require.NoError(t, err)
}

// TestOutageOfTheTargetOutlastsTheSource: the target is down for longer than the source keeps its records. One mirror runs all the time, another is
// killed in between. Each brings everything, in order, once. At full length that is 10 MB a second for three minutes.
func TestOutageOfTheTargetOutlastsTheSource(t *testing.T) {
	t.Parallel()
	src := kafkatest.Shared(t, kafkatest.Kafka3)
	dst := kafkatest.Start(t, kafkatest.Options{Version: kafkatest.Kafka4, Heap: "256m"})
	const witness, valueBytes = "outlasting.witness", 1000
	src.CreateTopic(t, witness, 2, nil)
	mirrors := []*spilling{newSpilling(t, src, dst, "outlasting", 1), newSpilling(t, src, dst, "outlasting.killed", 2)}
	written := 0
	write := func(records int) {
		for _, to := range []string{mirrors[0].topic, mirrors[1].topic, witness} {
			kafkatest.Load(t, src.Bootstrap(), kafkatest.LoadOptions{
				Topic: to, First: written, Records: records, ValueBytes: valueBytes, Codec: "none", BatchBytes: 32 << 10,
			})
		}
		written += records
	}
	write(1000)
	for _, m := range mirrors {
		m.start(t)
		m.caughtUp(t, m.topic)
	}
	require.NoError(t, dst.Broker(0).Kill())
	down, dark, rate := time.Now(), time.Duration(rounds(16, 180))*time.Second, rounds(6000, 10_000)
	for killed := false; time.Since(down) < dark; {
		began := time.Now()
		write(rate)
		if !killed && time.Since(down) > dark/2 {
			for _, m := range mirrors {
				m.purge(t, src)
			}
			mirrors[1].kill(t)
			mirrors[1].start(t)
			killed = true
		}
		pass(t, time.Second-time.Since(began))
	}
	for _, m := range mirrors {
		m.purge(t, src)
		require.Less(t, m.peak(t), 100<<20, "%s has 64 MiB of memory", m.topic)
	}
	require.NoError(t, dst.Broker(0).Start(t.Context()))
	back := time.Now()
	for _, m := range mirrors {
		m.caughtUp(t, m.topic)
		t.Logf("%s: %d MB, of which the source has nothing, are there %v after the target", m.topic, written*valueBytes/1e6, time.Since(back).Round(time.Millisecond))
		_, told := get(t, m.api(t)+"/api/v1/events")
		require.NotContains(t, told, "range_skipped")
		require.NotContains(t, told, "duplicates_possible")
		m.stop(t)
		d, err := kafkatest.CompareTopics(t.Context(), kafkatest.Comparison{
			Source: src.Bootstrap(), Target: dst.Bootstrap(), Topic: witness, ToTopic: m.to, IgnoreTimestamps: true,
		})
		require.NoError(t, err)
		t.Log(m.topic, d.String())
		require.True(t, d.Equal(), d.String())
		require.EqualValues(t, written, d.Records)
	}
}
