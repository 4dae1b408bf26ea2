package connector_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/connector"
)

// The last milliseconds before 1970 are what brokers take for words: a start at 23:59:59.999 of 1969 was "latest", and nothing there was copied.
func TestStartBefore1970IsNotLatest(t *testing.T) {
	t.Parallel()
	for start, want := range map[string]int64{
		"":                         -2,
		"earliest":                 -2,
		"latest":                   -1,
		"1969-12-31T23:59:59.999Z": 0,
		"1969-12-31T23:59:59.997Z": 0,
		"0001-01-01T00:00:00Z":     0,
		"1970-01-01T00:00:00.001Z": 1,
	} {
		at, err := connector.ParseStart(start)
		require.NoError(t, err)
		require.Equal(t, want, at, start)
	}
	_, err := connector.ParseStart("yesterday")
	require.Error(t, err)
}
