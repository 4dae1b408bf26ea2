package handler

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func mappingFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "topicmapping.properties")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func build(t *testing.T, cfg Config) *Handler {
	t.Helper()
	h, err := New(cfg, "sjc1", "dca1")
	require.NoError(t, err)
	return h
}

func TestTargetTopic(t *testing.T) {
	t.Parallel()
	file := mappingFile(t, "# uReplicator's\nfromFile=file.target\nspaced target2\ncolon : target3\nblank=\nboth=lost\ntwice=first\ntwice=second\nnoexpand=a\\u002eb\n")
	tests := []struct {
		name    string
		cfg     Config
		topic   string
		want    string
		refused string
	}{
		{"nothing configured", Config{}, "orders", "orders", ""},
		{"default", DefaultConfig(), "orders", "orders", ""},
		{"renamed", Config{Rename: "{source}.{topic}"}, "orders", "sjc1.orders", ""},
		{"all placeholders", Config{Rename: "{source}-{target}-{topic}_x"}, "orders", "sjc1-dca1-orders_x", ""},
		{"a topic that looks like a placeholder is not replaced again", Config{Rename: "{topic}.{topic}"}, "a", "a.a", ""},
		{"table before rename", Config{Rename: "x.{topic}", Mapping: map[string]string{"orders": "bestellungen"}}, "orders", "bestellungen", ""},
		{"table before file", Config{MappingFile: file, Mapping: map[string]string{"both": "won"}}, "both", "won", ""},
		{"file before rename", Config{MappingFile: file, Rename: "x.{topic}"}, "fromFile", "file.target", ""},
		{"file, blank for equals", Config{MappingFile: file}, "spaced", "target2", ""},
		{"file, colon for equals", Config{MappingFile: file}, "colon", "target3", ""},
		{"file, blank target is ignored", Config{MappingFile: file}, "blank", "blank", ""},
		{"file, the last counts", Config{MappingFile: file}, "twice", "second", ""},
		{"file, escapes", Config{MappingFile: file}, "noexpand", "a.b", ""},
		{"not in file", Config{MappingFile: file, Rename: "x.{topic}"}, "other", "x.other", ""},
		{"longest name", Config{}, strings.Repeat("a", 249), strings.Repeat("a", 249), ""},
		{"too long by rename", Config{Rename: "x{topic}"}, strings.Repeat("a", 249), "", "has 250 characters of at most 249"},
		{"reserved", Config{}, "..", "", "reserved"},
		{"empty", Config{}, "", "", "is empty"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := build(t, test.cfg).Topic(test.topic)
			if test.refused != "" {
				var refused *MappingError
				require.ErrorAs(t, err, &refused)
				require.Equal(t, test.topic, refused.Topic)
				require.ErrorContains(t, err, test.refused)
				return
			}
			require.NoError(t, err)
			require.Equal(t, Topic{Source: test.topic, Target: test.want}, got, "raw: no record function, no fingerprint")
		})
	}
}

