package peers

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What needs Java's processes is tested in the folder above, which has them running.

func TestRecordsGoThereAndBack(t *testing.T) {
	t.Parallel()
	r := Record{
		Simple: map[string]string{"REPLICAS": "1", "RULE": "k=v,k=v", "EMPTY": ""},
		Replicas: map[string]map[string]string{
			"0": {"b_2": "OFFLINE", "a_1": "ONLINE"}, "1": {}, "@src@dst@0": {"a_1": "ERROR"},
		},
	}
	fields := []string{
		"EMPTY=", "REPLICAS=1", "RULE=k=v,k=v", "0>a_1=ONLINE", "0>b_2=OFFLINE", "1>", "@src@dst@0>a_1=ERROR",
	}
	require.Equal(t, fields, r.fields())
	require.Equal(t, r, parseRecord(fields))
}

func TestNoFieldsAreNoRecord(t *testing.T) {
	t.Parallel()
	require.Equal(t, Record{}, parseRecord(nil))
}
