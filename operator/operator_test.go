package operator

import (
	"encoding/json"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestPlacesAreReadAndWritten(t *testing.T) {
	t.Parallel()
	for text, stamp := range map[string]int64{
		"earliest": -2, "latest": -1, "42": -2, "2026-01-02T03:04:05Z": 1767323045000, "2026-01-02T03:04:05.25+02:00": 1767315845250, "1969-12-31T23:59:59.999Z": 0,
	} {
		p, err := ParsePlace(text)
		require.NoError(t, err, text)
		require.Equal(t, text, p.String())
		require.Equal(t, stamp, p.Timestamp(), text)
		at, ok := p.Offset()
		require.Equal(t, text == "42", ok)
		require.Equal(t, ok, at == 42)
	}
	for _, text := range []string{"", "Earliest", "-1", "1.5", "yesterday", "2026-01-02", "99999999999999999999"} {
		_, err := ParsePlace(text)
		invalid, ok := errors.AsType[*InvalidError](err)
		require.True(t, ok, text)
		require.Equal(t, "to", invalid.Key)
		require.Contains(t, err.Error(), "to: "+text+": ")
	}
}

func anyLimits(t *rapid.T) Limits {
	rate := rapid.Float64Range(0, 1e12)
	return Limits{RecordsPerSecond: rate.Draw(t, "records"), BytesPerSecond: rate.Draw(t, "bytes")}
}

func anyTopic(t *rapid.T) Topic {
	one := func() Settings { return Settings{Paused: rapid.Bool().Draw(t, "paused"), Limits: anyLimits(t)} }
	topic := Topic{Settings: one()}
	for range rapid.IntRange(0, 4).Draw(t, "partitions") {
		topic.Set(rapid.Int32Range(0, math.MaxInt32).Draw(t, "partition"), one())
	}
	if len(topic.Partitions) == 0 {
		topic.Partitions = nil
	}
	return topic
}

func TestSettingsSurviveARecordAndAFile(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		simple, parts := map[string]string{"replicas": "2"}, map[string]map[string]string{"x": {"paused": "what"}, "3": {"pinned": "w1"}}
		for range 2 { // what was written before leaves nothing behind
			want := anyTopic(t)
			want.Write(simple, parts)
			got, err := ReadTopic(simple, parts)
			require.NoError(t, err)
			if len(got.Partitions) == 0 {
				got.Partitions = nil
			}
			require.Equal(t, want, got)

			text, err := json.Marshal(want)
			require.NoError(t, err)
			var again Topic
			require.NoError(t, json.Unmarshal(text, &again))
			require.Equal(t, want, again)
		}
		Topic{}.Write(simple, parts)
		require.Equal(t, map[string]string{"replicas": "2"}, simple)
		require.Equal(t, map[string]map[string]string{"x": {"paused": "what"}, "3": {"pinned": "w1"}}, parts)
	})
}

func TestSettingsThatCannotBeReadAreNamed(t *testing.T) {
	t.Parallel()
	_, err := ReadTopic(map[string]string{"paused": "perhaps", "records_per_second": "-1"}, map[string]map[string]string{"4": {"bytes_per_second": "much"}})
	for _, fault := range []string{
		"paused: perhaps: must be true or false", "records_per_second: -1: must not be negative; 0 = none", "partition 4: bytes_per_second: much: must be a number",
	} {
		require.ErrorContains(t, err, fault)
	}
	require.Error(t, Limits{BytesPerSecond: math.NaN()}.Validate())
	require.Error(t, Limits{BytesPerSecond: math.Inf(1)}.Validate())
	require.Error(t, Topic{Partitions: map[int32]Settings{-1: {}}}.Validate())
	require.NoError(t, Topic{}.Validate())
}

func TestPartitionIsStoppedByItselfOrWithItsTopic(t *testing.T) {
	t.Parallel()
	var topic Topic
	require.True(t, topic.IsZero())
	topic.Set(1, Settings{Paused: true})
	other := topic.Clone()
	other.Set(1, Settings{})
	require.True(t, other.IsZero())
	require.True(t, topic.Stopped(1))
	require.False(t, topic.Stopped(0))
	topic.Paused = true
	require.True(t, topic.Stopped(0))
	topic.Paused = false
	require.True(t, topic.Stopped(1), "a topic that goes on leaves what was paused by itself")
}

func TestCommandsSurviveARecord(t *testing.T) {
	t.Parallel()
	earliest, at := Place{}, Place{kind: placeTime, at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	simple := map[string]string{"kept": "yes"}
	for _, want := range []Command{{To: &at, From: &Epoch{ProducerID: 4001, Epoch: 3}}, {To: &earliest, From: &Epoch{ProducerID: -1, Epoch: -1}}, {To: &earliest}, {}} {
		want.Write(simple)
		got, err := ReadCommand(simple)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	require.Equal(t, map[string]string{"kept": "yes", "command": "retry"}, simple)
	for _, bad := range []map[string]string{
		{}, {"command": "explode"}, {"command": "reset"}, {"command": "reset", "to": "earliest", "from": "7"}, {"command": "reset", "to": "earliest", "from": "7/70000"},
	} {
		_, err := ReadCommand(bad)
		_, ok := errors.AsType[*InvalidError](err)
		require.True(t, ok, "%v: %v", bad, err)
	}
}
