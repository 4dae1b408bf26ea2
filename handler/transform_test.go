package handler

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/batch"
)

func topicOf(t *testing.T, tc TopicConfig) Topic {
	t.Helper()
	topic, err := build(t, Config{Overrides: map[string]TopicConfig{"orders": tc}}).Topic("orders")
	require.NoError(t, err)
	require.NotNil(t, topic.Records)
	require.NotEmpty(t, topic.Fingerprint)
	return topic
}

func TestFilter(t *testing.T) {
	t.Parallel()
	eu, us := batch.Header{Key: "region", Value: []byte("eu-west")}, batch.Header{Key: "region", Value: []byte("us-east")}
	byHeader := FilterConfig{Header: &HeaderMatch{Name: "region", Matches: "^eu-"}}
	byKey := FilterConfig{Key: &KeyMatch{Matches: "^a\x00"}}
	both := FilterConfig{Header: byHeader.Header, Key: byKey.Key}
	dropping := byHeader
	dropping.Tombstones = DropTombstones
	value := []byte("v")
	tests := []struct {
		name   string
		filter FilterConfig
		record batch.Record
		keep   bool
	}{
		{"header matches", byHeader, batch.Record{Value: value, Headers: []batch.Header{eu}}, true},
		{"header does not", byHeader, batch.Record{Value: value, Headers: []batch.Header{us}}, false},
		{"any of that name", byHeader, batch.Record{Value: value, Headers: []batch.Header{us, eu}}, true},
		{"no header", byHeader, batch.Record{Value: value}, false},
		{"another header's value", byHeader, batch.Record{Value: value, Headers: []batch.Header{{Key: "x", Value: []byte("eu-west")}}}, false},
		{"key matches bytes", byKey, batch.Record{Value: value, Key: []byte("a\x00\xff")}, true},
		{"key does not", byKey, batch.Record{Value: value, Key: []byte("ba\x00")}, false},
		{"null key", byKey, batch.Record{Value: value}, false},
		{"null key and a pattern for everything", FilterConfig{Key: &KeyMatch{Matches: ".*"}}, batch.Record{Value: value}, false},
		{"anywhere in the key", FilterConfig{Key: &KeyMatch{Matches: "b"}}, batch.Record{Value: value, Key: []byte("abc")}, true},
		{"both match", both, batch.Record{Value: value, Key: []byte("a\x00"), Headers: []batch.Header{eu}}, true},
		{"one of both", both, batch.Record{Value: value, Key: []byte("a\x00"), Headers: []batch.Header{us}}, false},
		{"tombstone has no headers", byHeader, batch.Record{Key: []byte("k")}, true},
		{"tombstone is judged by its key", byKey, batch.Record{Key: []byte("k")}, false},
		{"tombstone of a matching key", both, batch.Record{Key: []byte("a\x00")}, true},
		{"tombstones dropped", dropping, batch.Record{Key: []byte("k"), Headers: []batch.Header{eu}}, false},
		{"an empty value is no tombstone", dropping, batch.Record{Value: []byte{}, Headers: []batch.Header{eu}}, true},
		{"only tombstones are dropped", FilterConfig{Tombstones: DropTombstones}, batch.Record{Value: value}, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := test.record
			got, err := topicOf(t, TopicConfig{Filter: &test.filter}).Records(&r)
			require.NoError(t, err)
			require.Equal(t, map[bool]batch.Verdict{true: batch.Keep, false: batch.Drop}[test.keep], got)
			require.Equal(t, test.record, r, "a filter changes nothing")
		})
	}
}

func TestAddHeaders(t *testing.T) {
	t.Parallel()
	topic := topicOf(t, TopicConfig{Transform: &TransformConfig{AddHeaders: map[string]string{"z": "1", "a": "2"}}})
	memory := []batch.Header{{Key: "mine"}, {Key: "the next record's"}}
	r := batch.Record{Key: []byte("k"), Value: []byte("v"), Headers: memory[:1]}
	got, err := topic.Records(&r)
	require.NoError(t, err)
	require.Equal(t, batch.Changed, got)
	require.Equal(t, []batch.Header{{Key: "mine"}, {Key: "a", Value: []byte("2")}, {Key: "z", Value: []byte("1")}}, r.Headers)
	require.Equal(t, "the next record's", memory[1].Key, "the decoder's memory is not written")
}

