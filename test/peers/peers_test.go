package peers_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/internal/testkit"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// trial is a case that both mirrors go through.
type trial struct {
	name string
	// settings are those of MirrorMaker 2 that are tried one after the other, beyond those of every case; the first are mostly none. SOURCE stands for
	// the source's alias.
	settings []map[string]string
	run      func(t *testing.T, s *site)
}

func trials() []trial {
	defaults := map[string]string(nil)
	committed := map[string]string{"SOURCE.consumer.isolation.level": "read_committed"}
	once := map[string]string{"target.exactly.once.source.support": "enabled"}
	large := map[string]string{
		"target.producer.max.request.size": "10485760", "target.producer.compression.type": "zstd", "SOURCE->target.errors.tolerance": "all",
		"SOURCE->target.errors.log.enable": "true", "SOURCE->target.errors.log.include.messages": "true",
		"SOURCE->target.sync.topic.configs.enabled": "false",
	}
	return []trial{
		{"C1", []map[string]string{defaults, committed}, abortedTransactions},
		{"C4", []map[string]string{defaults}, timestampTypes},
		{"C6", []map[string]string{defaults}, purged},
		{"C7", []map[string]string{defaults, large}, tooLarge},
		{"C11", []map[string]string{defaults, once}, restarted},
		{"C14", []map[string]string{defaults}, recreated},
		{"C16", []map[string]string{defaults}, grown},
		{"C28", []map[string]string{defaults}, standstill},
		{"C29", []map[string]string{defaults, committed}, nothingMore},
	}
}

// TestPeers puts both mirrors through the cases.
func TestPeers(t *testing.T) {
	if !testkit.Long() {
		t.Skip("MirrorMaker 2 takes minutes: CAUSEWAY_LONG=1")
	}
	kafkatest.RequireMirrorMaker(t, version)
	l := newLab(t)
	for _, c := range trials() {
		t.Run(c.name, func(t *testing.T) {
			ours := l.turn(t, c, causeway, nil, 0)
			require.Empty(t, ours.Flaws, "Causeway does not hold %s", c.name)
			for i, settings := range c.settings {
				l.turn(t, c, mirrorMaker, settings, i+1)
			}
		})
	}
}

// turn is one mirror's go at a case. What it finds is written down if that is asked for.
func (l *lab) turn(t *testing.T, c trial, kind string, settings map[string]string, n int) result {
	t.Helper()
	alias := strings.ToLower(c.name) + "x" + strconv.Itoa(n)
	s := &site{
		lab:    l,
		mirror: &mirror{kind: kind, alias: alias, dir: filepath.Join(t.ArtifactDir(), alias), settings: settings},
		result: result{Case: c.name, Mirror: kind, Date: time.Now().UTC().Format(time.DateOnly), Settings: inWords(settings)},
	}
	if kind == mirrorMaker {
		s.Version = version
		s.Common = inWords((&mirror{alias: "SOURCE", topics: []string{"…"}}).properties())
	}
	s.ends = [2]end{{bootstrap: l.source.Bootstrap()[0]}, {bootstrap: l.target.Bootstrap()[0]}}
	s.topics = []string{alias + "-.*"}
	require.NoError(t, os.MkdirAll(s.dir, 0o750))
	t.Cleanup(func() {
		if s.run != nil {
			require.NoError(t, s.run.Kill())
		}
		if t.Failed() && s.run != nil {
			t.Log(s.run.Tail())
		}
	})
	c.run(t, s)
	require.NoError(t, s.run.Kill())
	t.Logf("%+v", s.result)
	if *write {
		keep(t, s.result)
	}
	return s.result
}

// inWords is settings as the table has them.
func inWords(settings map[string]string) string {
	var words []string
	for _, k := range sorted(settings) {
		words = append(words, "`"+k+"="+settings[k]+"`")
	}
	return strings.Join(words, " ")
}
