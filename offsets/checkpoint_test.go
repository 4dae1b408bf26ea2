package offsets

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/causeway-mirror/causeway/route"
)

func example() Checkpoint {
	return Checkpoint{
		Partition: route.Partition{Topic: "orders", Partition: 3}, SourceOffset: 1200, TargetOffset: 1190, Sequence: 1180, ProducerID: 4001,
		ProducerEpoch: 2, SourceTopicID: route.TopicID{1}, TargetTopicID: route.TopicID{2}, LeaderEpoch: 7, Fingerprint: "1:ab", Writer: "w1",
		Opened: true, Clean: true, AckedAt: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC),
	}
}

// The text is what stands in files and ZooKeeper: if this test has to change, Version has to.
const exampleText = `{"v":1,"topic":"orders","partition":3,"source_offset":1200,"target_offset":1190,"sequence":1180,"producer_id":4001,` +
	`"producer_epoch":2,"source_topic_id":"AQAAAAAAAAAAAAAAAAAAAA","target_topic_id":"AgAAAAAAAAAAAAAAAAAAAA","leader_epoch":7,` +
	`"fingerprint":"1:ab","writer":"w1","opened":true,"clean":true,"acked_at":"2026-01-02T03:04:05.000000006Z"}`

func TestCheckpointText(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(example())
	require.NoError(t, err)
	require.JSONEq(t, exampleText, string(text))
	var got Checkpoint
	require.NoError(t, json.Unmarshal(text, &got))
	require.True(t, got.Equal(example()))
}

func TestCheckpointIsReadStrictly(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, old, replacement, want string }{
		{"newer version", `"v":1`, `"v":2`, "format version is 2, this program knows 1 only"},
		{"no version", `"v":1,`, ``, "no version field v"},
		{"null version", `"v":1`, `"v":null`, "no version field v"},
		{"unknown field", `"v":1`, `"v":1,"shard":4`, "unknown field"},
		{"missing offset", `"source_offset":1200,`, ``, "no field source_offset"},
		{"null offset", `1200`, `null`, "no field source_offset"},
		{"missing sequence", `"sequence":1180,`, ``, "no field sequence"},
		{"negative sequence", `1180`, `-1`, "sequence is -1, must be at least 0"},
		{"sequence beyond 31 bits", `1180`, `2147483648`, "cannot unmarshal"},
		{"offset below unknown", `1200`, `-2`, "source_offset is -2"},
		{"epoch missing for an id", `"producer_epoch":2`, `"producer_epoch":-1`, "producer_epoch is -1, must be at least 0"},
		{"no topic", `"orders"`, `""`, "topic is empty"},
		{"bad topic id", `"AQAAAAAAAAAAAAAAAAAAAA"`, `"!"`, "illegal base64"},
		{"array", exampleText, `[]`, "cannot unmarshal"},
		{"two objects", exampleText, exampleText + exampleText, "invalid character"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(exampleText, test.old, test.replacement, 1)
			require.NotEqual(t, exampleText, text)
			got := example()
			require.ErrorContains(t, json.Unmarshal([]byte(text), &got), test.want)
			require.Equal(t, example(), got, "untouched")
		})
	}
	var version *VersionError
	require.ErrorAs(t, json.Unmarshal([]byte(`{"v":7}`), new(Checkpoint)), &version)
	require.Equal(t, 7, version.Got)
}

func TestValidateNamesAllFaults(t *testing.T) {
	t.Parallel()
	err := Checkpoint{Partition: route.Partition{Partition: -1}, SourceOffset: -2, TargetOffset: -3, Sequence: -4, ProducerID: -5, ProducerEpoch: -6, LeaderEpoch: -7}.Validate()
	for _, field := range []string{"topic", "partition", "source_offset", "target_offset", "sequence", "producer_id", "producer_epoch", "leader_epoch"} {
		require.ErrorContains(t, err, field)
	}
	require.NoError(t, example().Validate())
}

func anyCheckpoint() *rapid.Generator[Checkpoint] {
	return rapid.Custom(func(t *rapid.T) Checkpoint {
		id := func(name string) (id route.TopicID) {
			copy(id[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, name))
			return id
		}
		return Checkpoint{
			Partition:     route.Partition{Topic: rapid.StringMatching(`[a-zA-Z0-9._-]{1,249}`).Draw(t, "topic"), Partition: rapid.Int32Min(0).Draw(t, "partition")},
			SourceOffset:  route.Offset(rapid.Int64Min(-1).Draw(t, "source")),
			TargetOffset:  route.Offset(rapid.Int64Min(-1).Draw(t, "target")),
			Sequence:      rapid.Int32Min(0).Draw(t, "sequence"),
			ProducerID:    rapid.Int64Min(-1).Draw(t, "id"),
			ProducerEpoch: rapid.Int16Min(0).Draw(t, "epoch"),
			SourceTopicID: id("source id"), TargetTopicID: id("target id"),
			LeaderEpoch: rapid.Int32Min(-1).Draw(t, "leader epoch"),
			Fingerprint: rapid.StringN(0, 30, -1).Draw(t, "fingerprint"),
			Writer:      rapid.StringN(0, 30, -1).Draw(t, "writer"),
			Opened:      rapid.Bool().Draw(t, "opened"), Clean: rapid.Bool().Draw(t, "clean"),
			AckedAt: time.Unix(rapid.Int64Range(-62135596800, 253402300799).Draw(t, "s"), rapid.Int64Range(0, 999999999).Draw(t, "ns")),
		}
	})
}