func TestFilterComesBeforeTransform(t *testing.T) {
	t.Parallel()
	topic := topicOf(t, TopicConfig{
		Filter:    &FilterConfig{Header: &HeaderMatch{Name: "added", Matches: "x"}},
		Transform: &TransformConfig{AddHeaders: map[string]string{"added": "x"}},
	})
	r := batch.Record{Value: []byte("v")}
	got, err := topic.Records(&r)
	require.NoError(t, err)
	require.Equal(t, batch.Drop, got)
	require.Empty(t, r.Headers)
	r.Headers = []batch.Header{{Key: "added", Value: []byte("x")}}
	got, err = topic.Records(&r)
	require.NoError(t, err)
	require.Equal(t, batch.Changed, got)
	require.Len(t, r.Headers, 2)
}

func TestOtherTopicsStayRaw(t *testing.T) {
	t.Parallel()
	h := build(t, Config{Overrides: map[string]TopicConfig{"orders": {Filter: &FilterConfig{Tombstones: DropTombstones}}, "plain": {}}})
	for _, name := range []string{"plain", "payments"} {
		topic, err := h.Topic(name)
		require.NoError(t, err)
		require.Nil(t, topic.Records)
		require.Empty(t, topic.Fingerprint)
	}
}

func TestFingerprint(t *testing.T) {
	t.Parallel()
	base := func() TopicConfig {
		return TopicConfig{
			Filter:    &FilterConfig{Header: &HeaderMatch{Name: "n", Matches: "m"}, Key: &KeyMatch{Matches: "k"}},
			Transform: &TransformConfig{AddHeaders: map[string]string{"a": "1", "b": "2", "c": "3", "d": "4"}},
		}
	}
	// It stands in checkpoints: if this value changes without fingerprintVersion, an upgrade begins a new epoch everywhere.
	require.Equal(t, golden, topicOf(t, base()).Fingerprint)
	same := base()
	same.Filter.Tombstones = KeepTombstones
	require.Equal(t, golden, topicOf(t, same).Fingerprint, "the default, said aloud")
	same.Replicas = 2
	require.Equal(t, golden, topicOf(t, same).Fingerprint, "how many workers copy it")

	changes := map[string]func(*TopicConfig){
		"header name":    func(c *TopicConfig) { c.Filter.Header.Name = "x" },
		"header pattern": func(c *TopicConfig) { c.Filter.Header.Matches = "x" },
		"no header":      func(c *TopicConfig) { c.Filter.Header = nil },
		"key pattern":    func(c *TopicConfig) { c.Filter.Key.Matches = "x" },
		"key for header": func(c *TopicConfig) { c.Filter.Key = nil },
		"tombstones":     func(c *TopicConfig) { c.Filter.Tombstones = DropTombstones },
		"no filter":      func(c *TopicConfig) { c.Filter = nil },
		"no transform":   func(c *TopicConfig) { c.Transform = nil },
		"a header more":  func(c *TopicConfig) { c.Transform.AddHeaders["e"] = "5" },
		"a header's own": func(c *TopicConfig) { c.Transform.AddHeaders["d"] = "5" },
	}
	seen := map[string]string{golden: "base"}
	for name, change := range changes {
		cfg := base()
		change(&cfg)
		got := topicOf(t, cfg).Fingerprint
		require.NotContains(t, seen, got, "%s gives the same as %s", name, seen[got])
		seen[got] = name
	}
}

const golden = "1:55bd5788a7db41735ec956de2b495df4"

func BenchmarkFilter(b *testing.B) {
	h, err := New(Config{Overrides: map[string]TopicConfig{"orders": {Filter: &FilterConfig{Header: &HeaderMatch{Name: "region", Matches: "^eu-"}}}}}, "a", "b")
	require.NoError(b, err)
	topic, err := h.Topic("orders")
	require.NoError(b, err)
	r := batch.Record{Value: []byte("v"), Headers: []batch.Header{{Key: "trace", Value: []byte("1")}, {Key: "region", Value: []byte("eu-west")}}}
	b.ReportAllocs()
	for b.Loop() {
		if v, err := topic.Records(&r); err != nil || v != batch.Keep {
			b.Fatal(v, err)
		}
	}
}
