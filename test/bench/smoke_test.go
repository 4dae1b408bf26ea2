package main

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

func TestMain(m *testing.M) { kafkatest.Main(m) }

// A race as the parts run it, with the smallest load and without MirrorMaker, so that the program can't rot unnoticed.
func TestRaceOnRealBroker(t *testing.T) {
	t.Parallel()
	k := kafkatest.Shared(t, kafkatest.Kafka3)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	l := &lab{opts: options{pairs: 1, quick: true, limit: time.Minute}, stdout: t.Output(), dir: t.TempDir()}
	require.NoError(t, l.build(ctx))
	for _, place := range []**site{&l.source, &l.target} { // one cluster is both: copies have other names
		s, err := newSite(k)
		require.NoError(t, err)
		t.Cleanup(s.adm.Close)
		*place = s
	}
	if err := l.diskFree(); err != nil {
		t.Skip(err)
	}
	s, err := l.race(ctx, race{
		name: "smoke", job: l.job("smoke", 2, "lz4", 20_000), batch: 4 << 10, pairs: 1, target: l.target,
		entrants: []entrant{l.floor("floor"), l.causeway("causeway", ""), l.recordCopier(), l.mirrorMaker()},
		compare:  [][2]string{{"causeway", "floor"}},
	})
	require.NoError(t, err)
	for _, name := range []string{"floor", "causeway", "kgo"} {
		require.Len(t, s.results[name], 1)
		r := s.results[name][0]
		require.NotContains(t, r.note, "failed", name)
		require.NotContains(t, r.note, "stopped", name)
		require.Positive(t, r.resident, name)
	}
	require.Equal(t, errMissing.Error(), s.results["mm2"][0].note)
	rep := newReport("Smoke.")
	rep.add(s)
	require.Contains(t, rep.String(), "causeway / floor")
	left, err := os.ReadDir(l.dir)
	require.NoError(t, err)
	require.Len(t, left, 2, "only the two programs are left of the runs")
	topics, err := l.target.adm.ListTopics(ctx)
	require.NoError(t, err)
	for name := range topics {
		require.NotContains(t, name, "smoke", "topics are removed")
	}
}