func TestAnyCheckpointSurvives(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := anyCheckpoint().Draw(t, "checkpoint")
		text, err := json.Marshal(want)
		require.NoError(t, err)
		var got Checkpoint
		require.NoError(t, json.Unmarshal(text, &got))
		require.True(t, got.Equal(want), "%s", text)
	})
}

func FuzzCheckpoint(f *testing.F) {
	f.Add([]byte(exampleText))
	f.Add([]byte(`{"v":1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var c Checkpoint
		if json.Unmarshal(text, &c) != nil {
			require.Equal(t, Checkpoint{}, c)
			return
		}
		again, err := json.Marshal(c)
		require.NoError(t, err)
		var d Checkpoint
		require.NoError(t, json.Unmarshal(again, &d))
		require.True(t, c.Equal(d))
	})
}

func TestRouteText(t *testing.T) {
	t.Parallel()
	r := Route{SourceCluster: "a", TargetCluster: "b", ProducerID: math.MaxInt64, Discovered: true, FirstTopics: map[string]int32{"x": 3}, Version: 4}
	text, err := json.Marshal(r)
	require.NoError(t, err)
	require.JSONEq(t, `{"v":2,"source_cluster":"a","target_cluster":"b","producer_id":9223372036854775807,"discovered":true,"first_topics":{"x":3},"version":4}`, string(text))
	var got Route
	require.NoError(t, json.Unmarshal(text, &got))
	require.Equal(t, r, got)

	text, err = json.Marshal(NoRoute())
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &got))
	require.Equal(t, NoRoute(), got)
	require.Error(t, json.Unmarshal([]byte(strings.Replace(string(text), `"producer_id":-1,`, ``, 1)), &got))
	require.Error(t, json.Unmarshal([]byte(strings.Replace(string(text), `-1`, `-2`, 1)), &got))
}

func TestRouteOfVersion1HasNoNumbers(t *testing.T) {
	t.Parallel()
	const old = `{"v":1,"source_cluster":"a","target_cluster":"b","producer_id":5,"discovered":true,"first_topics":["x"],"version":4}`
	var got Route
	require.NoError(t, json.Unmarshal([]byte(old), &got))
	require.Equal(t, map[string]int32{"x": 0}, got.FirstTopics)
	require.False(t, got.Found(route.Partition{Topic: "x"}))
	var version *VersionError
	require.ErrorAs(t, json.Unmarshal([]byte(strings.Replace(old, `"v":1`, `"v":3`, 1)), &got), &version)
	require.ErrorContains(t, version, "format version is 3, this program knows 2 only")
}

func TestFoundIsOfTheFirstDiscovery(t *testing.T) {
	t.Parallel()
	r := NoRoute()
	require.True(t, r.Found(route.Partition{Topic: "x", Partition: 9}), "not discovered yet")
	r.Discovered, r.FirstTopics = true, map[string]int32{"x": 2}
	require.True(t, r.Found(route.Partition{Topic: "x", Partition: 1}))
	require.False(t, r.Found(route.Partition{Topic: "x", Partition: 2}))
	require.False(t, r.Found(route.Partition{Topic: "y"}))
}

func TestForeignCheckpointIsBegunAnewOnly(t *testing.T) {
	t.Parallel()
	foreign := example()
	foreign.Foreign = true
	require.ErrorContains(t, foreign.Validate(), "a foreign one can't be stored")
	_, err := Advance(&foreign, example())
	require.ErrorContains(t, err, "source offset 1200 was stored by another program")
	own := example()
	require.ErrorIs(t, Replace(&foreign, &own, example()), ErrConflict)
	require.NoError(t, Replace(&foreign, &foreign, example()))
}

func TestErrors(t *testing.T) {
	t.Parallel()
	conflict := &ConflictError{Refused: []Refused{{example(), "one"}, {example(), "two"}}}
	require.ErrorIs(t, conflict, ErrConflict)
	require.Equal(t, "save checkpoints: orders-3: one; orders-3: two", conflict.Error())
	storage := &StorageError{Op: "save route", Path: "/x", Err: ErrCorrupt}
	require.ErrorIs(t, storage, ErrCorrupt)
	require.ErrorIs(t, ErrMissing, ErrCorrupt)
	require.Equal(t, "save route in /x: stored state is corrupt", storage.Error())
}
