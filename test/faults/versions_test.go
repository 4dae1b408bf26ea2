package faults_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/internal/testkit"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// Between every pair of the two lines of Kafka that are in use, what arrives is what was written: by the judgement of an independent reader and
// of `causeway verify`, which must also see a copy that is short by one record.
func TestEveryPairOfVersions(t *testing.T) { //nolint:tparallel // its pairs one after the other: they are heavy
	t.Parallel()
	records := 30_000
	if testkit.Long() {
		records = 2_000_000
	}
	old, recent := kafkatest.Shared(t, kafkatest.Kafka3), kafkatest.Shared(t, kafkatest.Kafka4)
	other := kafkatest.Start(t, kafkatest.Options{Version: kafkatest.Kafka3})
	for _, pair := range []struct {
		name     string
		src, dst *kafkatest.Cluster
	}{
		{"3-to-3", old, other},
		{"3-to-4", old, recent},
		{"4-to-3", recent, old},
	} {
		t.Run(pair.name, func(t *testing.T) {
			topic := "pair-" + pair.name
			pair.src.CreateTopic(t, topic, 8, nil)
			kafkatest.Load(t, pair.src.Bootstrap(), kafkatest.LoadOptions{Topic: topic, Records: records, Headers: 1})
			m := newMirrorer(t, "mirror", between(pair.src.Bootstrap(), pair.dst.Bootstrap(), topic)...)
			m.start(t)
			m.caughtUp(t, topic)
			m.stop(t)
			requireCopy(t, pair.src.Bootstrap(), pair.dst.Bootstrap(), topic, topic, int64(records))

			verify := []string{
				"verify", "--source", strings.Join(pair.src.Bootstrap(), ","), "--target", strings.Join(pair.dst.Bootstrap(), ","), "--topics", topic,
			}
			out, err := exec.CommandContext(t.Context(), program, verify...).CombinedOutput()
			require.NoError(t, err, string(out))
			kafkatest.Load(t, pair.src.Bootstrap(), kafkatest.LoadOptions{Topic: topic, Records: 1, First: records})
			short := slices.Concat(verify, []string{"--timeout", "3s"}) // it waits so long for the record that does not come
			out, err = exec.CommandContext(t.Context(), program, short...).CombinedOutput()
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit, string(out))
			require.Equal(t, 1, exit.ExitCode(), string(out))
		})
	}
}