func TestConfigFaults(t *testing.T) {
	t.Parallel()
	over := func(tc TopicConfig) Config { return Config{Overrides: map[string]TopicConfig{"orders": tc}} }
	filtered := func(f FilterConfig) Config { return over(TopicConfig{Filter: &f}) }
	tests := []struct {
		name string
		cfg  Config
		want string
	}{
		{"rename without topic", Config{Rename: "all"}, `rename "all": has no {topic}`},
		{"rename with a blank", Config{Rename: "{topic} x"}, `rename "{topic} x": gives no topic a name that Kafka takes: it has the character ' '`},
		{"rename with a slash", Config{Rename: "{topic}x/y"}, `rename "{topic}x/y": gives no topic a name that Kafka takes: it has the character '/'`},
		{"rename that leaves no room", Config{Rename: "{topic}" + strings.Repeat("x", 249)}, "has 250 characters of at most 249"},
		{"override of a pattern", Config{Overrides: map[string]TopicConfig{"(": {}}}, `overrides "(": must be the whole name of one topic: has the character '('`},
		{"unknown placeholder", Config{Rename: "{topic}.{dc}"}, `rename "{topic}.{dc}": has a placeholder other than`},
		{"mismatch", Config{PartitionMismatch: "wrap"}, `partition_mismatch "wrap": is neither halt nor modulo`},
		{"illegal target", Config{Mapping: map[string]string{"a": "b c"}}, `mapping.a: topic "a" maps to "b c", which has the character ' '`},
		{"empty target", Config{Mapping: map[string]string{"a": ""}}, `mapping.a: topic "a" maps to "", which is empty`},
		{"illegal source", Config{Mapping: map[string]string{"ä": "b"}}, `mapping "ä": is no source topic: it has the character 'ä'`},
		{"no file", Config{MappingFile: "/nowhere/x"}, `mapping_file "/nowhere/x": cannot be read: no such file`},
		{"illegal in file", Config{MappingFile: mappingFile(t, "a=b/c")}, `maps to "b/c", which has the character '/'`},
		{"header pattern", filtered(FilterConfig{Header: &HeaderMatch{Name: "h", Matches: "("}}), `overrides.orders.filter.header.matches "(": is no RE2 expression`},
		{"backreference", filtered(FilterConfig{Key: &KeyMatch{Matches: `(a)\1`}}), `overrides.orders.filter.key.matches`},
		{"empty pattern", filtered(FilterConfig{Key: &KeyMatch{}}), `overrides.orders.filter.key.matches: is empty`},
		{"header without name", filtered(FilterConfig{Header: &HeaderMatch{Matches: "x"}}), `overrides.orders.filter.header.name: is empty`},
		{"tombstones", filtered(FilterConfig{Key: &KeyMatch{Matches: "x"}, Tombstones: "bury"}), `overrides.orders.filter.tombstones "bury": is neither keep nor drop`},
		{"three replicas", over(TopicConfig{Replicas: 3}), `overrides.orders.replicas "3": must be 1, or 2 for a hot standby`},
		{"replicas below none", over(TopicConfig{Replicas: -1}), `overrides.orders.replicas "-1"`},
		{"empty filter", filtered(FilterConfig{}), `overrides.orders.filter: has neither`},
		{"no headers", over(TopicConfig{Transform: &TransformConfig{}}), `overrides.orders.transform.add_headers: is empty`},
		{"header without a name", over(TopicConfig{Transform: &TransformConfig{AddHeaders: map[string]string{"": "x"}}}), "a header without name"},
	}
	_, err := New(Config{Rename: "{source}.{topic}", MappingFile: "/nowhere/x"}, "a b", "c")
	require.ErrorContains(t, err, `rename "{source}.{topic}": gives "a b.{topic}", and so no topic a name that Kafka takes: it has the character ' '`)
	require.ErrorContains(t, err, "mapping_file")
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := New(test.cfg, "a", "b")
			require.ErrorContains(t, err, test.want)
		})
	}
	all := Config{Rename: "x", PartitionMismatch: "y", Mapping: map[string]string{"a": " "}, MappingFile: "/nowhere/x"}
	_, err = New(all, "a", "b")
	for _, want := range []string{"rename", "partition_mismatch", "mapping.a", "mapping_file"} {
		require.ErrorContains(t, err, want, "all faults at once")
	}
}

func TestAlign(t *testing.T) {
	t.Parallel()
	h := build(t, Config{Rename: "x.{topic}"})
	for _, row := range []struct {
		name           string
		source, target int32
		ok             bool
	}{{"equal", 4, 4, true}, {"more", 4, 9, true}, {"fewer", 4, 3, false}, {"none there", 4, 0, false}, {"none here", 0, 4, false}} {
		a, err := h.Align("orders", row.source, row.target)
		if !row.ok {
			var refused *AlignmentError
			require.ErrorAs(t, err, &refused, row.name)
			require.Equal(t, AlignmentError{Topic: "orders", Target: "x.orders", SourcePartitions: row.source, TargetPartitions: row.target}, *refused)
			continue
		}
		require.NoError(t, err, row.name)
		for p := range row.source {
			target, shared := a.Target(p)
			require.Equal(t, p, target)
			require.False(t, shared, "%s", row.name)
		}
	}
	_, err := h.Align("orders", 8, 6)
	require.EqualError(t, err, "topic orders has 8 partitions, target topic x.orders has 6: add partitions to x.orders until it has 8, or set partition_mismatch: modulo")
	_, err = h.Align("a b", 1, 1)
	var refused *MappingError
	require.ErrorAs(t, err, &refused)
}

