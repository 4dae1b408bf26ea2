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

// smokeLab has one cluster that is both source and target: copies have other names.
func smokeLab(t *testing.T) *lab {
	t.Helper()
	k := kafkatest.Shared(t, kafkatest.Kafka3)
	l := &lab{opts: options{pairs: 1, quick: true, limit: time.Minute}, stdout: t.Output(), dir: t.TempDir()}
	for _, place := range []**site{&l.source, &l.target} {
		s, err := newSite(k)
		require.NoError(t, err)
		t.Cleanup(s.adm.Close)
		*place = s
	}
	if err := l.diskFree(); err != nil {
		t.Skip(err)
	}
	return l
}

// requireNoTopics fails if a topic is left whose name begins so.
func (l *lab) requireNoTopics(ctx context.Context, t *testing.T, prefix string) {
	t.Helper()
	topics, err := l.target.adm.ListTopics(ctx)
	require.NoError(t, err)
	for name := range topics {
		require.NotContains(t, name, prefix, "topics are removed")
	}
}

// A race as the parts run it, with the smallest load and without MirrorMaker, so that the program can't rot unnoticed.
func TestRaceOnRealBroker(t *testing.T) {
	t.Parallel()
	l := smokeLab(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	require.NoError(t, l.build(ctx, "cmd/causeway", "test/bench/floor"))
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
	l.requireNoTopics(ctx, t, "smoke")
}

// The part `cluster` with few partitions and short sessions. How long things take says nothing here; that no record is lost or comes twice does.
func TestClusterOnRealBroker(t *testing.T) {
	t.Parallel()
	l := smokeLab(t)
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	rep, err := l.cluster(ctx)
	require.NoError(t, err)
	t.Log("\n" + rep.String())
	events := map[string]bool{}
	for _, row := range rep.figures.rows {
		event, figure, largest := row[0], row[1], row[3]
		events[event] = true
		switch figure {
		case figureLost, figureTwice, figureDuplicates:
			require.Equal(t, "0", largest, "%s: %s", event, figure)
		}
	}
	require.Len(t, events, 13, "an event of each kind, and those that happen with both session timeouts twice")
	for _, prefix := range []string{"short", "usual"} {
		l.requireNoTopics(ctx, t, prefix)
	}
}
