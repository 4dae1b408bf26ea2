package handler

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/batch"
	"github.com/causeway-mirror/causeway/internal/conf"
)

func TestConfigFromYAML(t *testing.T) {
	t.Parallel()
	got := DefaultConfig()
	require.NoError(t, conf.Decode([]byte(`
rename: "{source}.{topic}"
mapping: {a: b}
mapping_file:
partition_mismatch: modulo
overrides:
  orders:
    filter: {header: {name: region, matches: "^eu-"}, key: {matches: x}, tombstones: drop}
    transform: {add_headers: {origin: sjc1}}
`), &got, nil))
	require.Equal(t, Config{
		Rename: "{source}.{topic}", Mapping: map[string]string{"a": "b"}, PartitionMismatch: Modulo,
		Overrides: map[string]TopicConfig{"orders": {
			Filter:    &FilterConfig{Header: &HeaderMatch{Name: "region", Matches: "^eu-"}, Key: &KeyMatch{Matches: "x"}, Tombstones: DropTombstones},
			Transform: &TransformConfig{AddHeaders: map[string]string{"origin": "sjc1"}},
		}},
	}, got)
	require.NoError(t, got.Validate())
	err := conf.Decode([]byte("overrides: {orders: {filter: {headers: {name: x}}}}"), &got, nil)
	require.ErrorContains(t, err, `overrides.orders.filter.headers: unknown key, did you mean "header"?`)
}

func TestVerdictsAreOrdered(t *testing.T) {
	t.Parallel()
	require.Less(t, batch.Keep, batch.Changed, "chained takes the larger of two verdicts")
	require.Less(t, batch.Changed, batch.Drop)
}