// TestModulo counts by hand who writes where.
func TestModulo(t *testing.T) {
	t.Parallel()
	h := build(t, Config{PartitionMismatch: Modulo})
	rapid.Check(t, func(t *rapid.T) {
		source, target := rapid.Int32Range(1, 40).Draw(t, "source"), rapid.Int32Range(1, 40).Draw(t, "target")
		a, err := h.Align("orders", source, target)
		require.NoError(t, err)
		writers := map[int32]int{}
		for p := range source {
			writers[p%target]++
		}
		for p := range source {
			got, shared := a.Target(p)
			require.Equal(t, p%target, got)
			require.Equal(t, writers[got] > 1, shared, "%d of %d onto %d", p, source, target)
		}
	})
	huge, err := h.Align("orders", 1<<31-1, 1<<31-2)
	require.NoError(t, err)
	for p, want := range map[int32]bool{0: true, 1: false, 1<<31 - 2: true, 1<<31 - 3: false} {
		_, shared := huge.Target(p)
		require.Equal(t, want, shared, "%d", p)
	}
}

func TestSharedTopics(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		cfg   Config
		topic string
		want  bool
	}{
		{"nothing mapped", Config{}, "a", false},
		{"two in the table", Config{Mapping: map[string]string{"a": "x", "b": "x"}}, "a", true},
		{"the table onto an unmapped name", Config{Mapping: map[string]string{"a": "x"}}, "x", true},
		{"the one it is mapped onto", Config{Mapping: map[string]string{"a": "x"}}, "a", true},
		{"onto a name that is mapped away", Config{Mapping: map[string]string{"a": "b", "b": "c"}}, "a", false},
		{"swapped", Config{Mapping: map[string]string{"a": "b", "b": "a"}}, "a", false},
		{"onto itself", Config{Mapping: map[string]string{"a": "a"}}, "a", false},
		{"not the others", Config{Mapping: map[string]string{"a": "x", "b": "x"}}, "c", false},
		{"rename keeps them apart", Config{Rename: "p.{topic}", Mapping: map[string]string{"a": "x"}}, "a", false},
		{"rename leads there", Config{Rename: "p.{topic}", Mapping: map[string]string{"a": "p.b"}}, "b", true},
		{"rename to the table's", Config{Rename: "p.{topic}.s", Mapping: map[string]string{"a": "p.b.s"}}, "a", true},
		{"doubled name leads there", Config{Rename: "{topic}-{topic}", Mapping: map[string]string{"a": "b-b"}}, "a", true},
		{"doubled name can't lead there", Config{Rename: "{topic}-{topic}", Mapping: map[string]string{"a": "b-c"}}, "a", false},
		{"nothing is left for a topic", Config{Rename: "p.{topic}", Mapping: map[string]string{"a": "p."}}, "a", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			a, err := build(t, test.cfg).Align(test.topic, 2, 2)
			require.NoError(t, err)
			target, shared := a.Target(1)
			require.Equal(t, int32(1), target)
			require.Equal(t, test.want, shared)
		})
	}
}

// TestSharedModel: whatever the configuration, two topics that land on one target both know it.
func TestSharedModel(t *testing.T) {
	t.Parallel()
	names := []string{"a", "b", "p.a", "p.b", "p.p.a"}
	rapid.Check(t, func(t *rapid.T) {
		cfg := Config{
			Rename:  rapid.SampledFrom([]string{"", "p.{topic}", "{topic}.a", "{topic}"}).Draw(t, "rename"),
			Mapping: rapid.MapOf(rapid.SampledFrom(names), rapid.SampledFrom(names)).Draw(t, "mapping"),
		}
		h, err := New(cfg, "s", "t")
		require.NoError(t, err)
		for _, x := range names {
			for _, y := range names {
				tx, errX := h.Topic(x)
				ty, errY := h.Topic(y)
				require.NoError(t, errX)
				require.NoError(t, errY)
				if x == y || tx.Target != ty.Target {
					continue
				}
				a, err := h.Align(x, 1, 1)
				require.NoError(t, err)
				_, shared := a.Target(0)
				require.True(t, shared, "%s and %s both go to %s", x, y, tx.Target)
			}
		}
	})
}
